"""Switch process: ports, pipeline, P4Runtime server, and the connections between them."""
from __future__ import annotations

import itertools
import json
import logging
import queue
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.text_format import ParseError

from p4switch import daemon, engine, ir
from p4switch.architectures.architecture import ARCHITECTURES, Architecture
from p4switch.architectures.front_panel import PIPE_PORT_BITS, FrontPanel
from p4switch.architectures.packet_path import PacketPath, path_of
from p4switch.bfrt.pipes import Pipe, Program
from p4switch.bfrt.server import BfRuntimeServer
from p4switch.bmv2 import read
from p4switch.compiler import compile_pipelines
from p4switch.daemon.config import TrafficSettings, read_changes
from p4switch.daemon.links import LinkWatcher
from p4switch.engine.objects import packed
from p4switch.errors import UserError
from p4switch.output_file import check_writable, write_files
from p4switch.p4runtime.device import Device
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, p4info_pb2, p4runtime_pb2, parse_p4info
from p4switch.p4runtime.ports import PortCounts, port_counts
from p4switch.p4runtime.server import P4RuntimeServer
from p4switch.trace import Decoder, Event, decode_pipes

_LOG = logging.getLogger(__name__)
_POLL_S = 0.01  # interval of polls for digests and idle time-outs
_IDLE_S = 1.0
_LAST_FRAMES_S = 0.25  # time for which an ending switch continues to read the frames of other switches
_RING_SLOTS = 512  # maximum number of arrived frames that wait, per port
_PORT = "port"  # state of a chip's ports in a packet path


@dataclass(frozen=True)
class _Built:
    """Program that was built for a pipe. It may not be installed."""

    path: PacketPath
    decoder: Decoder | None  # decoder of the packet events; None if it reports none


