"""What a program keeps for the entries of a table: direct counters and meters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.control import program_state
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from tests.p4switch.p4runtime import everything

TABLE = 201


class OneEntry:
    """A client of a switch with one entry in the table of a direct counter and a direct meter."""

    device_id = 1

    def read(self, queries: Sequence[Message]) -> Iterator[Message]:
        (query,) = queries
        kind = query.WhichOneof("entity")
        if not kind.startswith("direct_"):
            return
        answer = p4runtime_pb2.Entity()
        entry = getattr(answer, kind)
        assert getattr(query, kind).table_entry.table_id == TABLE
        entry.table_entry.match.add(field_id=1).exact.value = b"\x07"
        if kind == "direct_meter_entry":
            entry.config.cir, entry.config.cburst, entry.config.pir, entry.config.pburst = 1, 2, 3, 4
        else:
            entry.data.packet_count, entry.data.byte_count = 5, 600
        yield answer


def test_direct_counters_and_meters_are_told_by_entry() -> None:
    client: Any = OneEntry()
    cells = [tuple(cell) for cell in program_state.everything(client, everything.p4info())]
    assert cells == [
        ("direct counter", "hits", -1, "e=0x07", "packets", 5),
        ("direct counter", "hits", -1, "e=0x07", "bytes", 600),
        *(
            ("direct meter", "rates", -1, "e=0x07", field, value)
            for value, field in enumerate(("cir", "cburst", "pir", "pburst"), 1)
        ),
    ]
