"""A row of `chip_beside` has the reports of a chip's back end and its assembler, and how p4cc differs."""

from __future__ import annotations

import json
from pathlib import Path

from p4switch.compiler import compile_program
from tests.p4switch.architectures.tofino import write
from tests.tools.beside import run

INGRESS = """
    action set_value(bit<8> value) { hdr.h.value = value; }
    table first { key = { hdr.h.kind : exact; } actions = { set_value; } size = 64; }
    apply { first.apply(); tm.ucast_egress_port = 2; }
"""
COMPILER = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
mkdir "$2/pipe"
touch "$2/pipe/program.bfa"
cp theirs.json "$2/bf-rt.json"
"""
ASSEMBLER = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat > "$2/context.json" <<'END'
{"tables": [
  {"direction": "ingress", "match_attributes": {"stage_tables": [{"stage_number": 0}, {"stage_number": 4}]}},
  {"direction": "ingress", "stage_tables": [{"stage_number": 2}]},
  {"direction": "egress", "stage_tables": [{"stage_number": 1}]}]}
END
"""
REFUSES = """#!/bin/sh
echo "program.bfa:3: error: no such container" >&2
exit 1
"""


def cells(folder: Path, assembler: str) -> tuple[dict[str, str], list[str]]:
    program = write(folder, INGRESS=INGRESS)
    schema = compile_program(program, arch="tna").bf_rt
    table = next(t for t in schema["tables"] if t["name"].endswith(".first"))
    table["id"] += 1
    table["size"] = 65
    table["key"][0]["match_type"] = "Ternary"
    schema["tables"] = [t for t in schema["tables"] if t["table_type"] != "PortMetadata"]
    fake = COMPILER.replace("theirs.json", str(folder / "theirs.json"))
    (folder / "theirs.json").write_text(json.dumps(schema))
    done = run("chip_beside.py", {"p4c-barefoot": fake, "bfas": assembler}, [str(program), "--details"], folder)
    head, _, row, *details = done.stdout.splitlines()
    names, values = ([cell.strip() for cell in line.strip("|").split("|")] for line in (head, row))
    return dict(zip(names, values, strict=True)), details


def test_what_the_back_end_accepts(tmp_path: Path) -> None:
    row, details = cells(tmp_path, ASSEMBLER)
    assert row == {
        "program": "program", "architecture": "tna", "accepted": "yes", "ingress": "5", "egress": "2", "p4cc fit": "1",
        "p4cc fit lacks": "", "tables": "1", "keys": "1", "actions": "0", "data": "0", "ids": "1", "other": "1",
    }  # fmt: skip
    said = [line.split(": ")[1] for line in details if "match_type" in line]
    assert said == ["expected 'Ternary', got 'Exact'"]


def test_what_the_assembler_refuses(tmp_path: Path) -> None:
    row, _ = cells(tmp_path, REFUSES)
    assert (row["accepted"], row["ingress"]) == ("program.bfa:3: error: no such container", "")
