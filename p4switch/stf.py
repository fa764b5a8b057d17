"""Packet tests in p4c's STF format: a `.stf` file beside the `.p4` program it tests.

    add ipv4 hdr.ip.dst:0x0a000000/8 forward(port:2)     table entry; names may be suffixes of the full ones
    packet 0 0102030405                                  hex, spaces ignored
    expect 2 01**030405 $                                `*` is any nibble; `$`: nothing may follow

Commands: packet, expect, no_packet, add (with or without priority: the highest wins), setdefault, remove all,
check_counter, wait, mirroring_add, mirroring_add_mc, mirroring_delete, mirroring_get, mc_mgrp_create, mc_node_create,
mc_node_update, mc_node_associate, counter_read, counter_write, register_read, register_write, register_reset,
meter_get_rates, meter_set_rates, meter_array_set_rates.

The packets expected on a port are compared, in order, with what left it. Ports that the test never mentions are not
looked at, unless it says `no_packet`.
"""

from __future__ import annotations

import multiprocessing
import operator
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from p4switch.errors import UserError

if TYPE_CHECKING:
    from p4switch.engine import Switch

TIME_LIMIT_S = 60.0
"""Of one test, compilation included."""


class StfError(UserError):
    """A test that cannot be run, or did not hold: `line N: what`."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")


# The language


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `args` is what follows its name, spaces and comments removed."""

    line: int
    name: str
    args: str


_COMMANDS = {
    "packet", "expect", "no_packet", "add", "setdefault", "remove", "check_counter", "wait", "mirroring_add",
    "mirroring_add_mc", "mirroring_delete", "mirroring_get", "mc_mgrp_create", "mc_node_create", "mc_node_update",
    "mc_node_associate", "counter_read", "counter_write", "register_read", "register_write", "register_reset",
    "meter_get_rates", "meter_set_rates", "meter_array_set_rates",
}  # fmt: skip
_NAME = r"[A-Za-z_$.][\w$.\[\]]*"
_NUMBER = r"[\w*]+"
_VALUE = rf"{_NUMBER}(?:\s*(?:/|&&&|\.\.|->)\s*{_NUMBER})?"
_MATCH = re.compile(rf"\s*({_NAME})\s*:\s*({_VALUE})")
_ACTION = re.compile(rf"\s*({_NAME})\s*\(([^)]*)\)\s*(?:=\s*(\$?\w+))?\s*$")
_ADD = re.compile(rf"({_NAME})\s+(?:(\d+)\s+(?=\S))?(.*)$", re.DOTALL)
_COUNTER = re.compile(
    rf"({_NAME})\s*\(\s*(\$?\w+)\s*\)\s*(?:(packets|bytes)\s*(==|!=|<=|<|>=|>)\s*(\w+))?\s*$", re.IGNORECASE
)
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip


def parse(text: str) -> list[Command]:
    """The commands of a test. A line that does not start with a command continues the one before.

    Raises StfError.
    """
    commands: list[Command] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        word, _, rest = line.partition(" ")
        word = word.split("\t", 1)[0]
        rest = line[len(word) :].strip()
        if word.lower() in _COMMANDS:
            commands.append(Command(number, word.lower(), rest))
        elif commands:
            last = commands[-1]
            commands[-1] = Command(last.line, last.name, f"{last.args} {line}")
        else:
            raise StfError(number, f"'{word}' is not a command")
    return commands


def _number(command: Command, text: str) -> int:
    try:
        return int(text, 0) if not re.fullmatch(r"0\d+", text) else int(text)
    except ValueError:
        raise StfError(command.line, f"'{text}' is not a number") from None


def _digits(command: Command, text: str) -> tuple[int, int, int]:
    """Value, mask and bits a digit of a number in which `*` is any digit; mask 0 bits a digit for decimal."""
    bits = {"0x": 4, "0b": 1, "0o": 3}.get(text[:2].lower())
    if bits is None:
        return _number(command, text), 0, 0
    value = _number(command, text[:2] + text[2:].replace("*", "0"))
    ones = (1 << bits) - 1
    mask = 0
    for digit in text[2:]:
        mask = mask << bits | (0 if digit == "*" else ones)
    return value, mask, bits


# Names of the program


@dataclass(slots=True)
class _Key:
    name: str
    kind: str
    width: int


@dataclass(slots=True)
class _Table:
    name: str
    keys: list[_Key]
    actions: dict[str, list[tuple[str, int]]]  # name -> parameters, widths
    prioritized: bool


