"""One P4 program on one switch for packet tests: the built-in one, in this or its own process, or BMv2."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, SupportsBytes, overload

import p4cc._hosts  # noqa: F401  # isort: split
from control_plane import bmv2_process, controller
from control_plane.program_state import CellArray
from control_plane.programs.entries import CloneSession, Entry, MulticastGroup
from harness.errors import CheckError
from host_agents import registry
from host_agents.errors import HostError
from p4cc import _digests
from p4cc._switch_process import SwitchOnWires
from p4cc.control import Control, compiled
from p4cc.table import Table
from p4switch import extensions
from p4switch.compiler import Compiled as Program
from p4switch.compiler import compile_program
from p4switch.coverage import Coverage, collector
from p4switch.engine import build_traced, load
from p4switch.errors import UserError
from p4switch.p4runtime import Device
from p4switch.p4runtime.client import LocalClient
from p4switch.trace import Decoder, Layout, Trace, differences, layouts
from wireformats import opcodes
from wireformats.p4 import include_path

__all__ = ["Output", "Packets", "Program", "Switch", "UserError", "compile"]

Frame = SupportsBytes | bytes
Kind = Literal["builtin", "process", "bmv2"]


class _Output(NamedTuple):
    port: int
    frame: bytes


class Output(_Output):
    """Frame that left the switch: `port`, `frame`."""

    layout: Layout = Layout(())

    def differences(self, expected: Frame, mask: bytes | None = None) -> list[str]:
        """Return a line for each field that differs from the expected frame.

        Parameters
        ----------
        expected
            Bytes, or a scapy packet.
        mask
            Bits that are 0 are ignored; bytes behind the end of the mask are compared.

        Returns
        -------
        list[str]
            Lines, empty if the frames agree.
        """
        return differences(bytes(expected), mask or b"", self.frame, self.layout)


class Packets(list[Output]):
    """Packets that left the switch because of one packet, in order."""

    def __init__(self, outputs: Iterable[Output] = (), trace: Callable[[], Trace] = Trace) -> None:
        super().__init__(outputs)
        self._trace = trace
        self.coverage = Coverage()

    @functools.cached_property
    def trace(self) -> Trace:
        """Events of the packet; empty if the switch does not report them."""
        return self._trace()

    def expect(self, *expected: tuple[int, Frame], mask: bytes | None = None) -> None:
        """Compare all ports and frames, in order.

        Parameters
        ----------
        *expected
            (port, frame) of each packet.
        mask
            Bits that are 0 are ignored in all frames.

        Raises
        ------
        AssertionError
            For any difference, with the fields that differ and the packet's trace.
        """
        wrong: list[str] = []
        for number, ((port, frame), output) in enumerate(zip(expected, self, strict=False)):
            differences = output.differences(frame, mask)
            if port != output.port:
                differences.insert(0, f"expected at port {port}, got at port {output.port}")
            wrong += [f"packet {number}: {line}" for line in differences]
        if len(expected) != len(self):
            ports = ", ".join(str(output.port) for output in self) or "none"
            wrong.append(f"expected {len(expected)} packets, got {len(self)} (ports: {ports})")
        if wrong:
            raise AssertionError("\n".join([*wrong, *self.trace.text().splitlines()]))


def compile(
    file: str | PathLike[str],
    *,
    cc: Sequence[str | PathLike[str]] = (),
    include: Sequence[str | Path] = (),
    define: Mapping[str, str] | None = None,
) -> Program:
    """Compile a P4-16 program for v1model.

    The program may include p4cc's stages (`include/forwarding.p4`, ...).

    Parameters
    ----------
    file
        P4 source.
    cc
        Protocols, by name or file, whose packets the program includes as `include/packets/NAME.p4`.
    include
        Further include folders.
    define
        Macros and their text.

    Returns
    -------
    Program
        Program with `.json`, the BMv2 JSON, `.p4info`, and `.write`.

    Raises
    ------
    UserError
        For errors in the program, with all of them.
    """
    try:
        known = [opcodes([extensions.named(registry.KINDS["cc"], str(name), Path.cwd())]) for name in cc]
    except HostError as error:
        raise UserError(str(error)) from None
    return compile_program(Path(file), [*include, *include_path(*known)], define)


class Switch(Control):
    """Switch that runs a program, for packet tests.

    `program` is a P4 file, what `compile` returned, or the name of a program of p4cc's (`"ecn"`).
    Entries are those of `p4cc.programs`; names are those of the P4 source. `switch` is "builtin",
    in this process, with a clock that is set by each packet; "process", `p4cc switch` over
    P4Runtime; or "bmv2", simple_switch_grpc. The last two need root, run in real time on `ports`,
    report no coverage, and end with the `with` block, or `close`. BMv2 reports no traces either.

    Raises UserError for entries that do not fit the program.
    """

    def __init__(
        self,
        program: str | PathLike[str] | Program,
        entries: Iterable[Entry] = (),
        *,
        device_id: int = 1,
        seed: int = 1,
        tick_ns: int = 1,
        switch: Kind = "builtin",
        ports: Sequence[int] = tuple(range(8)),
    ) -> None:
        compiled_program = compiled(program)
        self._wires: SwitchOnWires | None = None
        self._digests: list[tuple[int, bytes]] = []
        client: Any
        if switch == "builtin":
            self._traced = build_traced(compiled_program.program)
            self._decoder = Decoder(self._traced)
            self._switch = load().Switch(
                str(self._traced.library), device_id=device_id, seed=seed, tick_ns=tick_ns
            )
            self._switch.set_tracing(True)
            collector.watch(self._traced.program.points, self._switch)
            client = LocalClient(Device(lambda _: self._switch, device_id))
        else:
            self._wires = SwitchOnWires(switch, device_id, ports)
            client = self._wires.client
        known = controller.Program.of(compiled_program)
        super().__init__(client, known)
        try:
            controller.program_switch(client, known, entries)
            if self._wires is not None:
                _digests.subscribe(self._wires.client, compiled_program.p4info)
        except BaseException:
            self.close()
            raise
        self._failed_asserts = 0

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the switch's process, if it has one."""
        if self._wires is not None:
            self._wires.close()
            self._wires = None

    # Packets

    @overload
    def send(self, port: int, packet: Frame, now: int = 0) -> Packets: ...
    @overload
    def send(self, frame: Frame, port: int, now: int = 0) -> Packets: ...
    def send(self, *packet: Any, now: int = 0, **named: Any) -> Packets:
        """Return the packets that leave after a packet enters a port at tick `now`, in order.

        The packet is bytes or a scapy packet.

        Raises CheckError when an assert of the program does not hold.
        """
        port, frame, now = _arguments(packet, now, named)
        if self._wires is not None:
            left = self._wires.send(port, frame)
            trace = Trace(self._wires.events(len(left)))
            return Packets(_with_layouts(left, trace), lambda: trace)
        before = self._switch.passed()
        sent = self._switch.process(port, frame, now)
        raw = self._switch.traced()[0]
        trace = Trace(self._decoder(raw))
        outputs = []
        for (out, data), (_, layout) in zip(sent, layouts(trace), strict=True):
            output = Output(out, data)
            output.layout = layout
            outputs.append(output)
        packets = Packets(outputs, lambda: trace)
        passed = [now_ - then for now_, then in zip(self._switch.passed(), before, strict=True)]
        packets.coverage.add(self._traced.program.points, passed)
        failed, self._failed_asserts = self._failed_asserts, self._switch.failed_asserts
        if failed != self._failed_asserts:
            raise CheckError(f"a packet into port {port} fails an assert of the program: {self._switch.failed_assert}")
        return packets

    @property
    def coverage(self) -> Coverage:
        """Coverage of the program by all packets so far; empty if the switch does not report it."""
        total = Coverage()
        if self._wires is None:
            total.add(self._traced.program.points, self._switch.passed())
        return total

    # State by name

    def _read_register(self, cells: CellArray, indices: Sequence[int] | None) -> list[int]:
        if (port := self._thrift_port) is None:
            return super()._read_register(cells, indices)
        values = bmv2_process.register(port, cells.name)
        return [cells.number(values[self._checked(cells, index)]) for index in indices or range(cells.size)]

    def _write_register(self, cells: CellArray, name: str, index: int, value: int) -> None:
        if (port := self._thrift_port) is None:
            super()._write_register(cells, name, index, value)
            return
        if not 0 <= value < 1 << cells.bits:
            raise UserError(f"register {name!r}, cell {index}: expected a value of {cells.bits} bits, got {value}")
        bmv2_process.set_register(port, cells.name, self._checked(cells, index), value)

    @property
    def _thrift_port(self) -> int | None:
        """Thrift port of BMv2, whose P4Runtime server has no registers; None for other switches."""
        return None if self._wires is None else self._wires.thrift_port

    @staticmethod
    def _checked(cells: CellArray, index: int) -> int:
        if not 0 <= index < cells.size:
            raise UserError(f"register {cells.name!r}: no cell {index}, expected one below {cells.size}")
        return index

    def table(self, name: str) -> Table:
        """Return a table: `switch.table("ipv4_lpm").add(dst="10.0.0.0/24", action="forward", port=1)`.

        Parameters
        ----------
        name
            Name in the P4 source, or its last component if unique.

        Returns
        -------
        Table
            Table to read and write.

        Raises
        ------
        UserError
            For an unknown table.
        """
        return Table(self._client, self._known, name)

    def multicast_group(self, group: int, ports: Iterable[int | tuple[int, int]]) -> None:
        """Set the destinations of copies for a multicast group.

        Parameters
        ----------
        group
            Group number.
        ports
            Ports, or (port, instance) pairs.

        Raises
        ------
        UserError
            For numbers out of range.
        """
        self.write(MulticastGroup(group, tuple(_replicas(ports))))

    def clone_session(self, session: int, ports: Iterable[int | tuple[int, int]], truncate_bytes: int = 0) -> None:
        """Set the destinations of the copies of a clone session.

        Parameters
        ----------
        session
            Session number.
        ports
            Ports, or (port, instance) pairs.
        truncate_bytes
            Length of the copies. 0: whole packets.

        Raises
        ------
        UserError
            For numbers out of range.
        """
        self.write(CloneSession(session, tuple(_replicas(ports)), truncate_bytes))

    def digests(self) -> list[tuple[str, dict[str, int]]]:
        """Name and fields of the digests since the last call."""
        if self._wires is not None:
            return list(_digests.taken(self._wires.client, self._known.p4info))
        decoded = []
        for ident, data in self._switch.digests():
            name, fields = self._decoder.digest(ident, data)
            decoded.append((name, {field.name: field.value for field in fields}))
        return decoded


