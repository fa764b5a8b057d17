"""Packet tests on BMv2: `simple_switch` with packets from files, configured through `simple_switch_CLI`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from scapy.utils import PcapWriter, RawPcapReader

from p4switch.architectures.packet_path import path_of
from p4switch.bmv2 import read
from p4switch.errors import UserError
from p4switch.logged_process import LoggedProcess
from p4switch.processes import AwakeClock
from p4switch.stf.bmv2_inputs import CLOCK, DEPTH, PENDING, Write, is_wide, with_inputs
from p4switch.stf.language import Command, StfError, number, words
from p4switch.stf.names import Names, find
from p4switch.stf.runner import Runner, Sent
from p4switch.tcp_ports import await_listener, free_port

_START_S = 30.0  # time for simple_switch to start on a busy machine
_QUIET_S = 0.5  # time without departing packets after which all packets count as processed


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UserError(f"{name} is not in PATH: packet tests on BMv2 need simple_switch and simple_switch_CLI")
    return path


def require() -> None:
    """Raise UserError if BMv2's tools are missing."""
    for name in ("simple_switch", "simple_switch_CLI"):
        _tool(name)


class _Cli:
    """Interactive simple_switch_CLI process."""

    PROMPT = b"RuntimeCmd: "

    def __init__(self, port: int, folder: Path) -> None:
        self._process = subprocess.Popen(
            [_tool("simple_switch_CLI"), "--thrift-port", str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
        )  # fmt: skip
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        data = b""
        while not data.endswith(self.PROMPT):
            byte = self._process.stdout.read(1)
            if not byte:
                raise UserError(f"simple_switch_CLI ended: {data.decode(errors='replace').strip()[-200:]}")
            data += byte
        return data[: -len(self.PROMPT)].decode(errors="replace")

    def __call__(self, command: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(command.encode() + b"\n")
        self._process.stdin.flush()
        answer = self._answer()
        if re.search(r"Error|Invalid|Unknown|expected", answer):
            raise ValueError(f"{command}: {answer.strip().splitlines()[-1]}")
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Bmv2Switch:
    """BMv2 switch with the part of the engine's `Switch` interface that packet tests need."""

    def __init__(self, cli: Callable[[str], str], document: dict[str, Any]) -> None:
        self.cli = cli
        self._kinds: dict[str, tuple[list[str], bool]] = {}
        for pipeline in document["pipelines"]:
            for table in pipeline["tables"]:
                kinds = [k["match_type"] for k in table["key"]]
                self._kinds[table["name"]] = kinds, table["match_type"] in ("ternary", "range")
        self._groups: dict[int, int] = {}
        self._wide = 0  # number of writes of wide registers so far
        self._value_sets = Names.of(read(document)).value_sets
        self._direct: dict[tuple[str, str], str] = {}  # name of each direct object, by "counter" or "meter" and table
        for kind in ("counter", "meter"):
            for array in document[f"{kind}_arrays"]:
                if array.get("is_direct"):
                    self._direct[kind, array["binding"]] = array["name"]

    def table_add(self, table: str, key: Sequence[Any], priority: int, target: Any) -> int:
        kinds, prioritized = self._kinds[table]
        words = [self._key(kind, *k) for kind, k in zip(kinds, key, strict=True)]
        match = " ".join(words)
        if target[0] == "member":
            command = f"table_indirect_add {table} {match} => {target[1]}"
        else:
            command = f"table_add {table} {target[1]} {match} => {_data(target[2])}"
        return self._handle(command + (f" {1_000_000 - priority}" if prioritized else ""))

    def _handle(self, command: str) -> int:
        answer = self.cli(command)
        match = re.search(r"handle (\d+)", answer)
        if match is None:
            raise ValueError(answer.strip().splitlines()[-1])
        return int(match[1])

    def member_add(self, profile: str, action: str, args: Sequence[bytes]) -> int:
        return self._handle(f"act_prof_create_member {profile} {action} {_data(args)}")

    @staticmethod
    def _key(kind: str, value: bytes, other: bytes | int) -> str:
        text = "0x" + value.hex()
        if isinstance(other, int):
            return f"{text}/{other}"
        if kind in ("ternary", "range"):
            return f"{text}{'&&&' if kind == 'ternary' else '->'}0x{other.hex()}"
        return text

    def table_set_default(self, table: str, target: Any) -> None:
        if target[0] == "member":
            self.cli(f"table_indirect_set_default {table} {target[1]}")
        else:
            self.cli(f"table_set_default {table} {target[1]} {_data(target[2])}")

    def table_clear(self, table: str) -> None:
        self.cli(f"table_clear {table}")

    def multicast_set(self, group: int, replicas: Sequence[tuple[int, int]] | None) -> None:
        if group in self._groups:
            self.cli(f"mc_mgrp_destroy {self._groups.pop(group)}")
        if replicas is None:
            return
        self.cli(f"mc_mgrp_create {group}")
        self._groups[group] = group
        for rid in dict.fromkeys(rid for _, rid in replicas):
            ports = " ".join(str(port) for port, r in replicas if r == rid)
            match = re.search(r"handle (\d+)", self.cli(f"mc_node_create {rid} {ports}"))
            assert match is not None
            self.cli(f"mc_node_associate {group} {match[1]}")

    def clone_session_set(
        self, session: int, replicas: Sequence[tuple[int, int]] | None, truncate_bytes: int = 0
    ) -> None:
        if replicas is None:
            self.cli(f"mirroring_delete {session}")
        elif len(replicas) == 1 and replicas[0][1] == 0:
            self.cli(f"mirroring_add {session} {replicas[0][0]}")
        else:
            group = 60_000 + session
            self.multicast_set(group, replicas)
            self.cli(f"mirroring_add_mc {session} {group}")

    def counter_read(self, name: str, index: int) -> tuple[int, int]:
        answer = self.cli(f"counter_read {name} {index}")
        # The output is `name[0]= (60 bytes, 1 packets)` since 2020, and was `BmCounterValue(packets=1, bytes=60)`
        # before.
        packets, nbytes = (re.search(rf"(\d+) {unit}\b|\b{unit}=(\d+)", answer) for unit in ("packets", "bytes"))
        if packets is None or nbytes is None:
            raise ValueError(answer.strip())
        return int(packets[1] or packets[2]), int(nbytes[1] or nbytes[2])

    def direct_counter_read(self, table: str, handle: int) -> tuple[int, int]:
        return self.counter_read(self._direct["counter", table], handle)

    def direct_counter_write(self, table: str, handle: int, packets: int, nbytes: int) -> None:
        self.counter_write(self._direct["counter", table], handle, packets, nbytes)

    def counter_write(self, name: str, index: int, packets: int, nbytes: int) -> None:
        self.cli(f"counter_write {name} {index} {packets} {nbytes}")

    def register_read(self, name: str, index: int) -> None:
        self.cli(f"register_read {name} {index}")

    def register_write(self, name: str, index: int, value: bytes) -> None:
        if is_wide(8 * len(value)):
            self.cli(f"register_write {PENDING} {self._wide} 1")  # the next packet executes the write
            self._wide += 1
            return
        number = int.from_bytes(value, "big")
        self.cli(f"register_write {name} {index} {number - (number >> 63 << 64)}")  # the CLI takes a signed number

    def value_set_set(self, name: str, members: Sequence[Sequence[tuple[bytes, bytes]]]) -> None:
        self.cli(f"pvs_clear {name}")
        widths = self._value_sets[name]
        for member in members:
            whole = 0
            for (value, mask), width in zip(member, widths, strict=True):
                if int.from_bytes(mask, "big") != (1 << width) - 1:
                    raise ValueError(f"members of {name}: BMv2 has no masks; expected numbers")
                whole = whole << width | int.from_bytes(value, "big")
            self.cli(f"pvs_add {name} {whole:#x}")

    def clock_set(self, tick: int) -> None:
        self.cli(f"register_write {CLOCK} 0 {tick}")

    def depth_set(self, cells: int) -> None:
        self.cli(f"register_write {DEPTH} 0 {cells}")

    def meter_set(self, name: str, index: int, config: tuple[int, int, int, int]) -> None:
        rates = f"{config[0] / 1e6}:{config[1]} {config[2] / 1e6}:{config[3]}"
        self.cli(f"meter_set_rates {name} {index} {rates}")

    def direct_meter_set(self, table: str, handle: int, config: tuple[int, int, int, int]) -> None:
        self.meter_set(self._direct["meter", table], handle, config)


def _data(args: Sequence[bytes]) -> str:
    return " ".join("0x" + a.hex() for a in args)


class Feed:
    """Feed of the ports' input files, which lets simple_switch process one packet at a time.

    simple_switch knows the next packet of each file that has not ended, and processes the earliest
    of them. Then it waits for the next packet of the same file. Therefore it processes packet n,
    and no later packet, once each other file has supplied a packet after n or has ended.
    """

    def __init__(self, packets: Sequence[tuple[int, bytes]], writers: Mapping[int, Any]) -> None:
        self._ports = [port for port, _ in packets]
        self._writers = dict(writers)  # writers of files that are still open
        self._waiting: dict[int, deque[tuple[int, bytes]]] = {port: deque() for port in writers}
        for position, (port, frame) in enumerate(packets):
            self._waiting[port].append((position, frame))
        self._shown = dict.fromkeys(writers, -1)  # number of the last packet written to each file
        self._released = 0

    def release(self) -> None:
        """Let the next packet be processed."""
        now, self._released = self._released, self._released + 1
        for port, writer in list(self._writers.items()):
            waiting = self._waiting[port]
            other = port != self._ports[now]
            while waiting and (waiting[0][0] <= now or (other and self._shown[port] <= now)):
                self._shown[port], frame = waiting.popleft()
                seconds, microseconds = divmod(self._shown[port], 1_000_000)
                writer.write_packet(frame, sec=seconds, usec=microseconds)
            writer.flush()
            if other and self._shown[port] <= now:
                self._writers.pop(port).close()

    def close(self) -> None:
        """End the input after the last packet."""
        while self._writers:
            self._writers.popitem()[1].close()


class _Runner(Runner):
    """Runner that writes packets to simple_switch's input files, and reads packets from its output files."""

    def __init__(self, document: dict[str, Any], cli: _Cli, folder: Path, writers: Mapping[int, Any]) -> None:
        super().__init__(read(document), Bmv2Switch(cli, document))  # type: ignore[arg-type]
        self._folder = folder
        self._writers = writers
        self._feed: Feed | None = None
        self._settled = True  # True if all packets have certainly been processed
        self._timed = False

    def _packet(self, command: Command) -> None:
        assert self._feed is not None
        if self._timed:  # one packet at a time, because its egress also reads the clock
            self._settle()
        self._feed.release()
        self._packet_lines.append(command.line)
        self._settled = False

    def _clock(self, command: Command) -> None:
        super()._clock(command)
        self.switch.clock_set(self.now)  # type: ignore[attr-defined]

    def _queue(self, command: Command) -> None:
        super()._queue(command)
        self.switch.depth_set(self.depth)  # type: ignore[attr-defined]

    def run(self, commands: Iterable[Command]) -> None:
        """Run the commands, but compare nothing, because the output is known only when simple_switch has ended.

        A command other than `packet` takes effect after the packets before it and before the packets after it.
        """
        commands = list(commands)
        self._timed = any(command.name == "clock" for command in commands)
        if self._timed:
            self.switch.clock_set(self.now)  # type: ignore[attr-defined]
        self._feed = Feed([self.packet_of(c) for c in commands if c.name == "packet"], self._writers)
        for command in commands:
            if command.name not in ("packet", "expect", "wait"):
                self._settle()
            self.carry_out(command)
        self._feed.close()
        self._settle()

    def _settle(self) -> None:
        if self._settled:
            return
        sizes: list[int] = []
        quiet = 0.0
        while quiet < _QUIET_S:
            time.sleep(0.1)
            files = [self._output(port) for port in self._writers]
            now = [f.stat().st_size if f.is_file() else 0 for f in files]
            quiet = quiet + 0.1 if now == sizes else 0.0
            sizes = now
        self._settled = True

    def _output(self, port: int) -> Path:
        return self._folder / f"pcap{port}_out.pcap"

    def collect(self) -> None:
        """Read the packets that simple_switch has sent. It must have ended."""
        for port in self._writers:
            out = self._output(port)
            if out.is_file() and out.stat().st_size:
                with RawPcapReader(str(out)) as reader:
                    self.sent[port] = [Sent(data) for data, _ in reader]


def _prepared(document: dict[str, Any], commands: Sequence[Command]) -> dict[str, Any]:
    """Return the program with the additions that the test needs."""
    used = {command.name for command in commands}
    program = read(document)
    registers = Names.of(program).registers
    wide: list[Write] = []
    for command in commands:
        if command.name not in ("register_write", "register_reset"):
            continue
        name, *given = words(command.args) or [""]
        register = find(command, "register", name, registers)
        size, width = registers[register]
        if not is_wide(width):
            continue
        if command.name == "register_reset":
            wide += [(register, index, 0) for index in range(size)]
        elif len(given) == 2:
            index, value = (number(command, word) for word in given)
            if not 0 <= index < size:
                raise StfError(command.line, f"register {register}: expected an index below {size}, not {index}")
            wide.append((register, index, value & (1 << width) - 1))
    return with_inputs(document, path_of(program), "clock" in used, "queue" in used, wide)


def run_on_bmv2(document: dict[str, Any], commands: Sequence[Command]) -> None:
    """Run a test on BMv2.

    Raises UserError if the test fails.
    """
    document = _prepared(document, commands)
    ports = sorted({int(c.args.split()[0]) for c in commands if c.name in ("packet", "expect")})
    with tempfile.TemporaryDirectory(prefix="p4cc-stf-") as name:
        folder = Path(name)
        (folder / "program.json").write_text(json.dumps(document))
        # simple_switch reads the packets from pipes, so that none arrives before it is configured.
        for port in ports:
            os.mkfifo(folder / f"pcap{port}_in.pcap")
        thrift = free_port()
        command = files_command(Path("program.json"), {port: f"pcap{port}" for port in ports}, thrift)
        with LoggedProcess(command, folder / "log", folder) as switch, contextlib.ExitStack() as stack:
            writers = _open_pipes(ports, switch, folder)
            if not await_listener(thrift, _START_S, switch.over):
                raise _not_started(switch)
            cli = _Cli(thrift, folder)
            stack.callback(cli.close)
            runner = _Runner(document, cli, folder, writers)
            runner.run(commands)
            if switch.over():
                raise UserError(f"simple_switch ended with exit status {switch.exit_status}")
            switch.end()
            runner.collect()
            runner.check()


def files_command(program: Path, files: Mapping[int, str], thrift_port: int) -> list[str]:
    """Return the command of a BMv2 switch whose packets are in files, by port.

    The switch reads arriving packets from NAME_in.pcap and writes departing packets to NAME_out.pcap.

    Raises UserError if BMv2 is not installed.
    """
    interfaces = [word for port, name in files.items() for word in ("-i", f"{port}@{name}")]
    return [
        _tool("simple_switch"), "--use-files", "0", "--thrift-port", str(thrift_port), "--device-id", str(thrift_port),
        *interfaces, str(program), "--", "--priority-queues", "8",  # one queue would have only one priority
    ]  # fmt: skip


def _open_pipes(ports: Sequence[int], switch: LoggedProcess, folder: Path) -> dict[int, Any]:
    """Return writers to the input files.

    simple_switch opens the files one after the other, and waits for the header of each.
    """
    writers: dict[int, Any] = {}
    for port in ports:
        writers[port] = PcapWriter(_open_pipe(folder / f"pcap{port}_in.pcap", switch, folder), linktype=1)
        writers[port].write_header(None)
        writers[port].flush()
    return writers


def _open_pipe(path: Path, switch: LoggedProcess, folder: Path) -> BinaryIO:
    """Open a pipe for writing once simple_switch has opened it for reading."""
    clock = AwakeClock()
    while clock.seconds() < _START_S and not switch.over():
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
            continue
        os.set_blocking(pipe, True)
        return os.fdopen(pipe, "wb")
    raise _not_started(switch)


def _not_started(switch: LoggedProcess) -> UserError:
    return UserError(f"simple_switch did not start: {switch.last_line() or 'no message'}")