@dataclass(slots=True)
class _Names:
    """What a test can refer to, from the BMv2 JSON."""

    tables: dict[str, _Table] = field(default_factory=dict)
    counters: dict[str, str] = field(default_factory=dict)  # -> table of a direct one, or ""
    registers: dict[str, tuple[int, int]] = field(default_factory=dict)  # size, width
    meters: dict[str, tuple[int, str]] = field(default_factory=dict)  # size, table

    @classmethod
    def of(cls, json: dict[str, Any]) -> _Names:
        widths: dict[tuple[str, str], int] = {}
        types = {t["name"]: t for t in json["header_types"]}
        for h in json["headers"]:
            for f in types[h["header_type"]]["fields"]:
                widths[h["name"], f[0]] = f[1]
        actions = {a["id"]: a for a in json["actions"]}
        names = cls()
        for pipeline in json["pipelines"]:
            for t in pipeline["tables"]:
                keys = [
                    _Key(k.get("name") or ".".join(k["target"]), k["match_type"], widths.get(tuple(k["target"]), 1))
                    for k in t["key"]
                ]
                params = {
                    actions[i]["name"]: [(p["name"], p["bitwidth"]) for p in actions[i]["runtime_data"]]
                    for i in t["action_ids"]
                }
                names.tables[t["name"]] = _Table(t["name"], keys, params, t["match_type"] in ("ternary", "range"))
        for c in json["counter_arrays"]:
            names.counters[c["name"]] = c["binding"] if c["is_direct"] else ""
        names.registers = {r["name"]: (r["size"], r["bitwidth"]) for r in json["register_arrays"]}
        names.meters = {m["name"]: (m["size"], m.get("binding", "")) for m in json["meter_arrays"]}
        return names


