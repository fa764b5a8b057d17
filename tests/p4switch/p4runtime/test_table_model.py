"""Random writes and reads compared with a dictionary: the answers and the data plane equal the model's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from p4switch.p4runtime import Device, P4RuntimeError
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2
from tests.p4switch.p4runtime import everything
from tests.p4switch.p4runtime.controller import DELETE, INSERT, MODIFY, Controller, config_request, wrap
from tests.p4switch.p4runtime.fake import FakeSwitch, as_switch

MIXED = "EverythingIngress.mixed"

# Few values, so that entries collide; each field may be left out but the exact one.
exact = st.sampled_from([0, 1, 0xFFFF])
lpm = st.none() | st.integers(1, 32).flatmap(
    lambda n: st.sampled_from([0x0A0B0C0D, 0, 0xFFFFFFFF]).map(lambda v: (v >> (32 - n) << (32 - n), n))
)
ternary = st.none() | st.tuples(st.sampled_from([0, 0x00F0, 0xFFFF]), st.sampled_from([0x00FF, 0xFFFF])).map(
    lambda t: (t[0] & t[1], t[1])
)
ranges = st.none() | st.sampled_from([(0, 0), (0, 254), (1, 255), (7, 9)])
optional = st.none() | st.sampled_from([0, 255])
matches = st.fixed_dictionaries({"e": exact, "l": lpm, "t": ternary, "r": ranges, "o": optional}).map(
    lambda m: {name: m[name] for name in "eltro" if m[name] is not None}
)
priorities = st.integers(1, 2)
actions = st.sampled_from([("drop",), ("send", {"port": 0}), ("send", {"port": 511})])
metadata = st.sampled_from([b"", b"x"])


@dataclass
class Update:
    kind: int
    match: dict[str, Any]
    priority: int
    action: Any
    metadata: bytes

    @property
    def key(self) -> tuple[Any, ...]:
        return (*sorted(self.match.items()), self.priority)


updates = st.builds(
    Update, st.sampled_from([INSERT, MODIFY, DELETE]), matches, priorities, actions | st.none(), metadata
)


@dataclass
class Model:
    """Model of a table as P4Runtime specifies it."""

    entries: dict[Any, tuple[dict[str, Any], int, Any, bytes]] = field(default_factory=dict)

    def apply(self, update: Update) -> str:
        """Return the canonical code of the answer."""
        old = self.entries.get(update.key)
        if update.kind == INSERT:
            if old:
                return "ALREADY_EXISTS"
            if update.action is None:
                return "INVALID_ARGUMENT"
        elif not old:
            return "NOT_FOUND"
        if update.kind == DELETE:
            del self.entries[update.key]
        else:
            action = update.action if update.action is not None or old is None else old[2]
            self.entries[update.key] = (update.match, update.priority, action, update.metadata)
        return "OK"


class Machine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.switch = FakeSwitch()
        self.device = Device(lambda config: as_switch(self.switch))
        self.device.set_forwarding_pipeline_config(config_request(everything.p4info(), everything.device_config()))
        self.controller = Controller(self.device, everything.p4info())
        self.model = Model()

    def message(self, update: Update) -> Message:
        entry = self.controller.entry("mixed", update.match, update.action, priority=update.priority)
        entry.metadata = update.metadata
        return entry

    @rule(batch=st.lists(updates, max_size=6), atomicity=st.sampled_from([0, 1, 2]))
    def write(self, batch: list[Update], atomicity: int) -> None:
        before = Model(dict(self.model.entries))
        codes = []
        for update in batch:
            codes.append(self.model.apply(update))
            if codes[-1] != "OK" and atomicity:
                break
        if atomicity and set(codes) - {"OK"}:
            self.model = before
            codes = ["ABORTED"] * (len(codes) - 1) + [codes[-1]] + ["ABORTED"] * (len(batch) - len(codes))
        request = p4runtime_pb2.WriteRequest(device_id=1, atomicity=atomicity)
        for update in batch:
            request.updates.add(type=update.kind).entity.CopyFrom(wrap(self.message(update)))
        try:
            self.device.write(request)
            answers = ["OK"] * len(batch)
        except P4RuntimeError as error:
            answers = [code_pb2.Code.Name(e.canonical_code) for e in error.errors]
        assert answers == codes

    @rule(match=matches, priority=priorities | st.just(0))
    def read_one(self, match: dict[str, Any], priority: int) -> None:
        found = self.controller.read(self.controller.entry("mixed", match, priority=priority))
        expected = [e for e in self.model.entries.values() if e[0] == match and priority in (0, e[1])]
        assert self.text(found) == self.expected(expected)

    @rule(priority=priorities, meta=metadata)
    def read_some(self, priority: int, meta: bytes) -> None:
        found = self.controller.read(self.controller.entry("mixed", priority=priority, metadata=meta))
        expected = [e for e in self.model.entries.values() if e[1] == priority and (not meta or e[3] == meta)]
        assert self.text(found) == self.expected(expected)

    @invariant()
    def reads_give_what_was_written(self) -> None:
        found = self.controller.read(self.controller.entry("mixed"))
        assert self.text(found) == self.expected(list(self.model.entries.values()))

    @invariant()
    def the_data_plane_has_it_too(self) -> None:
        held = sorted((p, target[1], target[2]) for _, p, target in self.switch.tables.get(MIXED, {}).values())
        wanted = sorted(
            (p, f"EverythingIngress.{a[0]}", tuple(v.to_bytes(2, "big") for v in a[1].values()) if len(a) > 1 else ())
            for _, p, a, _ in self.model.entries.values()
        )
        assert held == wanted

    @staticmethod
    def text(messages: list[Message]) -> list[str]:
        return sorted(map(str, messages))

    def expected(self, entries: list[tuple[dict[str, Any], int, Any, bytes]]) -> list[str]:
        return sorted(
            str(self.controller.entry("mixed", match, action, priority=priority, metadata=meta))
            for match, priority, action, meta in entries
        )


TestTableModel = Machine.TestCase
TestTableModel.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 48, 128])
def test_byte_strings_round_trip(width: int) -> None:
    from p4switch.p4runtime.bytestring import canonical, canonical_signed, parse, parse_signed, shortest

    for value in {0, 1, (1 << width) - 1, (1 << width) // 3}:
        assert parse(b"\0\0" + canonical(value), width) == value
        assert shortest(b"\0" + canonical(value)) == canonical(value)
        with pytest.raises(ValueError, match="does not fit"):
            parse(canonical(value + (1 << width)), width)
    for value in {0, -1 << (width - 1), (1 << (width - 1)) - 1}:
        text = canonical_signed(value)
        assert parse_signed(text, width) == value
        assert parse_signed((b"\xff" if value < 0 else b"\0") + text, width) == value
        assert len(text) == 1 or text[1:] != canonical_signed(value)  # the shortest
    with pytest.raises(ValueError, match="empty"):
        parse(b"", width)
