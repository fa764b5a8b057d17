"""The switches of the packet tests: the built-in switch and, if it is installed, BMv2.

A rig is one switch with one program and its entries. `run` sends packets through it and returns the
output, by port. BMv2 works on capture files, so that root is not needed. Its clock cannot be set,
and its state cannot be read between two packets.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from scapy.utils import RawPcapReader, RawPcapWriter

from control_plane import controller, load_balancing, pipelines, programs
from control_plane.programs import SwitchView
from control_plane.programs.entries import (
    Action,
    DefaultAction,
    Entry,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    PortGroup,
    TableEntry,
)
from p4switch import processes
from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.compiler import Compiled
from p4switch.coverage import collector
from p4switch.logged_process import LoggedProcess
from p4switch.p4runtime import Device
from p4switch.p4runtime.client import LocalClient
from p4switch.stf.bmv2_rig import files_command
from p4switch.tcp_ports import await_listener, free_port
from topologies.model import renumbered

if TYPE_CHECKING:
    from p4switch.engine import Switch


@dataclass(frozen=True)
class Sent:
    """Frame sent into a port. `now` is the switch's clock in ticks, if the clock can be set."""

    port: int
    frame: bytes
    now: int = 0


Received = dict[int, list[bytes]]

MAX_PORTS = 512  # size of a counter with a cell for each port


class Rig(ABC):
    """Switch whose ports are numbered from 1, as on the front panel of a chip."""

    sets_clock: bool
    architecture: str | None = None
    """Architecture of the program; None: that of its `main`."""

    @abstractmethod
    def __init__(
        self, program: str, entries: Iterable[Entry], load_balancer: str = "ecmp", **defines: str
    ) -> None: ...

    @classmethod
    def device_port(cls, port: int) -> int:
        """Return the program's number of a port of the front panel."""
        panel = None if cls.architecture is None else ARCHITECTURES.find(cls.architecture).front_panel
        return port if panel is None else panel.device_ports()[port - 1]

    @classmethod
    def device_view(cls, view: SwitchView) -> SwitchView:
        """Return a view with the program's port numbers."""
        if cls.architecture is None:
            return view
        number = cls.device_port
        panel = ARCHITECTURES.find(cls.architecture).front_panel
        ports = {} if panel is None else {view.name: tuple(panel.device_ports())}
        return replace(
            view,
            architecture=cls.architecture,
            port_rates_bps={number(port): rate_bps for port, rate_bps in view.port_rates_bps.items()},
            routes=[replace(route, ports=tuple(map(number, route.ports))) for route in view.routes],
            neighbours={number(port): there for port, there in view.neighbours.items()},
            network=view.network and renumbered(view.network, ports),
        )

    def __enter__(self) -> Rig:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def run(self, packets: Iterable[Sent]) -> Received: ...

    @abstractmethod
    def counter(self, name: str, index: int) -> int:
        """Return the packets that an indirect counter has counted so far."""

    def close(self) -> None:
        return


def builtin(what: pipelines.Build, compiler: str = "builtin") -> tuple[pipelines.Pipeline, Switch]:
    """Return a pipeline and a switch with it. The switch counts coverage if it is collected (`--p4-coverage`).

    Coverage is not counted for output of p4c, which divides the source into other statements.
    """
    built = pipelines.pipeline(what, trace=collector.collecting() and compiler == "builtin", compiler=compiler)
    switch = built.switch(device_id=1, seed=1)
    if built.traced is not None:
        collector.watch(built.traced.program.points, switch)
    return built, switch


class BuiltinRig(Rig):
    """Rig of the built-in switch, programmed with P4Runtime messages as in a run."""

    sets_clock = True
    compiler = "builtin"

    def __init__(
        self, program: str, entries: Iterable[Entry], load_balancer: str = "ecmp", **defines: str
    ) -> None:
        what = build_of(program, load_balancer, self.architecture, **defines)
        built, self.switch = builtin(what, self.compiler)
        controller.program_switch(LocalClient(Device(lambda _: self.switch)), built.program, entries)
        self._counters = {c.preamble.alias: c for c in built.program.p4info.counters}
        self._panel_ports = {self.device_port(port): port for port in range(1, 33)}

    def run(self, packets: Iterable[Sent]) -> Received:
        received: Received = defaultdict(list)
        for packet in packets:
            for port, frame in self.switch.process(self.device_port(packet.port), packet.frame, packet.now):
                received[self._panel_ports[port]].append(frame)
            for _, text in self.switch.said()[0]:
                print(text)  # pytest shows it if a test fails
            assert self.switch.failed_assert is None, self.switch.failed_assert
        return received

    def counter(self, name: str, index: int) -> int:
        counter = self._counters[name]
        cell = self.device_port(index) if counter.size == MAX_PORTS else index
        return self.switch.counter_read(counter.preamble.name, cell)[0]


class P4cRig(BuiltinRig):
    """Rig of the built-in switch with p4c's output."""

    compiler = "p4c"


class TnaRig(BuiltinRig):
    """Rig of the built-in switch with the program in its form for TNA."""

    architecture = "tna"