class SwitchProcess:
    """Switch with `interfaces` (by port number), which `start` starts.

    It has one pipe, or several pipes that run programs for chips. Each pipe is a P4Runtime device; pipe
    n has the id `device_id` + n.

    Raises UserError for an interface that does not exist or cannot be opened, and for unsuitable settings.
    """

    def __init__(
        self,
        interfaces: Mapping[int, str],
        *,
        device_id: int = 0,
        cpu_port: int | None = None,
        address: str = "127.0.0.1:9559",
        bfrt_address: str | None = None,
        traffic: TrafficSettings | None = None,
        seed: int = 0,
        drop_port: int | None = None,
        stats_file: Path | None = None,
        changes_file: Path | None = None,
        send: str = "auto",
        early: bool = False,
        trace: Callable[[Event], object] | None = None,
    ) -> None:
        """Create the process.

        Packets that are sent to `drop_port` are dropped; the default is the drop port of the
        program's architecture. `trace` receives the events of each packet, which makes pipelines
        slower. If `bfrt_address` is given, a BfRuntime server for the initial program listens
        there. `early` is passed to `P4RuntimeServer`.
        """
        if stats_file is not None:
            check_writable(stats_file, "--stats")
        traffic = traffic or TrafficSettings()
        self._module = daemon.load()
        self._traffic = traffic
        self._device_id = device_id
        self._seed = seed
        self._drop_port = drop_port
        self._stats_file = stats_file
        self._changes_file = changes_file
        self._send = send
        self._trace = trace
        self.live = self._module.Live(traffic.tick_ns, traffic.cell_bytes, traffic.framing_bytes, traffic.origin_ns)
        self._numbers: set[int] = set()  # numbers of all ports
        for number, interface in interfaces.items():
            self._add_port(number, interface)
        for number in traffic.loops:
            self._add_port(number, None, loops=True)
        if cpu_port is not None:
            self._add_port(cpu_port, None)
        try:
            traffic.apply(self.live, [*interfaces, *traffic.loops])
        except ValueError as error:
            raise UserError(f"--traffic: {error}") from error
        self._control = threading.RLock()  # one lock for all devices, because a BfRuntime client writes them together
        self.devices: list[Device] = []
        self._switches: list[Any] = []  # switch of each pipe; None until it is built
        self._built: list[dict[int, _Built]] = []  # built programs of each pipe, by the id of their switch
        self._looped: frozenset[int] = frozenset()
        first = self._add_pipe()
        self._cpu_port = cpu_port
        self.server = P4RuntimeServer(
            first, address, None if cpu_port is None else lambda frame: self.live.inject(cpu_port, frame), early=early
        )
        self._bfrt_address = bfrt_address
        self.bfrt: BfRuntimeServer | None = None
        self._switch: Any = None  # switch of the first pipe, which stands for the whole switch
        self._stop = threading.Event()
        self._ports = {socket.if_nametoindex(interface): number for number, interface in interfaces.items()}
        self._links = LinkWatcher()
        self._scheduled: queue.PriorityQueue[tuple[int, int, int, bool]] = queue.PriorityQueue()
        """Scheduled changes of links: time, a running number, the port, and whether the link is then up."""
        self._numbers_of_changes = itertools.count()
        self._threads = [threading.Thread(target=self._watch, name="p4runtime events", daemon=True),
                         threading.Thread(target=self._watch_links, name="link events", daemon=True)]

    def _add_port(self, number: int, interface: str | None, *, loops: bool = False) -> None:
        self._numbers.add(number)
        what = f"-i {number}@{interface}" if interface else f"--cpu-port {number}"
        if loops:
            what = f"--traffic: ports: {number}: loops"
        try:
            sender = self.live.add_port(number, interface, _RING_SLOTS, self._send, loops)
        except PermissionError:
            raise UserError(f"{what}: raw sockets need root (or CAP_NET_RAW)") from None
        except FileExistsError:
            raise UserError(f"{what}: expected port numbers below 512, each of them once") from None
        except OSError as error:
            expected = "an interface that exists" + (" and has AF_XDP" if self._send == "xdp" else "")
            raise UserError(f"{what}: {error.strerror}; expected {expected}") from error
        if interface:
            _LOG.info("port %d: %s, frames are sent by %s", number, interface, sender)

    def _add_recirculation(self, first: int, panel: FrontPanel) -> None:
        """Add the recirculation ports of the pipe whose first port is `first`. They have queues but no interfaces."""
        for local in panel.recirculation:
            if first + local not in self._numbers:
                self._add_port(first + local, None, loops=bool(self._traffic.loops))

    def _add_pipe(self) -> Device:
        number = len(self.devices)
        self._switches.append(None)
        self._built.append({})
        device = Device(
            partial(self._build, number), self._device_id + number, install=partial(self._install, number),
            clock_ns=self.live.now_ns, tick_ns=self._traffic.tick_ns, lock=self.live,
            control=self._control, port_counts=self._port_counts,
        )  # fmt: skip
        self.devices.append(device)
        return device

    def _port_counts(self) -> dict[int, PortCounts]:
        return port_counts(self.live.port_counts())

    def set_pipes(self, count: int, looped: Collection[int] = ()) -> None:
        """Give the switch `count` pipes. Packets that leave a port of a pipe in `looped` come back to the same port.

        Raises UserError for a pipe in `looped` that does not exist.
        """
        for pipe in looped:
            if pipe >= count or count == 1:
                raise UserError(f"--loopback-pipe {pipe}: expected one of the {count} pipes of a chip")
        self._looped = frozenset(looped)
        while len(self.devices) < count:
            self.server.add(self._add_pipe())

    def _check_pipe(self, pipe: int, path: PacketPath) -> None:
        """Raise UserError for a program that cannot run together with those of other pipes."""
        if len(self.devices) > 1 and _PORT not in path.states:
            raise UserError(f"expected a program for a chip, as the switch has {len(self.devices)} pipes")
        installed = zip(self._switches, self._built, strict=True)
        paths = {number: built[id(each)].path for number, (each, built) in enumerate(installed) if each is not None}
        if any(each is not path for number, each in paths.items() if number != pipe):
            raise UserError(f"pipe {pipe}: expected a program for the architecture of the other pipes' programs")

    def _build(self, pipe: int, program: ir.Program) -> Any:
        """Build the switch of a pipe. Raises UserError, which P4Runtime reports as INVALID_ARGUMENT."""
        path = path_of(program)
        self._check_pipe(pipe, path)
        if self._drop_port is not None and self._drop_port > path.drop_port:
            raise UserError(f"--drop-port {self._drop_port}: expected at most {path.drop_port}, the architecture's own")
        traced = engine.build_traced(program) if self._trace is not None else None
        library = engine.build(program) if traced is None else traced.library
        tick_ns = self._traffic.model_tick_ns or self._traffic.tick_ns
        switch = self._module.Switch(str(library), device_id=self._device_id, seed=engine.pipe_seed(self._seed, pipe),
                                     tick_ns=tick_ns)
        if self._drop_port is not None:
            switch.drop_port = self._drop_port
        if traced is not None:
            switch.set_tracing(True)
        if pipe in self._looped:
            _loop_back(path, switch, range(pipe << PIPE_PORT_BITS, pipe + 1 << PIPE_PORT_BITS))
        self._built[pipe][id(switch)] = _Built(path, None if traced is None else Decoder(traced))
        return switch

    def _install(self, pipe: int, switch: Any) -> None:
        """Install the switch of a pipe.

        Raises UserError if its program cannot run together with those of other pipes.
        """
        built = self._built[pipe][id(switch)]
        self._check_pipe(pipe, built.path)
        with self.live:
            self._log_messages()
            self.live.set_switch(None)
            self._switches[pipe] = switch
            self._built[pipe] = {id(switch): built}  # other programs were refused
            if None in self._switches:
                return
            self._switch, *others = self._switches
            if others:
                self._switch.join(tuple(others), PIPE_PORT_BITS)
            self.live.set_switch(self._switch)

    def _log_messages(self) -> None:
        """Log the program's messages, failed asserts and packet events."""
        with self.live:
            said, lost = ([], 0) if self._switch is None else self._switch.said()
        failed = Counter(text for is_assert, text in said if is_assert)
        for is_assert, text in said:
            if not is_assert:
                _LOG.info("log_msg: %s", text)
        for text, times in failed.items():
            _LOG.error("an assertion of the program failed%s: %s", f" {times} times" if times > 1 else "", text)
        if lost:
            _LOG.warning("%d more messages of the program were lost", lost)
        if self._switch is None or self._trace is None:
            return
        with self.live:
            traced, lost = self._switch.traced()
        installed = zip(self._switches, self._built, strict=True)
        decoders = [decoder for each, built in installed if (decoder := built[id(each)].decoder) is not None]
        for event in decode_pipes(decoders, traced):
            self._trace(event)
        if lost:
            _LOG.warning("%d more events of packets were lost", lost)

    def load_program(self, config: Path, p4info: Path | None = None) -> None:
        """Load the initial program. Without P4Info, a controller has to set the pipeline before it writes entries."""
        try:
            data = config.read_bytes()
            if p4info is None:
                self._install(0, self._build(0, read(json.loads(data))))
            else:
                self._set_pipeline(self.devices[0], data, _read_p4info(p4info))
        except OSError as error:
            raise UserError(f"{error.filename}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{config}: expected BMv2 JSON: {error}") from error
        except P4RuntimeError as error:
            raise UserError(f"{config}: {error}") from error

    def load_sources(
        self,
        programs: Sequence[Path],
        include: Sequence[Path] = (),
        define: Mapping[str, str] | None = None,
        arch: str | None = None,
        pipes: int | None = None,
        looped: Collection[int] = (),
    ) -> None:
        """Load initial programs from P4 source.

        Pipe n runs pipeline n of all pipelines in the programs. If there are more pipes, the
        pipelines are used again from the first one. There are as many pipes as pipelines, unless
        `pipes` is given. Packets that leave a port of a pipe in `looped` come back to the same
        port.

        Raises UserError, or its subclass CompileError for errors in a program.
        """
        compiled = {program: compile_pipelines(program, include, define, arch) for program in programs}
        pipelines = [(program, each) for program, parts in compiled.items() for each in parts]
        for parts in compiled.values():
            for warning in dict.fromkeys(warning for each in parts for warning in each.warnings):
                print(warning, file=sys.stderr)
        names = {each.p4info.pkg_info.arch for _, each in pipelines}
        architecture = ARCHITECTURES.find(min(names))
        count = len(pipelines) if pipes is None else pipes
        self._check_pipes(architecture, names, count, len(pipelines))
        self.set_pipes(count, looped)
        if architecture.front_panel is not None:
            for pipe in range(count):
                self._add_recirculation(pipe << PIPE_PORT_BITS, architecture.front_panel)
        running: dict[Path, list[Pipe]] = {program: [] for program in programs}
        for number, device in enumerate(self.devices):
            program, each = pipelines[number % len(pipelines)]
            try:
                self._set_pipeline(device, json.dumps(each.json).encode(), each.p4info)
            except (ValueError, P4RuntimeError) as error:
                raise UserError(f"{program}: {error}") from error
            running[program].append(Pipe(number, device, each))
        if self._bfrt_address is not None:
            served = [Program(program.stem, parts) for program, parts in running.items()]
            self.bfrt = BfRuntimeServer(served, self._bfrt_address, architecture.fixed_tables)

    @staticmethod
    def _check_pipes(architecture: Architecture, names: Collection[str], count: int, pipelines: int) -> None:
        """Raise UserError for programs that cannot run together, and for more pipes than the architecture has."""
        if len(names) > 1:
            raise UserError(f"programs for {' and '.join(sorted(names))}; expected programs for one architecture")
        most = 1 if architecture.front_panel is None else architecture.front_panel.pipes
        if not pipelines <= count <= most:
            held = "1 pipe" if most == 1 else f"{most} pipes"
            raise UserError(f"{pipelines} pipelines on {count} pipes; {architecture.name} has at most {held}")

    def _set_pipeline(self, device: Device, config: bytes, p4info: Message) -> None:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
            device_id=device.device_id, action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT)
        request.config.p4_device_config = config
        request.config.p4info.CopyFrom(p4info)
        device.set_forwarding_pipeline_config(request)

    def start(self) -> None:
        """Start forwarding and accept controllers.

        Raises UserError if the server cannot listen on the address.
        """
        self.server.start()
        if self.bfrt is not None:
            self.bfrt.start()
        self.live.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop servers and forwarding, and write the statistics file if one is configured.

        Raises UserError if the file cannot be written.
        """
        self._stop.set()
        if self._stats_file is not None:
            # Switches that end together first stop sending, and continue to read the frames of the
            # others for a while. Otherwise a frame to a switch that has already ended would be missing
            # from all counters.
            self.live.hold()
            time.sleep(_LAST_FRAMES_S)
        self.server.stop()
        if self.bfrt is not None:
            self.bfrt.stop()
        self.live.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self._links.close()
        self._log_messages()
        self._write_stats()

    def _write_stats(self) -> None:
        if self._stats_file is not None:
            counters = {"monotonic_ns": time.monotonic_ns(), **self.live.stats()}
            write_files({self._stats_file: json.dumps(counters).encode()})

    def run(self) -> None:
        """Run until SIGTERM or SIGINT; SIGHUP reads the file of link changes, SIGUSR1 writes statistics."""
        asked: dict[int, Callable[[], None]] = {}
        if self._changes_file is not None:
            asked[signal.SIGHUP] = self._change_links
        if self._stats_file is not None:
            asked[signal.SIGUSR1] = self._write_stats
        # Python calls its handlers in the main thread only. A handler would be delayed for ever if the main thread is
        # about to wait, or if the kernel delivers the signal to another thread. The signal's number is therefore read
        # from a socket, to which any thread that receives the signal writes it.
        came, coming = socket.socketpair()
        with came, coming:
            coming.setblocking(False)
            for number in (signal.SIGTERM, signal.SIGINT, *asked):
                signal.signal(number, lambda *_: None)
            before = signal.set_wakeup_fd(coming.fileno())
            try:
                self.start()
                first, *others = (device.device_id for device in self.devices)
                which = f"devices {first} to {others[-1]}" if others else f"device {first}"
                _LOG.info("P4Runtime server at port %d, %s", self.server.port, which)
                if self.bfrt is not None:
                    _LOG.info("BfRuntime server at port %d", self.bfrt.port)
                while (answer := asked.get(came.recv(1)[0])) is not None:
                    try:
                        answer()
                    except UserError as error:
                        _LOG.error("%s", error)
            finally:
                signal.set_wakeup_fd(before)
        self.stop()

    def _change_links(self) -> None:
        assert self._changes_file is not None
        try:
            for change in read_changes(self._changes_file):
                self.live.change_link(
                    change.port,
                    change.time_ns,
                    change.up,
                    change.rate_bps,
                    change.delay_ns,
                    change.loss,
                    change.seed,
                )
                self._scheduled.put((change.time_ns, next(self._numbers_of_changes), change.port, change.up))
        except (UserError, ValueError) as error:
            _LOG.error("%s", error)
        self._links.wake()

    def _watch(self) -> None:
        """Send packet-ins, digests and idle time-outs to the server."""
        while not self._stop.is_set():
            for frame in self.live.take(_POLL_S if any(d.has_timeouts for d in self.devices) else _IDLE_S):
                try:
                    device = self._cpu_device()
                    self.server.publish(device.device_id, device.packet_in(frame))
                except (ValueError, P4RuntimeError) as error:
                    _LOG.warning("packet-in dropped: %s", error)
            self._log_messages()
            for pipe, device in enumerate(self.devices):
                for message in device.poll():
                    self.server.publish(device.device_id, message)
                    if self.bfrt is not None:
                        self.bfrt.publish(pipe, message)
            if self.bfrt is not None:
                self.bfrt.poll()

    def _cpu_device(self) -> Device:
        """Return the device of the pipe with the CPU port."""
        pipe = (self._cpu_port or 0) >> PIPE_PORT_BITS
        return self.devices[pipe if pipe < len(self.devices) else 0]

    def _watch_links(self) -> None:
        """Report link changes to the device, so that watched members and backup replicas are switched."""
        scheduled, wait_s = self._scheduled, _IDLE_S
        while not self._stop.is_set():
            changes = [(self._ports[index], up) for index, up in self._links.changes(wait_s) if index in self._ports]
            while not scheduled.empty() and scheduled.queue[0][0] <= self.live.now_ns():
                *_, port, up = scheduled.get()
                changes.append((port, up))
            for port, up in changes:
                for device in self.devices:
                    device.set_port_up(port, up)
            left_ns = _IDLE_S * 1e9 if scheduled.empty() else scheduled.queue[0][0] - self.live.now_ns()
            wait_s = min(_IDLE_S, max(left_ns / 1e9, 0))


def _loop_back(path: PacketPath, switch: Any, ports: Iterable[int]) -> None:
    """Make frames that leave these ports of a chip come back to them."""
    state = path.states[_PORT]
    for port in ports:
        switch.object_write(state.name, port, packed(state.kind, {"loopback": 1}))


def _read_p4info(path: Path) -> Any:
    data = path.read_bytes()
    try:
        if path.suffix in (".bin", ".pb"):
            return p4info_pb2.P4Info.FromString(data)
        return parse_p4info(data.decode())
    except (DecodeError, ParseError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not P4Info: {str(error).splitlines()[0]}") from error
