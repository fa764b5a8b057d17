"""Two tools' tests are counted in the same way, and the other tool's own figures are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.beside import beside

pytest.importorskip("z3", reason="z3 is not installed")

INGRESS = """
    apply {
        s.egress_spec = 2;
        if (hdr.h.kind == 77) { s.egress_spec = 3; }
        if (s.instance_type == 9) { s.egress_spec = 4; }
    }
"""
FAKE = """#!/bin/sh
while [ "$1" != --out-dir ]; do shift; done
printf '# Current node coverage: 0.50\\npacket 1 01\\nexpect 7 01$\\n' > "$2/one.stf"
echo "Compiler Bug: nothing more"
exit 1
"""


def test_the_same_statements_count_for_both(tmp_path: Path) -> None:
    done = beside("reach_beside.py", "p4testgen", FAKE, INGRESS, tmp_path)
    line, *told, _, whole = done.stdout.splitlines()
    ours, theirs = line.removeprefix("small.p4: ").split("; ")
    assert ours.startswith("p4cc 3 of 3 (100% by itself)"), done.stderr  # "= 4" is out of reach
    assert theirs.startswith("p4testgen 2 of 3 (50% by itself), 1 tests, 1 do not hold")
    assert theirs.endswith("s, Compiler Bug: nothing more")
    assert told[0].strip().startswith("one.stf: ")
    assert "s.egress_spec = 3" in told[1]
    assert whole == "reached whole: p4cc 1, p4testgen 0"