class T2naRig(BuiltinRig):
    """Rig of the built-in switch with the program in its form for T2NA."""

    architecture = "t2na"


class Bmv2Rig(Rig):
    """Rig of simple_switch, programmed through simple_switch_CLI. One `run` sends all packets.

    The input files are pipes, so that no packet arrives before the entries are added.
    """

    sets_clock = False
    ports = range(1, 9)
    compiler = "builtin"
    gap_s = 0.0  # time between two packets into a port

    def __init__(
        self, program: str, entries: Iterable[Entry], load_balancer: str = "ecmp", **defines: str
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="p4cc-bmv2-")
        self._json = Path(self._directory.name) / "program.json"
        made = compiled(program, self.compiler, load_balancer, **defines)
        self._config, p4info = made.json, made.p4info
        self._json.write_text(json.dumps(self._config))
        self._counters = {c.preamble.alias: c.preamble.name for c in p4info.counters}
        known = controller.Program(p4info, b"")
        plain = [
            one
            for entry in entries
            for one in (known.entries_of_group(entry) if isinstance(entry, PortGroup) else [entry])
        ]
        self._commands = Bmv2Commands(self._config).of(plain)
        self._process: LoggedProcess | None = None
        self._thrift = free_port()
        self._last_counters = ""

    def run(self, packets: Iterable[Sent]) -> Received:
        assert self._process is None, "BMv2 takes all packets at once"
        packets = list(packets)
        programmed = threading.Event()
        for port in self.ports:
            os.mkfifo(self._file(port, "in"))
            frames = [(order, packet.frame) for order, packet in enumerate(packets) if packet.port == port]
            threading.Thread(target=self._feed, args=(port, frames, programmed), daemon=True).start()
        folder = Path(self._directory.name)
        command = files_command(self._json, {port: str(port) for port in self.ports}, self._thrift)
        self._process = LoggedProcess(command, folder / "log", folder)
        # Its queues have room for 64 packets, and may overflow on a busy machine.
        answer = self._cli([f"set_queue_depth {len(packets)}", *self._commands])
        assert not re.search("Error|Invalid", answer), answer
        programmed.set()
        return self._collect()

    def _feed(self, port: int, frames: Sequence[tuple[int, bytes]], programmed: threading.Event) -> None:
        with RawPcapWriter(str(self._file(port, "in")), linktype=1, sync=True) as writer:
            writer.write_header(None)
            programmed.wait(60)
            for order, frame in frames:
                writer.write_packet(frame, sec=0, usec=order)  # simple_switch merges the files by time
                time.sleep(self.gap_s)

    def _collect(self) -> Received:
        """Return the contents of the files after they have stopped growing."""
        sizes: list[int] = []
        clock = processes.AwakeClock()
        quiet_since = 0.0
        while quiet_since + 1.5 > clock.seconds() < 20:
            time.sleep(0.1)
            now = [path.stat().st_size for port in self.ports if (path := self._file(port, "out")).exists()]
            if now != sizes:
                sizes, quiet_since = now, clock.seconds()
        self._last_counters = self._cli([f"counter_read {name} {index}" for name, index in self._all_counters()])
        assert self._process is not None
        self._process.end()
        received: Received = {}
        for port in self.ports:
            path = self._file(port, "out")
            if path.exists() and path.stat().st_size > 24:
                with RawPcapReader(str(path)) as reader:
                    received[port] = [frame for frame, _ in reader]
        return defaultdict(list, received)

    def _all_counters(self) -> list[tuple[str, int]]:
        return [(c["name"], index) for c in self._config["counter_arrays"] for index in range(min(10, c["size"]))]

    def counter(self, name: str, index: int) -> int:
        full = self._counters[name]
        for line in self._last_counters.splitlines():
            found = re.search(rf"{re.escape(full)}\[{index}\]=.*?(\d+) packets", line)
            if found:
                return int(found[1])
        raise LookupError(f"{name}[{index}]: {self._last_counters}")

    def close(self) -> None:
        if self._process is not None:
            self._process.end()
        self._directory.cleanup()

    def _file(self, port: int, direction: str) -> Path:
        return Path(self._directory.name) / f"{port}_{direction}.pcap"

    def _cli(self, commands: Sequence[str]) -> str:
        await_listener(self._thrift, 10)
        folder = Path(self._directory.name)
        (folder / "commands").write_text("\n".join(commands) + "\n")
        command = ["sh", "-c", 'simple_switch_CLI --thrift-port "$0" < commands', str(self._thrift)]
        done = processes.run(command, timeout_s=60, folder=folder)
        return done.stdout + done.stderr


class ReplayedRig(BuiltinRig):
    """Rig for tests whose packets depend on earlier results, which the built-in switch provides.

    `replay` then sends the same packets to BMv2, some ticks of its clock apart, and expects the same
    frames.
    """

    def __init__(
        self, program: str, entries: Iterable[Entry], load_balancer: str = "ecmp", **defines: str
    ) -> None:
        super().__init__(program, entries, load_balancer, **defines)
        self._other = Bmv2Rig(program, entries, load_balancer, **defines)
        self._other.gap_s = 0.001
        self._sent: list[Sent] = []
        self._received: Received = defaultdict(list)

    def run(self, packets: Iterable[Sent]) -> Received:
        packets = list(packets)
        received = super().run(packets)
        self._sent += packets
        for port, frames in received.items():
            self._received[port] += frames
        return received

    def replay(self) -> None:
        assert self._sent
        assert _by_class(self._other.run(self._sent)) == _by_class(self._received)

    def close(self) -> None:
        self._other.close()


