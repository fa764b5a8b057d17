"""The number of stages is read from a chip compiler's assembly, and compared with `p4cc fit`."""

from __future__ import annotations

from pathlib import Path

from tests.tools.beside import beside

INGRESS = """
    action forward(bit<9> port, bit<8> kind) { s.egress_spec = port; hdr.h.kind = kind; }
    table first { key = { hdr.h.kind: exact; } actions = { forward; NoAction; } default_action = NoAction; }
    table second { key = { hdr.h.kind: exact; } actions = { forward; NoAction; } default_action = NoAction; }
    apply { first.apply(); second.apply(); }
"""
# Stage 3 has no table, egress fewer stages than ingress; the larger chip is not compiled for.
FAKE = """#!/bin/sh
while [ "$1" != --target ]; do shift; done
if [ "$2" = tofino2 ]; then echo "small.p4(7): error: too large" >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
mkdir "$2/pipe"
cat > "$2/pipe/small.bfa" <<'END'
stage 0 ingress:
  exact_match first_0 0:
stage 1 ingress:
  exact_match second_0 0:
stage 2 ingress:
  gateway cond_0 0:
stage 3 ingress:
  dependency: match
stage 0 egress:
  hash_action rewrite 0:
END
"""


def test_stages_beside_a_compilers(tmp_path: Path) -> None:
    done = beside("fit_beside.py", "p4c-barefoot", FAKE, INGRESS, tmp_path)
    assert done.stdout.splitlines() == [
        "small.p4: stages12: p4c 1 more: p4cc 2 stages; p4c egress 1, ingress 3",
        "small.p4: stages20: only p4cc says it fits: p4cc 2 stages; p4c small.p4(7): error: too large",
        "| target | only p4cc says it fits | p4c 1 more |",
        "| --- | --- | --- |",
        "| stages12 | 0 | 1 |",
        "| stages20 | 1 | 0 |",
    ], done.stderr
