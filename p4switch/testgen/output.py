"""Output of tests as STF files, and as a pytest module that runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from p4switch import ir
from p4switch.bits.domain import width
from p4switch.compiler import types
from p4switch.compiler.source import Location
from p4switch.stf.language import NAME
from p4switch.testgen.run import Entry, Run
from p4switch.testgen.search import Test

_ALL = "1:1000000"
_RATES = (f"{_ALL} {_ALL}", f"0:0 {_ALL}", "0:0 0:0")  # rates for which a packet is green, yellow or red


def stf(test: Test, new: Sequence[Location], if_zero: Sequence[Location]) -> str:
    """Return the STF of a test.

    `new` are the statements that no earlier test covers. `if_zero` are the statements that the test
    covers only if undefined values are zero.
    """
    run = test.run
    lines = [f"# covers {Path(place.file).name}:{place.line}" for place in new]
    lines += [f"# covers {Path(place.file).name}:{place.line} if undefined values are zero" for place in if_zero]
    lines = [*dict.fromkeys(lines), *setup(run)]
    lines.append(f"packet {run.port} {run.packet.hex().upper()}")
    for port, data, mask in test.expected:
        lines.append(f"expect {port} {_masked(data, mask)}$")
    lines.append("no_packet")
    return "\n".join(lines) + "\n"


def setup(run: Run) -> list[str]:
    """Return the commands before the packet.

    They set the clock, the queue depth, random numbers, registers, meters, value sets, entries and
    groups.
    """
    lines = [] if run.clock is None else [f"clock {run.clock}"]
    lines += [] if run.depth is None else [f"queue {run.depth}"]
    lines += [f"random {place} {number}" for place, number in sorted(run.draws.items())]
    lines += [f"register_write {_quoted(name)} {i} {value}" for (name, i), value in sorted(run.registers.items())]
    lines += [f"meter_set_rates {_quoted(name)} {i} {_RATES[rate]}" for (name, i), rate in sorted(run.meters.items())]
    lines += [f"pvs_add {_quoted(name)} {value:#x}" for name, value in run.members]
    for number, entry in enumerate(run.entries):
        if entry.colour is None:
            lines.append(_entry(entry))
        else:
            lines.append(f"{_entry(entry)} = $e{number}")
            lines.append(f"meter_set_rates {_quoted(entry.table.meter)} $e{number} {_RATES[entry.colour]}")
    for table, action, args in run.defaults.values():
        lines.append(f"setdefault {_quoted(table.name)} {_call(action, args)}")
    lines += [f"mirroring_add {session} {port}" for session, port in sorted(run.sessions.items())]
    handle = 0
    for group, replicas in sorted(run.groups.items()):
        lines.append(f"mc_mgrp_create {group}")
        for port, rid in replicas:
            lines += [f"mc_node_create {rid} {port}", f"mc_node_associate {group} {handle}"]
            handle += 1
    return lines


def _entry(entry: Entry) -> str:
    kinds = {k.match_kind for k, _ in entry.keys}
    priority = " 1" if kinds & {"ternary", "range", "optional"} else ""
    keys = " ".join(f"{_quoted(key.name)}:{_key(key, number)}" for key, number in entry.keys)
    return f"add {_quoted(entry.table.name)}{priority} {keys} {_call(entry.action, entry.args)}"


def _quoted(name: str) -> str:
    return name if re.fullmatch(NAME, name) else f'"{name}"'


def _key(key: ir.Key, number: int | None) -> str:
    bits = width(key.target.type)
    if number is None:
        return {"lpm": "0x0/0", "range": f"0x0->0x{(1 << bits) - 1:x}"}.get(key.match_kind, "0x0&&&0x0")
    digits = f"0x{number:0{-(-bits // 4)}x}"
    if key.match_kind == "lpm":
        return f"{digits}/{bits}"
    if key.match_kind in ("ternary", "optional"):
        return f"{digits}&&&0x{(1 << bits) - 1:x}"
    if key.match_kind == "range":
        return f"{digits}->{digits}"
    return digits


def _call(action: ir.Action, args: Sequence[int]) -> str:
    given = (f"{name}:{value}" for (name, t), value in zip(action.params, args, strict=True) if types.width_of(t) != 0)
    return f"{_quoted(action.name)}({', '.join(given)})"


def _masked(data: bytes, mask: bytes) -> str:
    digits = zip(data.hex().upper(), mask.hex(), strict=True)
    return "".join("*" if known == "0" else digit for digit, known in digits)


def pytest_module(
    program: Path,
    include: Sequence[Path],
    defines: Mapping[str, str],
    names: Sequence[str],
    arch: str | None,
    pipeline: int | None,
) -> str:
    """Return a pytest module for the STF files `names` in the same folder. Paths are relative to that folder.

    After the folders in `include`, it searches the folder of p4cc's own programs.
    """
    folders = "".join(f"Path(__file__).parent / {str(folder)!r}, " for folder in include)
    return f'''"""Generated packet tests of {program.name}: each is an STF file beside this one."""

from pathlib import Path

import pytest

from p4switch.sources import SOURCE_DIRECTORY
from p4switch.stf import run_test

PROGRAM = Path(__file__).parent / {str(program)!r}
INCLUDE = [{folders}SOURCE_DIRECTORY]
DEFINES = {dict(defines)!r}
ARCHITECTURE = {arch!r}
PIPELINE = {pipeline!r}


@pytest.mark.parametrize("name", {list(names)!r})
def test_{program.stem.replace("-", "_")}(name: str) -> None:
    test = Path(__file__).with_name(name)
    run_test(PROGRAM, test, INCLUDE, defines=DEFINES, arch=ARCHITECTURE, pipeline=PIPELINE)
'''
