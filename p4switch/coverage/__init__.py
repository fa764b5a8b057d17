"""Coverage of P4 programs by packets, by source line: states, transitions, tables, branches, statements.

    coverage = Coverage()
    coverage.add(traced.program.points, switch.passed())
    print(coverage.summary().percent)

A pipeline that was built for tracing counts (`p4switch.engine.build_traced`). Lines of the source between
`LCOV_EXCL_START` and `LCOV_EXCL_STOP`, or with `LCOV_EXCL_LINE`, are left out, `LCOV_EXCL_BR_LINE` leaves out a
line's branches and transitions: as lcov has it, for what cannot be reached.
"""

from p4switch.coverage.model import KINDS, Coverage, Item, Share
from p4switch.coverage.report import lcov, missed_lines, table, write

__all__ = ["KINDS", "Coverage", "Item", "Share", "lcov", "missed_lines", "table", "write"]
