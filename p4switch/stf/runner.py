"""Execution of the commands of a packet test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch.errors import UserError
from p4switch.stf.draws import DRAW_BITS, REGISTER
from p4switch.stf.language import (
    ACTION,
    ADD,
    COMPARE,
    COUNTER,
    MATCH,
    VALUE,
    Command,
    StfError,
    first_word,
    number,
    plain,
    words,
)
from p4switch.stf.names import Key, Names, Table, find, key_field, key_position, no_match, pack
from p4switch.trace import Decoder, Layout, Trace, differences, layouts

if TYPE_CHECKING:
    from p4switch import ir
    from p4switch.engine import Switch


_UNKNOWN = Layout(())
BETWEEN_TICKS = 1000  # ticks from one packet to the next
_MAX_TICK = (1 << 48) - 1  # largest timestamp of 48 bits
_MAX_DEPTH = (1 << 19) - 1  # enq_qdepth and deq_qdepth


@dataclass(frozen=True, slots=True)
class Sent:
    """Frame that the switch sent. `line` is the line of the packet that caused it, or 0 if it is not known."""

    frame: bytes
    line: int = 0
    layout: Layout = _UNKNOWN


class Runner:
    """Executor of the commands of a test on a switch."""

    def __init__(
        self,
        program: ir.Program,
        switch: Switch,
        tell: Callable[[int, str], object] = lambda line, text: None,
        decoder: Decoder | None = None,
    ) -> None:
        """Create the runner.

        `tell` is called with the line of a packet in the test, and a message of the program or a failed assert. With a
        `decoder`, the switch is traced, and `traces` has the events of each packet by its line in the test.
        """
        self.names = Names.of(program)
        self.switch = switch
        self.traces: dict[int, Trace] = {}
        self._decoder = decoder
        self.sent: dict[int, list[Sent]] = {}  # frames by port
        self._packet_lines: list[int] = []
        self.expected: dict[int, list[tuple[Command, str | None]]] = {}
        self.mentioned: set[int] = set()
        self.nothing_else = False
        self._tell = tell
        self.now = BETWEEN_TICKS  # time at which the next packet arrives
        self._arrived = 0  # time at which the last packet arrived
        self.depth: int | None = None  # queue depth that packets find; None: the actual depth
        self.entries: dict[str, tuple[str, int]] = {}  # table and handle of entries that were named with `=`
        self.groups: dict[int, dict[int, list[tuple[int, int]]]] = {}  # by group and node: (port, rid)
        self.nodes: list[list[tuple[int, int]]] = []
        self.sessions: dict[int, int] = {}  # group of each session
        self.members: dict[str, list[list[tuple[bytes, bytes]]]] = {}  # members of value sets

    def run(self, commands: Iterable[Command]) -> None:
        """Run a test.

        Raises StfError if the test fails.
        """
        for command in commands:
            self.carry_out(command)
        self.check()

    def carry_out(self, command: Command) -> None:
        """Execute a command.

        Raises StfError if that is impossible.
        """
        try:
            getattr(self, "_" + command.name)(command)
        except (ValueError, OverflowError) as error:
            raise StfError(command.line, f"{command.name}: {error}") from None

    # Packets

    def _packet(self, command: Command) -> None:
        port, frame = self.packet_of(command)
        self._packet_lines.append(command.line)
        outputs = self.switch.process(port, frame, self.now, depth=self.depth)
        self._arrived, self.now = self.now, self.now + BETWEEN_TICKS
        for (out, sent), layout in zip(outputs, self._layouts(command, len(outputs)), strict=True):
            self.sent.setdefault(out, []).append(Sent(sent, command.line, layout))
        for _, text in self.switch.said()[0]:
            self._tell(command.line, text)
        if self.switch.failed_assert is not None:
            failed = self.switch.failed_assert
            raise StfError(
                command.line, f"packet: an assertion of the program failed: {failed}", packet_line=command.line
            )

    def _layouts(self, command: Command, outputs: int) -> list[Layout]:
        """Store the trace of a packet, and return the layouts of the frames that it caused."""
        if self._decoder is None:
            return [_UNKNOWN] * outputs
        trace = self.traces[command.line] = Trace(self._decoder(self.switch.traced()[0]))
        return [layout for _, layout in layouts(trace)]

    def _expect(self, command: Command) -> None:
        port, data = self._port_and_data(command)
        self.mentioned.add(port)
        self.expected.setdefault(port, []).append((command, data.upper() or None))

    def packet_of(self, command: Command) -> tuple[int, bytes]:
        """Return the port and data of a `packet` command."""
        port, data = self._port_and_data(command)
        self.mentioned.add(port)
        try:
            return port, bytes.fromhex(data)
        except ValueError:
            raise StfError(command.line, f"packet data '{data}' is not hexadecimal") from None

    def _port_and_data(self, command: Command) -> tuple[int, str]:
        port, *data = command.args.split()
        return number(command, port), "".join(data)

    def _no_packet(self, command: Command) -> None:
        self.nothing_else = True

    def _wait(self, command: Command) -> None:
        pass

    def _clock(self, command: Command) -> None:
        self.now = self._number_up_to(command, _MAX_TICK, self._arrived)

    def _queue(self, command: Command) -> None:
        self.depth = self._number_up_to(command, _MAX_DEPTH)

    def _random(self, command: Command) -> None:
        place, _, value = command.args.rpartition(" ")
        if not place:
            raise StfError(command.line, "expected: random FILE:LINE NUMBER")
        self.switch.register_write(REGISTER + place, 0, pack(number(command, value), DRAW_BITS))

    def _number_up_to(self, command: Command, most: int, least: int = 0) -> int:
        value = number(command, command.args)
        if not least <= value <= most:
            raise StfError(command.line, f"{command.name} {command.args}: expected a number from {least} to {most}")
        return value

    def check(self) -> None:
        """Compare the frames sent with the expected ones.

        Raises UserError if they differ.
        """
        for port in sorted({*self.mentioned, *(self.sent if self.nothing_else else ())}):
            expected, sent = self.expected.get(port, []), self.sent.get(port, [])
            if expected and all(pattern is None for _, pattern in expected):
                continue
            for (command, pattern), one in zip(expected, sent, strict=False):
                if pattern is not None:
                    _compare(command, port, pattern, one)
            if len(sent) < len(expected):
                line = expected[len(sent)][0].line
                before = max((at for at in self._packet_lines if at < line), default=None)
                message = f"port {port}: expected {len(expected)} packets, got {len(sent)}"
                raise StfError(line, message, packet_line=before)
            if len(sent) > len(expected):
                extra = sent[len(expected)]
                message = f"port {port}: expected {len(expected)} packets, got {len(sent)}"
                message += f"; the first one more: {extra.frame.hex().upper()}"
                if not extra.line:  # BMv2 does not report which packet caused a frame
                    raise UserError(message)
                raise StfError(extra.line, message, packet_line=extra.line)

    # Tables

    def _add(self, command: Command) -> None:
        parts = ADD.match(command.args)
        if parts is None:
            raise StfError(command.line, "expected: add TABLE [PRIORITY] KEY:VALUE ... ACTION(PARAMETER:VALUE, ...)")
        table = self._table(command, parts[1])
        keys = [no_match(k) for k in table.keys]
        rest = parts[3]
        while match := MATCH.match(rest):
            position = key_position(command, table, match[1])
            keys[position] = key_field(command, table.keys[position], match[2])
            rest = rest[match.end() :]
        action, args, name = self._action(command, table, rest)
        priority = int(parts[2] or 1) if table.prioritized else 0
        handle = self.switch.table_add(table.name, keys, priority, self._target(table, action, args))
        if name:
            self.entries[name.lstrip("$")] = table.name, handle

    def _setdefault(self, command: Command) -> None:
        name, rest = first_word(command.args)
        table = self._table(command, name)
        action, args, _ = self._action(command, table, rest)
        self.switch.table_set_default(table.name, self._target(table, action, args))

    def _target(self, table: Table, action: str, args: list[bytes]) -> tuple[str, str, list[bytes]] | tuple[str, int]:
        """Return the target of an entry: the action, or, with an action profile or selector, a member with it."""
        if not table.profile:
            return "action", action, args
        return "member", self.switch.member_add(table.profile, action, args)

    def _remove(self, command: Command) -> None:
        if command.args.lower() != "all":
            raise StfError(command.line, "expected: remove all")
        for name in self.names.tables:
            self.switch.table_clear(name)

    def _table(self, command: Command, name: str) -> Table:
        return self.names.tables[find(command, "table", name, self.names.tables)]

    def _action(self, command: Command, table: Table, text: str) -> tuple[str, list[bytes], str | None]:
        match = ACTION.match(text)
        if match is None:
            raise StfError(command.line, f"'{text.strip()}' is not an action: expected NAME(PARAMETER:VALUE, ...)")
        name = find(command, f"action of table {table.name}", match[1], table.actions)
        params = table.actions[name]
        given: dict[str, str] = {}
        for part in filter(None, map(str.strip, match[2].split(","))):
            param, _, value = part.partition(":")
            given[plain(param.strip())] = value.strip()
        unknown = set(given) - {p for p, _ in params}
        missing = [p for p, _ in params if p not in given]
        if unknown or missing:
            expected = ", ".join(p for p, _ in params) or "none"
            raise StfError(command.line, f"parameters of {name}: expected {expected}")
        return name, [pack(number(command, given[p]), width) for p, width in params], match[3]

    # Replication

    def _numbers(self, command: Command, least: int) -> list[int]:
        numbers = [number(command, w) for w in command.args.split()]
        if len(numbers) < least:
            raise StfError(command.line, f"{command.name}: expected {least} numbers or more")
        return numbers

    def _mirroring_add(self, command: Command) -> None:
        session, port = self._numbers(command, 2)
        self.switch.clone_session_set(session, [(port, 0)])

    def _mirroring_add_mc(self, command: Command) -> None:
        session, group = self._numbers(command, 2)
        self.sessions[session] = group
        self._update(group)

    def _mirroring_delete(self, command: Command) -> None:
        session = self._numbers(command, 1)[0]
        self.sessions.pop(session, None)
        self.switch.clone_session_set(session, None)

    def _mirroring_get(self, command: Command) -> None:
        self._numbers(command, 1)

    def _mc_mgrp_create(self, command: Command) -> None:
        group = self._numbers(command, 1)[0]
        self.groups[group] = {}
        self._update(group)

    def _mc_node_create(self, command: Command) -> None:
        rid, *ports = self._numbers(command, 1)
        self.nodes.append([(port, rid) for port in ports])

    def _mc_node_update(self, command: Command) -> None:
        handle, *ports = self._numbers(command, 1)
        node = self._node(command, handle)
        node[:] = [(port, rid) for port in ports for rid in {rid for _, rid in node}]
        for group, nodes in self.groups.items():
            if handle in nodes:
                self._update(group)

    def _mc_node_associate(self, command: Command) -> None:
        group, handle = self._numbers(command, 2)
        if group not in self.groups:
            raise StfError(command.line, f"no multicast group {group}")
        self.groups[group][handle] = self._node(command, handle)
        self._update(group)

    def _node(self, command: Command, handle: int) -> list[tuple[int, int]]:
        if not 0 <= handle < len(self.nodes):
            raise StfError(command.line, f"no multicast node {handle}")
        return self.nodes[handle]

    def _update(self, group: int) -> None:
        replicas = [replica for node in self.groups.get(group, {}).values() for replica in node]
        if group in self.groups:
            self.switch.multicast_set(group, replicas)
        for session, of in self.sessions.items():
            if of == group:
                self.switch.clone_session_set(session, replicas)

    # Value sets

    def _pvs_add(self, command: Command) -> None:
        name, value = first_word(command.args)
        value_set = self._value_set(command, name)
        widths = self.names.value_sets[value_set]
        if not re.fullmatch(VALUE, value.strip()):
            raise StfError(command.line, "expected: pvs_add NAME VALUE, or pvs_add NAME VALUE &&& MASK")
        packed, mask = key_field(command, Key(name, "ternary", sum(widths)), value)
        assert packed is not None
        assert isinstance(mask, bytes)
        member = list(zip(_pieces(packed, widths), _pieces(mask, widths), strict=True))
        members = self.members[value_set] = [*self.members.get(value_set, []), member]
        self.switch.value_set_set(value_set, members)

    def _pvs_clear(self, command: Command) -> None:
        value_set = self._value_set(command, command.args)
        self.members[value_set] = []
        self.switch.value_set_set(value_set, [])

    def _value_set(self, command: Command, name: str) -> str:
        return find(command, "value set", name, self.names.value_sets)

    # Counters, registers, meters

    def _check_counter(self, command: Command) -> None:
        match = COUNTER.match(command.args)
        if match is None:
            raise StfError(command.line, "expected: check_counter NAME(INDEX) [packets|bytes COMPARISON NUMBER]")
        packets, nbytes = self._read_counter(command, match[1], match[2])
        if match[3] is None:
            return
        value = packets if match[3].lower() == "packets" else nbytes
        if not COMPARE[match[4]](value, number(command, match[5])):
            raise StfError(command.line, f"counter {match[1]}({match[2]}): {match[3]} is {value}")

    def _read_counter(self, command: Command, name: str, index: str) -> tuple[int, int]:
        counter = find(command, "counter", name, self.names.counters)
        entry = self.entries.get(index.lstrip("$"))
        table = self.names.counters[counter]
        if table:
            return self.switch.direct_counter_read(table, entry[1] if entry else number(command, index))
        return self.switch.counter_read(counter, number(command, index))

    def _counter_read(self, command: Command) -> None:
        name, index = words(command.args)
        self._read_counter(command, name, index)

    def _counter_write(self, command: Command) -> None:
        name, *rest = words(command.args)
        index, packets, nbytes = (number(command, w) for w in rest)
        counter = find(command, "counter", name, self.names.counters)
        table = self.names.counters[counter]
        if table:
            self.switch.direct_counter_write(table, index, packets, nbytes)
        else:
            self.switch.counter_write(counter, index, packets, nbytes)

    def _register_read(self, command: Command) -> None:
        name, index = words(command.args)
        self.switch.register_read(find(command, "register", name, self.names.registers), number(command, index))

    def _register_write(self, command: Command) -> None:
        name, index, value = words(command.args)
        register = find(command, "register", name, self.names.registers)
        width = self.names.registers[register][1]
        self.switch.register_write(register, number(command, index), pack(number(command, value), width))

    def _register_reset(self, command: Command) -> None:
        register = find(command, "register", command.args, self.names.registers)
        size, width = self.names.registers[register]
        for index in range(size):
            self.switch.register_write(register, index, pack(0, width))

    def _meter_get_rates(self, command: Command) -> None:
        find(command, "meter", words(command.args)[0], self.names.meters)

    def _meter_set_rates(self, command: Command) -> None:
        name, index, *rates = words(command.args)
        entry = self.entries.get(index.lstrip("$"))
        self._set_meter(command, name, [entry[1] if entry else number(command, index)], rates)

    def _meter_array_set_rates(self, command: Command) -> None:
        name, *rates = words(command.args)
        meter = find(command, "meter", name, self.names.meters)
        self._set_meter(command, name, range(self.names.meters[meter][0]), rates)

    def _set_meter(self, command: Command, name: str, indices: Iterable[int], rates: Sequence[str]) -> None:
        """Set a meter's committed and peak rate, each as RATE:BURST in units per microsecond, as in BMv2's CLI."""
        meter = find(command, "meter", name, self.names.meters)
        if len(rates) != 2:
            raise StfError(command.line, "expected two rates: committed and peak, each RATE:BURST")
        values: list[int] = []
        for text in rates:
            rate, _, burst = text.partition(":")
            values += [round(float(rate) * 1_000_000), number(command, burst)]
        config = values[0], values[1], values[2], values[3]
        table = self.names.meters[meter][1]
        for index in indices:
            if table:
                self.switch.direct_meter_set(table, index, config)
            else:
                self.switch.meter_set(meter, index, config)


def _pieces(packed: bytes, widths: Sequence[int]) -> list[bytes]:
    """Return the fields of these widths in bits that a number consists of."""
    number, left = int.from_bytes(packed, "big"), sum(widths)
    pieces = []
    for width in widths:
        left -= width
        pieces.append(pack(number >> left, width))
    return pieces


def _compare(command: Command, port: int, pattern: str, sent: Sent) -> None:
    frame = sent.frame.hex().upper()
    exact = pattern.endswith("$")
    pattern = pattern.rstrip("$")
    if len(frame) < len(pattern) or (exact and len(frame) > len(pattern)):
        message = f"port {port}: expected {len(pattern) / 2:g} bytes, got {len(frame) / 2:g}: {frame}"
    else:
        wrong = [i for i, (want, got) in enumerate(zip(pattern, frame, strict=False)) if want not in ("*", got)]
        if not wrong:
            return
        message = f"port {port}, byte {wrong[0] // 2}: expected {pattern}, got {frame}"
    raise StfError(command.line, message, _fields(pattern, sent, exact), sent.line or None)


def _fields(pattern: str, sent: Sent, exact: bool) -> list[str]:
    """Return the differences of a frame field by field, if its fields are known."""
    if not sent.layout.fields or not re.fullmatch(r"(?:[0-9A-F*]{2})*", pattern):
        return []
    expected = bytes.fromhex(pattern.replace("*", "0"))
    mask = bytes.fromhex("".join("0" if digit == "*" else "F" for digit in pattern))
    got = sent.frame if exact else sent.frame[: len(expected)]
    return differences(expected, mask, got, sent.layout)
