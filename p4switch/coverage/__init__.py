"""Coverage of P4 programs by packets, by source line: states, transitions, tables, branches, statements.

    coverage = Coverage()
    coverage.add(traced.program.points, switch.passed())
    print(coverage.summary().percent)

Only pipelines built for tracing count coverage (`p4switch.engine.build_traced`). lcov's markers exclude code that
cannot be reached: source lines between `LCOV_EXCL_START` and `LCOV_EXCL_STOP`, lines with `LCOV_EXCL_LINE`, and the
branches and transitions of a line with `LCOV_EXCL_BR_LINE`.
"""

from p4switch.coverage.model import KINDS, Coverage, Item, Share
from p4switch.coverage.report import lcov, missed_lines, table, write

__all__ = ["KINDS", "Coverage", "Item", "Share", "lcov", "missed_lines", "table", "write"]
