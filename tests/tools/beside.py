"""A small program, and scripts that replace the other tool with which one of tools/ compares p4cc."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_TOOLS = Path(__file__).parents[2] / "tools"
_PROGRAM = """
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
%s
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def beside(tool: str, other: str, script: str, ingress: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Return the output of tools/`tool` for small.p4 with the body `ingress`; `other` is the shell script `script`."""
    program = folder / "small.p4"
    program.write_text(_PROGRAM % ingress)
    return run(tool, {other: script}, [str(program)], folder)


def run(tool: str, others: Mapping[str, str], options: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Return the output of tools/`tool` with the shell scripts `others` in `folder` in PATH."""
    for other, script in others.items():
        fake = folder / other
        fake.write_text(script)
        fake.chmod(0o755)
    command = [sys.executable, str(_TOOLS / tool), *options]
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PATH": path})
