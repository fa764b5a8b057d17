"""Packet tests on BMv2: `simple_switch` with packets from files, configured through `simple_switch_CLI`."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from p4switch.errors import UserError
from p4switch.stf.language import Command
from p4switch.stf.runner import Runner

_START_S = 30.0  # for simple_switch to start, on a busy machine
_QUIET_S = 0.5  # no packet left for so long: all have been handled


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UserError(f"{name} is not in PATH: packet tests on BMv2 need simple_switch and simple_switch_CLI")
    return path


def require() -> None:
    """Raises UserError if BMv2's tools are not there."""
    for name in ("simple_switch", "simple_switch_CLI"):
        _tool(name)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
    return port


class _Cli:
    """An interactive simple_switch_CLI."""

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
    """As much of the engine's `Switch` as packet tests need."""

    def __init__(self, cli: _Cli, document: dict[str, Any]) -> None:
        self.cli = cli
        self._kinds: dict[str, tuple[list[str], bool]] = {}
        for pipeline in document["pipelines"]:
            for table in pipeline["tables"]:
                kinds = [k["match_type"] for k in table["key"]]
                self._kinds[table["name"]] = kinds, table["match_type"] in ("ternary", "range")
        self._groups: dict[int, int] = {}

    def table_add(self, table: str, key: Sequence[Any], priority: int, target: Any) -> int:
        kinds, prioritized = self._kinds[table]
        words = [self._key(kind, *k) for kind, k in zip(kinds, key, strict=True)]
        _, action, args = target
        command = f"table_add {table} {action} {' '.join(words)} => {' '.join('0x' + a.hex() for a in args)}"
        answer = self.cli(command + (f" {1_000_000 - priority}" if prioritized else ""))
        found = re.search(r"handle (\d+)", answer)
        if found is None:
            raise ValueError(answer.strip().splitlines()[-1])
        return int(found[1])

    @staticmethod
    def _key(kind: str, value: bytes, other: bytes | int) -> str:
        text = "0x" + value.hex()
        if isinstance(other, int):
            return f"{text}/{other}"
        if kind in ("ternary", "range"):
            return f"{text}{'&&&' if kind == 'ternary' else '->'}0x{other.hex()}"
        return text

    def table_set_default(self, table: str, target: Any) -> None:
        _, action, args = target
        self.cli(f"table_set_default {table} {action} {' '.join('0x' + a.hex() for a in args)}")

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
            found = re.search(r"handle (\d+)", self.cli(f"mc_node_create {rid} {ports}"))
            assert found is not None
            self.cli(f"mc_node_associate {group} {found[1]}")

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
        found = re.search(r"packets=(\d+), bytes=(\d+)", answer)
        if found is None:
            raise ValueError(answer.strip())
        return int(found[1]), int(found[2])

    def direct_counter_read(self, table: str, handle: int) -> tuple[int, int]:
        return self.counter_read(self._direct_counter(table), handle)

    def _direct_counter(self, table: str) -> str:
        raise ValueError(f"direct counter of {table}: not supported by packet tests on BMv2")

    def counter_write(self, name: str, index: int, packets: int, nbytes: int) -> None:
        self.cli(f"counter_write {name} {index} {packets} {nbytes}")

    def register_read(self, name: str, index: int) -> None:
        self.cli(f"register_read {name} {index}")

    def register_write(self, name: str, index: int, value: bytes) -> None:
        self.cli(f"register_write {name} {index} {int.from_bytes(value, 'big')}")

    def meter_set(self, name: str, index: int, config: tuple[int, int, int, int]) -> None:
        rates = f"{config[0] / 1e6}:{config[1]} {config[2] / 1e6}:{config[3]}"
        self.cli(f"meter_set_rates {name} {index} {rates}")