def _by_class(received: Received) -> dict[tuple[int, int], list[bytes]]:
    """Return frames by port and DSCP, because BMv2 sends the packets of a higher class first."""
    found: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for port, frames in received.items():
        for frame in frames:
            found[port, frame[15] >> 2].append(frame)
    return dict(found)


class P4cBmv2Rig(Bmv2Rig):
    """Rig of BMv2 with p4c's output, the tools that most users have."""

    compiler = "p4c"


class Bmv2Commands:
    """Converter of entries to commands of simple_switch_CLI."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._keys = {t["name"]: t["key"] for p in config["pipelines"] for t in p["tables"]}
        self._profiles = {t["name"]: t.get("action_profile") for p in config["pipelines"] for t in p["tables"]}
        self._params = {a["name"]: [d["name"] for d in a["runtime_data"]] for a in config["actions"]}
        self._members = 0
        self._groups = 0
        self._nodes = 0

    def of(self, entries: Iterable[Entry]) -> list[str]:
        return [command for entry in entries for command in self._entry(entry)]

    def _entry(self, entry: Entry) -> list[str]:
        if isinstance(entry, MulticastGroup):
            commands = [f"mc_mgrp_create {entry.group_id}"]
            for port, instance in entry.replicas:
                commands.append(f"mc_node_create {instance} {port}")
                commands.append(f"mc_node_associate {entry.group_id} {self._nodes}")
                self._nodes += 1
            return commands
        assert isinstance(entry, TableEntry | DefaultAction)
        table = _named(entry.table, self._keys)
        if isinstance(entry, DefaultAction):
            return [f"table_set_default {table} {self._call(entry.action)}"]
        key = " ".join(_match(entry.match.get(k["name"]), k) for k in self._keys[table])
        if not isinstance(entry.action, tuple):
            name, *values = self._call(entry.action).split()
            return [f"table_add {table} {name} {key} => {' '.join(values)}"]
        profile = self._profiles[table]
        commands = [f"act_prof_create_group {profile}"]
        for action in entry.action:
            commands.append(f"act_prof_create_member {profile} {self._call(action)}")
            commands.append(f"act_prof_add_member_to_group {profile} {self._members} {self._groups}")
            self._members += 1
        commands.append(f"table_indirect_add_with_group {table} {key} => {self._groups}")
        self._groups += 1
        return commands

    def _call(self, action: Action) -> str:
        name = _named(action.name, self._params)
        return " ".join([name, *(str(action.params[p]) for p in self._params[name])])


def _named(alias: str, known: Iterable[str]) -> str:
    return next(name for name in known if name == alias or name.endswith("." + alias))


def _match(match: Match | None, key: dict[str, Any]) -> str:
    if isinstance(match, Exact):
        return str(match.value)
    if isinstance(match, Lpm):
        address = ".".join(str(byte) for byte in match.value.to_bytes(4, "big"))
        return f"{address}/{match.prefix_len}"
    raise NotImplementedError(f"{key['name']}: {match}")


def build_of(
    program: str, load_balancer: str, architecture: str | None = None, **defines: str
) -> pipelines.Build:
    balancer = load_balancing.find(load_balancer, load_balancing.DIRECTORY)
    source = programs.program(program).source
    return pipelines.Build.of(source, balancer, defines, architecture=architecture)


def compiled(
    program: str, compiler: str, load_balancer: str = "ecmp", **defines: str
) -> Compiled:
    return pipelines.compiled(build_of(program, load_balancer, **defines), compiler)


def tables_of(rig: type[Rig], program: str, load_balancer: str, **defines: str) -> frozenset[str]:
    """Return the tables that a program has on a rig. The program's entries may depend on them."""
    made = pipelines.compiled(build_of(program, load_balancer, rig.architecture, **defines))
    return controller.Program(made.p4info, b"").tables


RIGS: dict[str, type[BuiltinRig] | type[Bmv2Rig]] = {
    "builtin": BuiltinRig,
    "tna": TnaRig,
    "t2na": T2naRig,
    "bmv2": Bmv2Rig,
    "p4c": P4cRig,
    "p4c-bmv2": P4cBmv2Rig,
}


STEPWISE: dict[str, type[BuiltinRig]] = {"builtin": BuiltinRig, "bmv2": ReplayedRig, "p4c": P4cRig}


def missing(rig: str) -> str | None:
    """Return the reason why a rig cannot be used here, or None."""
    tools = [pipelines.P4C] if "p4c" in rig else []
    tools += ["simple_switch", "simple_switch_CLI"] if "bmv2" in rig else []
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return f"{absent[0]} is not installed" if absent else None
