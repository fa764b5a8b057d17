"""All tables of a run except those of its probes."""

from __future__ import annotations

from harness.columns.collectives import OPERATIONS, PEAKS
from harness.columns.column import Table
from harness.columns.flows import FLOWS, PIECES
from harness.columns.links import LINKS
from harness.columns.queues import QUEUES
from harness.columns.rates import RATES

TABLES: tuple[Table, ...] = (FLOWS, PIECES, QUEUES, RATES, LINKS, OPERATIONS, PEAKS)
NAMES = tuple(table.name for table in TABLES)
EVERYWHERE = tuple(table.name for table in TABLES if table.always)
"""Names of the tables that every run has."""
