"""Names of earlier v1model and of P4-14: the error gives the replacement, which exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4switch.architectures.psa import PSA
from p4switch.architectures.v1model import V1MODEL
from p4switch.compiler import ast, compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.superseded import P4_14, instead

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<16> c; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ @field_list(1) bit<8> v; }}
parser P(packet_in pk, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{ pk.extract(hdr.h); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    {declared}
    apply {{
        {code}
    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    apply {{
        {egress}
    }}
}}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ {compute} }} }}
control D(packet_out pk, in headers_t hdr) {{ apply {{ pk.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
NEW = {**P4_14, **V1MODEL.superseded}
PLAIN = {"declared": "", "code": "", "egress": "", "compute": ""}
DECLARED = {  # names that v1model still declares
    "clone3": ("code", "clone3(CloneType.I2E, 5, { meta.v });"),
    "resubmit": ("code", "resubmit({ meta.v });"),
    "recirculate": ("egress", "recirculate({ meta.v });"),
}


def refused(folder: Path, **parts: str) -> tuple[str, str]:
    """Return the message, and the source line that it names."""
    path = folder / "program.p4"
    path.write_text(PROGRAM.format(**{**PLAIN, **parts}))
    with pytest.raises(CompileError) as caught:
        compile_program(path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.location.file == str(path)
    return diagnostic.message, diagnostic.line_text.strip()


@pytest.mark.parametrize("name", [name for name in NEW if "." not in name])
def test_a_function(name: str, tmp_path: Path) -> None:
    place, code = DECLARED.get(name, ("code", f"{name}(meta.v);"))
    message, line = refused(tmp_path, **{place: code})
    assert message.endswith(f": write {NEW[name]}")
    assert line == code


@pytest.mark.parametrize("name", [name for name in NEW if name.startswith("standard_metadata_t.")])
def test_a_field_of_standard_metadata(name: str, tmp_path: Path) -> None:
    field = name.partition(".")[2]
    code = f"sm.{field} = 1;"
    message = f"standard_metadata_t has no member {field!r}: write {NEW[name]}"
    assert refused(tmp_path, code=code) == (message, code)


def test_a_method(tmp_path: Path) -> None:
    code = "hdr.h.c = sum.get({ hdr.h.a });"
    message, line = refused(tmp_path, declared="Checksum16() sum;", code=code)
    assert message.endswith(f": write {NEW['Checksum16.get']}")
    assert line == code


def test_a_checksum_without_condition(tmp_path: Path) -> None:
    message, _ = refused(tmp_path, compute="update_checksum({ hdr.h.a }, hdr.h.c, HashAlgorithm.csum16);")
    assert message == "'update_checksum' takes 4 arguments, not 3: condition, data, checksum, algo"


def test_what_is_to_be_written_is_there(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM.format(**PLAIN))
    known: set[str] = {"setValid", "setInvalid", "push_front", "pop_front"}
    for decl in parse_and_check(path).declarations:
        known.add(getattr(decl, "name", ""))
        if isinstance(decl, ast.ExternDecl):
            known.update(m.name for m in decl.methods)
    for new in NEW.values():
        called = re.findall(r"(?<!@)\b(\w+)(?:<T>)?\(", new)
        assert called or new == "an assignment"
        assert known.issuperset(called), new


def test_what_is_written_instead_compiles(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    parts = {
        "code": "clone_preserving_field_list(CloneType.I2E, 5, 1); resubmit_preserving_field_list(1);",
        "egress": "recirculate_preserving_field_list(1);",
        "compute": "update_checksum(true, { hdr.h.a }, hdr.h.c, HashAlgorithm.csum16);",
    }
    path.write_text(PROGRAM.format(**{**PLAIN, **parts}))
    compile_program(path)


def test_the_old_names_are_those_of_the_architecture() -> None:
    assert instead("drop", PSA) == instead("drop", None) == ""
    assert instead("add_header", PSA) == instead("add_header", None) == ": write HEADER.setValid()"


def test_the_architecture_is_known_of_a_package_with_another_name(tmp_path: Path) -> None:
    code = "drop();"
    program = PROGRAM.format(**{**PLAIN, "code": code})
    path = tmp_path / "program.p4"
    path.write_text(program.replace("V1Switch(P()", "typedef V1Switch<headers_t, meta_t> Renamed;\nRenamed(P()"))
    with pytest.raises(CompileError, match="write mark_to_drop"):
        compile_program(path)