class _Runner(Runner):
    """Writes packets to simple_switch's input files, and reads what left it from its output files."""

    def __init__(self, document: dict[str, Any], cli: _Cli, folder: Path, writers: dict[int, Any]) -> None:
        super().__init__(document, Bmv2Switch(cli, document))  # type: ignore[arg-type]
        self._folder = folder
        self._writers = writers
        self._packets = 0
        self._settled = 0  # packets that have been handled for sure

    def _packet(self, command: Command) -> None:
        port, frame = self.packet_of(command)
        self._writers[port].write_packet(frame, sec=0, usec=self._packets)
        self._writers[port].flush()
        self._packets += 1

    def run(self, commands: Iterable[Command]) -> None:
        """As `Runner.run`, but that counters are looked at when all packets have been handled.

        simple_switch reads no packet before it knows the first one of every port, so that what is configured between
        packets may already hold for the ones before.
        """
        later: list[Command] = []
        for command in commands:
            if command.name in ("check_counter", "counter_read"):
                later.append(command)
                continue
            if command.name not in ("packet", "expect", "wait") and self._settled < self._packets:
                self._settle()
            self.carry_out(command)
        for writer in self._writers.values():
            writer.close()
        self._settle()
        for command in later:
            self.carry_out(command)

    def _settle(self) -> None:
        sizes: list[int] = []
        quiet = 0.0
        while quiet < _QUIET_S:
            time.sleep(0.1)
            files = [self._output(port) for port in self._writers]
            now = [f.stat().st_size if f.is_file() else 0 for f in files]
            quiet = quiet + 0.1 if now == sizes else 0.0
            sizes = now
        self._settled = self._packets

    def _output(self, port: int) -> Path:
        return self._folder / f"pcap{port}_out.pcap"

    def collect(self) -> None:
        """Reads what was sent; simple_switch must have ended."""
        from scapy.utils import RawPcapReader

        for port in self._writers:
            out = self._output(port)
            if out.is_file() and out.stat().st_size:
                with RawPcapReader(str(out)) as reader:
                    self.sent[port] = [data for data, _ in reader]


def run_on_bmv2(document: dict[str, Any], commands: Sequence[Command]) -> None:
    """Runs a test on BMv2. Raises UserError where it does not hold."""
    ports = sorted({int(c.args.split()[0]) for c in commands if c.name in ("packet", "expect")})
    with tempfile.TemporaryDirectory(prefix="p4cc-stf-") as name:
        folder = Path(name)
        (folder / "program.json").write_text(json.dumps(document))
        # simple_switch reads the packets from pipes, so that it gets none before it has been configured.
        for port in ports:
            os.mkfifo(folder / f"pcap{port}_in.pcap")
        thrift = _free_port()
        interfaces = [word for port in ports for word in ("-i", f"{port}@pcap{port}")]
        switch = subprocess.Popen(
            [
                _tool("simple_switch"), "--use-files", "0", "--thrift-port", str(thrift),
                "--device-id", str(thrift), *interfaces, "program.json",
            ],
            stdout=(folder / "log").open("wb"), stderr=subprocess.STDOUT, cwd=folder,
        )  # fmt: skip
        cli: _Cli | None = None
        try:
            writers = _open_pipes(ports, switch, folder)
            _await_port(thrift, switch, folder)
            cli = _Cli(thrift, folder)
            runner = _Runner(document, cli, folder, writers)
            runner.run(commands)
            if switch.poll() is not None:
                raise UserError(f"simple_switch ended with exit status {switch.returncode}")
            switch.terminate()
            switch.wait()
            runner.collect()
            runner.check()
        finally:
            switch.kill()
            switch.wait()
            if cli is not None:
                cli.close()


def _open_pipes(ports: Sequence[int], switch: subprocess.Popen[bytes], folder: Path) -> dict[int, Any]:
    """Writers to the input files. simple_switch opens them one after the other, and waits for each one's header."""
    from scapy.utils import PcapWriter

    writers: dict[int, Any] = {}
    for port in ports:
        writers[port] = PcapWriter(_open_pipe(folder / f"pcap{port}_in.pcap", switch, folder), linktype=1)
        writers[port].write_header(None)
        writers[port].flush()
    return writers


def _open_pipe(path: Path, switch: subprocess.Popen[bytes], folder: Path) -> BinaryIO:
    """Opens a pipe for writing once simple_switch has opened it for reading."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and switch.poll() is None:
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
            continue
        os.set_blocking(pipe, True)
        return os.fdopen(pipe, "wb")
    raise _not_started(folder)


def _not_started(folder: Path) -> UserError:
    log = (folder / "log").read_text(errors="replace").strip().splitlines()
    return UserError(f"simple_switch did not start: {log[-1] if log else 'no message'}")


def _await_port(port: int, switch: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if switch.poll() is not None:
            break
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise _not_started(folder)