def _find(command: Command, what: str, name: str, known: Iterable[str]) -> str:
    """The one of `known` that is `name` or ends in it."""
    known = list(known)
    if name in known:
        return name
    found = [k for k in known if k.endswith("." + name)] or [k for k in known if k.endswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise StfError(command.line, f"{what} '{name}' is ambiguous: {', '.join(found)}")
    raise StfError(command.line, f"no {what} '{name}'; there are: {', '.join(known) or 'none'}")


def _key_name(command: Command, table: _Table, name: str) -> int:
    """The position of key `name`. Stack elements may be written `stack$0`, validity `header.$valid$` or `valid`."""
    plain = re.sub(r"\$(\d+)", r"[\1]", name)
    validity = re.sub(r"\.?\$?valid\$?$", ".isValid()", plain)
    for candidate in (name, plain, plain + "$", plain + ".$valid$", validity):
        suffix = "." + candidate.lstrip(".")
        for i, key in enumerate(table.keys):
            if key.name == candidate or key.name.endswith(suffix):
                return i
    raise StfError(
        command.line, f"table {table.name} has no key '{name}'; it has: {', '.join(k.name for k in table.keys) or 'none'}"
    )


def _pack(value: int, width: int) -> bytes:
    return (value & ((1 << width) - 1)).to_bytes(-(-width // 8), "big")


def _key_field(command: Command, key: _Key, text: str) -> tuple[bytes | None, bytes | int]:
    """A key as the engine takes it."""
    width, full = key.width, (1 << key.width) - 1
    left, sign, right = re.fullmatch(rf"\s*({_NUMBER})\s*(?:(/|&&&|\.\.|->)\s*({_NUMBER}))?", text).groups()  # type: ignore[union-attr]
    value, mask, bits = _digits(command, left)
    if key.kind == "lpm":
        if sign == "/":
            length = _number(command, right)
        elif bits:
            length = min(width, len(left.replace("*", "")) * bits - 2 * bits)
        else:
            length = width
        return _pack(value, width), length
    if key.kind == "ternary":
        if sign == "&&&":
            mask = _number(command, right)
        elif sign == "/":
            mask = full & ~((1 << (width - _number(command, right))) - 1)
        elif not bits:
            mask = full
        return _pack(value & mask, width), _pack(mask, width)
    if key.kind == "range":
        high = _number(command, right) if sign in ("..", "->") else value
        return _pack(value, width), _pack(high, width)
    return _pack(value, width), b""


def _no_match(key: _Key) -> tuple[bytes | None, bytes | int]:
    """What a key matches that the test does not mention."""
    zero = _pack(0, key.width)
    if key.kind == "lpm":
        return zero, 0
    if key.kind == "ternary":
        return zero, zero
    if key.kind == "range":
        return zero, _pack(-1, key.width)
    return zero, b""


# Running


class Runner:
    """Carries out the commands of a test on a switch."""

    def __init__(self, json: dict[str, Any], switch: Switch) -> None:
        self.names = _Names.of(json)
        self.switch = switch
        self.sent: dict[int, list[bytes]] = {}  # by port
        self.expected: dict[int, list[tuple[Command, str | None]]] = {}
        self.mentioned: set[int] = set()
        self.nothing_else = False
        self.now = 0
        self.entries: dict[str, tuple[str, int]] = {}  # by the name given with `=`
        self.groups: dict[int, dict[int, list[tuple[int, int]]]] = {}  # group -> node -> (port, rid)
        self.nodes: list[list[tuple[int, int]]] = []
        self.sessions: dict[int, int] = {}  # session -> group

    def run(self, commands: Iterable[Command]) -> None:
        """Raises StfError where the test does not hold."""
        for command in commands:
            try:
                getattr(self, "_" + command.name)(command)
            except (ValueError, OverflowError) as error:
                raise StfError(command.line, f"{command.name}: {error}") from None
        self._check()

    # Packets

    def _packet(self, command: Command) -> None:
        port, data = self._port_and_data(command)
        try:
            frame = bytes.fromhex(data)
        except ValueError:
            raise StfError(command.line, f"packet data '{data}' is not hexadecimal") from None
        self.mentioned.add(port)
        self.now += 1000
        for out, sent in self.switch.process(port, frame, self.now):
            self.sent.setdefault(out, []).append(sent)

    def _expect(self, command: Command) -> None:
        port, data = self._port_and_data(command)
        self.mentioned.add(port)
        self.expected.setdefault(port, []).append((command, data.upper() or None))

    def _port_and_data(self, command: Command) -> tuple[int, str]:
        port, *data = command.args.split()
        return _number(command, port), "".join(data)

    def _no_packet(self, command: Command) -> None:
        self.nothing_else = True

    def _wait(self, command: Command) -> None:
        pass

    def _check(self) -> None:
        for port in sorted({*self.mentioned, *(self.sent if self.nothing_else else ())}):
            expected, sent = self.expected.get(port, []), self.sent.get(port, [])
            if expected and all(pattern is None for _, pattern in expected):
                continue
            for (command, pattern), frame in zip(expected, sent, strict=False):
                if pattern is not None:
                    _compare(command, port, pattern, frame.hex().upper())
            if len(sent) < len(expected):
                command = expected[len(sent)][0]
                raise StfError(command.line, f"port {port}: expected {len(expected)} packets, got {len(sent)}")
            if len(sent) > len(expected):
                extra = sent[len(expected)].hex().upper()
                raise UserError(f"port {port}: expected {len(expected)} packets, got {len(sent)}; the first one more: {extra}")

    # Tables

    def _add(self, command: Command) -> None:
        found = _ADD.match(command.args)
        if found is None:
            raise StfError(command.line, "expected: add TABLE [PRIORITY] KEY:VALUE ... ACTION(PARAMETER:VALUE, ...)")
        table = self._table(command, found[1])
        keys = [_no_match(k) for k in table.keys]
        rest = found[3]
        while match := _MATCH.match(rest):
            position = _key_name(command, table, match[1])
            keys[position] = _key_field(command, table.keys[position], match[2])
            rest = rest[match.end() :]
        action, args, name = self._action(command, table, rest)
        priority = int(found[2] or 1) if table.prioritized else 0
        handle = self.switch.table_add(table.name, keys, priority, ("action", action, args))
        if name:
            self.entries[name.lstrip("$")] = table.name, handle

    def _setdefault(self, command: Command) -> None:
        name, _, rest = command.args.partition(" ")
        table = self._table(command, name)
        action, args, _ = self._action(command, table, rest)
        self.switch.table_set_default(table.name, ("action", action, args))

    def _remove(self, command: Command) -> None:
        if command.args.lower() != "all":
            raise StfError(command.line, "expected: remove all")
        for name in self.names.tables:
            self.switch.table_clear(name)

    def _table(self, command: Command, name: str) -> _Table:
        return self.names.tables[_find(command, "table", name, self.names.tables)]

    def _action(self, command: Command, table: _Table, text: str) -> tuple[str, list[bytes], str | None]:
        found = _ACTION.match(text)
        if found is None:
            raise StfError(command.line, f"'{text.strip()}' is not an action: expected NAME(PARAMETER:VALUE, ...)")
        name = _find(command, f"action of table {table.name}", found[1], table.actions)
        params = table.actions[name]
        given: dict[str, str] = {}
        for part in filter(None, map(str.strip, found[2].split(","))):
            param, _, value = part.partition(":")
            given[param.strip()] = value.strip()
        unknown = set(given) - {p for p, _ in params}
        missing = [p for p, _ in params if p not in given]
        if unknown or missing:
            expected = ", ".join(p for p, _ in params) or "none"
            raise StfError(command.line, f"parameters of {name}: expected {expected}")
        return name, [_pack(_number(command, given[p]), width) for p, width in params], found[3]

    # Replication

    def _numbers(self, command: Command, least: int) -> list[int]:
        numbers = [_number(command, w) for w in command.args.split()]
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

    # Counters, registers, meters

    def _check_counter(self, command: Command) -> None:
        found = _COUNTER.match(command.args)
        if found is None:
            raise StfError(command.line, "expected: check_counter NAME(INDEX) [packets|bytes COMPARISON NUMBER]")
        packets, nbytes = self._read_counter(command, found[1], found[2])
        if found[3] is None:
            return
        value = packets if found[3].lower() == "packets" else nbytes
        if not _COMPARE[found[4]](value, _number(command, found[5])):
            raise StfError(command.line, f"counter {found[1]}({found[2]}): {found[3]} is {value}")

    def _read_counter(self, command: Command, name: str, index: str) -> tuple[int, int]:
        counter = _find(command, "counter", name, self.names.counters)
        entry = self.entries.get(index.lstrip("$"))
        table = self.names.counters[counter]
        if table:
            return self.switch.direct_counter_read(table, entry[1] if entry else _number(command, index))
        return self.switch.counter_read(counter, _number(command, index))

    def _counter_read(self, command: Command) -> None:
        name, index = command.args.split()
        self._read_counter(command, name, index)

    def _counter_write(self, command: Command) -> None:
        name, *rest = command.args.split()
        index, packets, nbytes = (_number(command, w) for w in rest)
        counter = _find(command, "counter", name, self.names.counters)
        table = self.names.counters[counter]
        if table:
            self.switch.direct_counter_write(table, index, packets, nbytes)
        else:
            self.switch.counter_write(counter, index, packets, nbytes)

    def _register_read(self, command: Command) -> None:
        name, index = command.args.split()
        self.switch.register_read(_find(command, "register", name, self.names.registers), _number(command, index))

    def _register_write(self, command: Command) -> None:
        name, index, value = command.args.split()
        register = _find(command, "register", name, self.names.registers)
        width = self.names.registers[register][1]
        self.switch.register_write(register, _number(command, index), _pack(_number(command, value), width))

    def _register_reset(self, command: Command) -> None:
        register = _find(command, "register", command.args, self.names.registers)
        size, width = self.names.registers[register]
        for index in range(size):
            self.switch.register_write(register, index, _pack(0, width))

    def _meter_get_rates(self, command: Command) -> None:
        _find(command, "meter", command.args.split()[0], self.names.meters)

    def _meter_set_rates(self, command: Command) -> None:
        name, index, *rates = command.args.split()
        self._set_meter(command, name, [_number(command, index)], rates)

    def _meter_array_set_rates(self, command: Command) -> None:
        name, *rates = command.args.split()
        meter = _find(command, "meter", name, self.names.meters)
        self._set_meter(command, name, range(self.names.meters[meter][0]), rates)

    def _set_meter(self, command: Command, name: str, indices: Iterable[int], rates: Sequence[str]) -> None:
        """Rates are units per microsecond, as for simple_switch_CLI: committed, then peak, each `rate:burst`."""
        meter = _find(command, "meter", name, self.names.meters)
        if len(rates) != 2:
            raise StfError(command.line, "expected two rates: committed and peak, each RATE:BURST")
        values: list[int] = []
        for text in rates:
            rate, _, burst = text.partition(":")
            values += [round(float(rate) * 1_000_000), _number(command, burst)]
        config = values[0], values[1], values[2], values[3]
        table = self.names.meters[meter][1]
        for index in indices:
            if table:
                self.switch.direct_meter_set(table, index, config)
            else:
                self.switch.meter_set(meter, index, config)


def _compare(command: Command, port: int, pattern: str, frame: str) -> None:
    exact = pattern.endswith("$")
    pattern = pattern.rstrip("$")
    if len(frame) < len(pattern) or (exact and len(frame) > len(pattern)):
        raise StfError(
            command.line, f"port {port}: expected {len(pattern) / 2:g} bytes, got {len(frame) / 2:g}: {frame}"
        )
    for i, (want, got) in enumerate(zip(pattern, frame, strict=False)):
        if want not in ("*", got):
            raise StfError(command.line, f"port {port}, byte {i // 2}: expected {pattern}, got {frame}")


def run_test(program: str | Path, test: str | Path, include_dirs: Sequence[str | Path] = ()) -> None:
    """Runs the test in file `test` on the P4 program in file `program`. Raises UserError where it does not hold."""
    from p4switch.compiler import compile_program
    from p4switch.engine import build, load

    commands = parse(Path(test).read_text())
    compiled = compile_program(program, include_dirs)
    switch = load().Switch(str(build(compiled.json)), tick_ns=1000)
    Runner(compiled.json, switch).run(commands)


# Many tests


@dataclass(frozen=True, slots=True)
class Result:
    """`cause` is None for a test that passed, else one line."""

    test: Path
    cause: str | None
    seconds: float


def find_tests(paths: Iterable[str | Path]) -> list[Path]:
    """The `.stf` files in `paths`, files or folders. Raises UserError for a path without any."""
    tests: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(path.glob("*.stf"))
            if not found:
                raise UserError(f"{path}: expected a folder with .stf files")
            tests += found
        elif path.is_file():
            tests.append(path)
        else:
            raise UserError(f"{path}: no such file or folder")
    return tests


def _child(test: Path, pipe: Connection) -> None:
    cause: str | None = None
    try:
        program = test.with_suffix(".p4")
        if not program.is_file():
            raise UserError(f"no program {program.name} beside it")
        run_test(program, test)
    except UserError as error:
        cause = str(error).splitlines()[0]
    except Exception as error:  # a defect of ours: reported like any other failure, with its place
        import traceback

        place = traceback.extract_tb(error.__traceback__)[-1]
        cause = f"internal error: {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        cause = cause.splitlines()[0]
    pipe.send(cause)


def run_tests(tests: Sequence[Path], jobs: int = 1, time_limit_s: float = TIME_LIMIT_S) -> Iterator[Result]:
    """Runs tests, each in a process of its own, `jobs` at a time; results come as they finish."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(tests))
    running: dict[Connection, tuple[Path, Any, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                test = waiting.pop()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(test, sender), daemon=True)
                process.start()
                sender.close()
                running[receiver] = test, process, time.monotonic()
            ready = wait(list(running), timeout=0.2)
            now = time.monotonic()
            for pipe, (test, process, start) in list(running.items()):
                if pipe in ready:
                    try:
                        cause = pipe.recv()
                        process.join()
                    except EOFError:
                        process.join()
                        cause = f"crashed with exit status {process.exitcode}"
                elif now - start > time_limit_s:
                    process.kill()
                    process.join()
                    cause = f"took more than {time_limit_s:g} s"
                else:
                    continue
                del running[pipe]
                pipe.close()
                yield Result(test, cause, now - start)
    finally:
        for _, process, _ in running.values():
            process.kill()


def run_folder(paths: Iterable[str | Path], jobs: int = 1, time_limit_s: float = TIME_LIMIT_S) -> bool:
    """Runs the tests in `paths`; prints a line a failure, then `N passed, M failed`. True if all passed."""
    tests = find_tests(paths)
    _prepare()
    failed = 0
    for result in run_tests(tests, jobs, time_limit_s):
        if result.cause is not None:
            failed += 1
            print(f"{result.test}: {result.cause}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed", flush=True)
    return failed == 0


def _prepare() -> None:
    """Loads once what every test needs, before the processes are forked."""
    import p4switch.compiler.bmv2
    import p4switch.compiler.frontend
    import p4switch.compiler.p4info  # noqa: F401
    from p4switch.engine import load

    load()


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("-j", "--jobs", default=1, show_default=True, help="Tests at a time.")
@click.option("--time-limit", default=TIME_LIMIT_S, show_default=True, help="Seconds a test may take.")
def main(paths: tuple[str, ...], jobs: int, time_limit: float) -> None:
    """Run packet tests: .stf files, each with its .p4 beside it, or folders of them."""
    try:
        passed = run_folder(paths, jobs, time_limit)
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
