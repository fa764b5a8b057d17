"""Coverage of P4 programs by packets, by source line: states, transitions, tables, branches, statements.

    coverage = Coverage()
    coverage.add(traced.program.points, switch.passed())
    print(coverage.summary().percent)

Pipelines that were built for tracing count coverage (`p4switch.engine.build_traced`). For code that cannot be reached,
lcov's markers apply: source lines between `LCOV_EXCL_START` and `LCOV_EXCL_STOP`, or with `LCOV_EXCL_LINE`, are
excluded, and `LCOV_EXCL_BR_LINE` excludes the branches and transitions of a line.
"""

from p4switch.coverage.model import KINDS, Coverage, Item, Share
from p4switch.coverage.report import lcov, missed_lines, table, write

__all__ = ["KINDS", "Coverage", "Item", "Share", "lcov", "missed_lines", "table", "write"]
