"""The architecture of a program is that of its `main`'s package, unless another one is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4switch import extensions, registry
from p4switch.architectures.v1model import V1MODEL
from p4switch.compiler import compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.errors import UserError

FILE = Path(__file__).with_name("mini.py")
ROOT = Path(__file__).parents[3]
PROGRAM = """\
#include <INCLUDE>
header h_t { bit<8> ttl; }
struct headers { h_t h; }
struct metadata {}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply { hdr.h.ttl = TTL; sm.egress_spec = 1; }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
PACKAGE(P(), V(), I(), E(), V(), D()) main;
"""


def program(folder: Path, include: str, package: str, ttl: str = "3") -> Path:
    path = folder / "program.p4"
    path.write_text(PROGRAM.replace("INCLUDE", include).replace("PACKAGE", package).replace("TTL", ttl))
    return path


@pytest.fixture
def loaded() -> Iterator[None]:
    extensions.load(FILE)
    yield
    registry.forget(str(FILE))
    extensions._loaded.pop(FILE, None)


def refusal(path: Path, arch: str | None = None) -> str:
    with pytest.raises(CompileError) as caught:
        compile_program(path, [Path(__file__).parent], arch=arch)
    return str(caught.value).splitlines()[0]


def test_the_package_of_main_says_which(tmp_path: Path) -> None:
    compiled = compile_program(program(tmp_path, "v1model.p4", "V1Switch"))
    assert compiled.p4info.pkg_info.arch == "v1model"


def test_a_package_of_no_architecture_is_refused_in_a_line_at_main(tmp_path: Path) -> None:
    path = program(tmp_path, "mini.p4i", "MiniSwitch")
    told = refusal(path)
    assert told.startswith(f"{path}:14:42: error: package 'MiniSwitch<headers, metadata>' is not supported: expected ")
    assert "'V1Switch' of v1model.p4" in told


def test_arch_refuses_a_package_of_another(tmp_path: Path) -> None:
    path = program(tmp_path, "mini.p4i", "MiniSwitch")
    expected = "package 'MiniSwitch<headers, metadata>' is not one of architecture v1model: expected 'V1Switch' of "
    assert expected in refusal(path, "v1model")


def test_an_unknown_architecture_is_a_mistake_with_a_name_near_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no architecture 'v1modle'; did you mean 'v1model'"):
        compile_program(program(tmp_path, "v1model.p4", "V1Switch"), arch="v1modle")


@pytest.mark.usefixtures("loaded")
def test_one_outside_of_the_package_is_found_with_its_include_file(tmp_path: Path) -> None:
    compiled = compile_program(program(tmp_path, "mini.p4i", "MiniSwitch"))
    assert compiled.p4info.pkg_info.arch == "mini"


@pytest.mark.usefixtures("loaded")
def test_its_macros_are_predefined_where_it_is_asked_for(tmp_path: Path) -> None:
    path = program(tmp_path, "mini.p4i", "MiniSwitch", ttl="MINI_TTL")
    assert "MINI_TTL" in refusal(path)
    compiled = compile_program(path, arch="mini")
    constants = [p["parameters"][1]["value"] for a in compiled.json["actions"] for p in a["primitives"]]
    assert "0x07" in constants


_PLAIN_WORDS = {"assert", "assume", "clone", "counter", "digest", "hash", "meter", "random", "register", "truncate"}
"""Externs of v1model whose names are words that switches and tools also use for other objects."""
_OTHERS = {
    "p4switch/bfrt": {"action_profile"},  # a kind of objects in P4Info
    "p4switch/bmv2/schema.py": {"action_profile"},  # a key of BMv2 JSON
    "p4switch/bmv2/writer.py": {"action_profile"},
    "p4switch/bmv2/program.py": {"action_profile"},
    "p4switch/daemon/process.py": {"log_msg"},  # the heading of a program's messages in the log
    "p4switch/p4runtime": {"action_profile"},  # a kind of P4Runtime entities
}


def test_no_name_of_v1model_stands_outside_of_the_architectures() -> None:
    checksums = {"verify_checksum", "update_checksum"}  # lowered to a block, not to an operation
    externs = {*V1MODEL.externs[0].all(), *checksums} - _PLAIN_WORDS
    names = {V1MODEL.name, "DROP_PORT", "standard_metadata", "standard_metadata_t", *V1MODEL.packages.all(), *externs}
    found = []
    for path in [*(ROOT / "p4switch").rglob("*.py"), *(ROOT / "topologies").rglob("*.py")]:
        file = path.relative_to(ROOT).as_posix()
        if file.startswith("p4switch/architectures/"):
            continue
        others = {name for prefix, known in _OTHERS.items() if file.startswith(prefix) for name in known}
        words = {*re.findall(r"\w+", path.read_text())}
        found += [f"{file}: {name}" for name in sorted(words & names - others)]
    assert found == []
