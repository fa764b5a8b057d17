"""Two tools' tests are counted in the same way, and what the other one says of itself is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3 is not installed")

ROOT = Path(__file__).parents[2]
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 2;
        if (hdr.h.kind == 77) { s.egress_spec = 3; }
        if (s.instance_type == 9) { s.egress_spec = 4; }
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
FAKE = """#!/bin/sh
while [ "$1" != --out-dir ]; do shift; done
printf '# Current node coverage: 0.50\\npacket 1 01\\nexpect 7 01$\\n' > "$2/one.stf"
echo "Compiler Bug: nothing more"
exit 1
"""


def test_the_same_statements_count_for_both(tmp_path: Path) -> None:
    (tmp_path / "small.p4").write_text(PROGRAM)
    fake = tmp_path / "p4testgen"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    command = [sys.executable, str(ROOT / "tools" / "reach_beside.py"), str(tmp_path / "small.p4")]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": path})
    line, *told, _, whole = done.stdout.splitlines()
    ours, theirs = line.removeprefix("small.p4: ").split("; ")
    assert ours.startswith("p4cc 3 of 3 (100% by itself)"), done.stderr  # "= 4" is out of reach
    assert theirs.startswith("p4testgen 2 of 3 (50% by itself), 1 tests, 1 do not hold")
    assert theirs.endswith("s, Compiler Bug: nothing more")
    assert told[0].strip().startswith("one.stf: ")
    assert "s.egress_spec = 3" in told[1]
    assert whole == "reached whole: p4cc 1, p4testgen 0"