def _with_layouts(left: Iterable[tuple[int, bytes]], trace: Trace) -> Iterator[Output]:
    """Yield the frames that left, with the headers that the deparser emitted if the trace reports them."""
    known = [(event.port, event.frame, layout) for event, layout in layouts(trace)]
    for port, frame in left:
        output = Output(port, frame)
        if (traced := next((one for one in known if one[:2] == (port, frame)), None)) is not None:
            known.remove(traced)
            output.layout = traced[2]
        yield output


def _arguments(packet: tuple[Any, ...], now: int, named: dict[str, Any]) -> tuple[int, bytes, int]:
    """Return port, frame and tick of `send(port, packet, now)` and of `send(frame, port, now)`."""
    given = list(packet)
    for name in ("packet", "frame"):
        if name in named:
            given.append(named.pop(name))
    if "port" in named:
        given.insert(0, named.pop("port"))
    if named or not 2 <= len(given) <= 3:
        raise TypeError("send: expected a port, a packet, and a tick or none")
    if len(given) == 3:
        now = given[2]
    first, second = given[:2]
    port, frame = (first, second) if isinstance(first, int) else (second, first)
    if not isinstance(port, int):
        raise TypeError(f"send: expected the number of a port, got {port!r}")
    return port, bytes(frame), now


def _replicas(ports: Iterable[int | tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for port in ports:
        yield (port, 0) if isinstance(port, int) else port
