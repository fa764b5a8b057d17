"""For each rule, a program that keeps it and one that breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4switch.errors import UserError
from p4switch.fit import Fit, Target, built_in, load, measure

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<32> a; bit<32> b; bit<64> w; bit<48> m; bit<16> s; }}
struct headers_t {{ h_t h; h_t g; }}
struct metadata_t {{ bit<32> x; bit<32> y; }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    state start {{ {parser} }}
    state more {{ packet.extract(hdr.g); transition accept; }}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    register<bit<32>>(64) r;
    register<bit<32>>(64) q;
    {locals}
    apply {{ {ingress} }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{ apply {{ {egress} }} }}
control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ {checksum} }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
DEFAULTS = {
    "parser": "packet.extract(hdr.h); transition accept;",
    "locals": "", "ingress": "", "egress": "", "checksum": "",
}  # fmt: skip
TABLE = """action set(bit<32> v) {{ hdr.h.b = v; }}
    table t {{ key = {{ hdr.h.{key}: {kind}; }} actions = {{ set; }} size = {size}; }}"""
SELECT = "packet.extract(hdr.h); transition select(hdr.h.{key}) {{ {cases} default: accept; }}"
READ = "r.read(meta.x, hdr.h.a); "
WRITE = " r.write(hdr.h.a, meta.x); hdr.h.b = meta.x;"
CHECKSUM = "update_checksum{payload}(true, {{ hdr.h.a }}, hdr.h.s, HashAlgorithm.csum16);"


def table(key: str = "a", kind: str = "exact", size: int = 64) -> dict[str, str]:
    return {"locals": TABLE.format(key=key, kind=kind, size=size), "ingress": "t.apply();"}


def ingress(code: str) -> dict[str, str]:
    return {"ingress": code}


SMALL: dict[str, Any] = {
    "name": "small",
    "about": "for tests",
    "sources": [],
    "stages": 4,
    "phv_bits": 300,
    "sram": {"blocks": 2, "entries": 1024, "width_bits": 112},
    "tcam": {"blocks": 1, "entries": 512, "width_bits": 40},
    "stage": {"tables": 2, "exact_key_bits": 48},
    "parser": {"bytes": 30, "states": 1, "entries": 2, "key_bits": 32, "arithmetic": False},
    "arithmetic": {
        "width_bits": 32, "compare_bits": 32, "condition_bits": 40,
        "multiply": False, "variable_shift": False,
    },
    "register": {"width_bits": 32, "operations": 1, "conditions": 1, "coupled": 1},
    "functions": {
        "action_conditions": False, "recirculate": False, "resubmit": False, "clone": False, "multicast": False,
    },
}  # fmt: skip
RULES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "parser-bytes": ({}, {"parser": "packet.extract(hdr.h); transition more;"}),
    "parser-states": ({}, {"parser": SELECT.format(key="s", cases="1: more;")}),
    "parser-entries": (
        {},
        {"parser": SELECT.format(key="s", cases="1: more; 2: more;")},
    ),
    "parser-arithmetic": (
        {"parser": "packet.extract(hdr.h); meta.x = hdr.h.a; transition accept;"} | ingress("hdr.h.b = meta.x + 1;"),
        {"parser": "packet.extract(hdr.h); meta.x = hdr.h.a + 1; transition accept;"} | ingress("hdr.h.b = meta.x;"),
    ),
    "parser-key": (
        {"parser": SELECT.format(key="a", cases="1: more;")},
        {"parser": SELECT.format(key="w", cases="1: more;")},
    ),
    "phv": ({}, ingress("hdr.g.setValid(); hdr.g.a = hdr.h.b;")),
    "multiply": (ingress("hdr.h.a = hdr.h.b * 8;"), ingress("hdr.h.a = hdr.h.a * hdr.h.b;")),
    "variable-shift": (ingress("hdr.h.a = hdr.h.b << 3;"), ingress("hdr.h.a = hdr.h.b << hdr.h.a[4:0];")),
    "wide-arithmetic": (ingress("hdr.h.a = hdr.h.a + hdr.h.b;"), ingress("hdr.h.w = hdr.h.w + 1;")),
    "wide-compare": (ingress("if (hdr.h.a < 9) { hdr.h.b = 0; }"), ingress("if (hdr.h.w < 9) { hdr.h.b = 0; }")),
    "wide-condition": (ingress("if (hdr.h.a == 9) { hdr.h.b = 0; }"), ingress("if (hdr.h.w == 9) { hdr.h.b = 0; }")),
    "action-condition": (
        table() | ingress("if (hdr.h.s == 1) { t.apply(); }"),
        table() | {"locals": table()["locals"].replace("hdr.h.b = v;", "if (hdr.h.s == 1) { hdr.h.b = v; }")},
    ),
    "hash-range": (
        ingress("hash(meta.x, HashAlgorithm.crc32, 32w0, { hdr.h.a }, 32w64); hdr.h.b = meta.x;"),
        ingress("hash(meta.x, HashAlgorithm.crc32, 32w0, { hdr.h.a }, 32w60); hdr.h.b = meta.x;"),
    ),
    "random-range": (
        ingress("random(meta.x, 0, 63); hdr.h.b = meta.x;"),
        ingress("random(meta.x, 0, 60); hdr.h.b = meta.x;"),
    ),
    "loop": (
        ingress("hdr.h.a = hdr.h.a + 1;"),
        ingress("for (bit<32> i = 0; i < hdr.h.b; i = i + 1) { hdr.h.a = hdr.h.a ^ i; }"),
    ),
    "register-accesses": (
        ingress(READ + "meta.x = meta.x + 1;" + WRITE),
        ingress(READ + "r.read(meta.y, hdr.h.b); hdr.h.b = meta.x ^ meta.y;"),
    ),
    "register-width": ({}, {"locals": "register<bit<48>>(4) big;", "ingress": "big.read(hdr.h.m, 0);"}),
    "register-update": (
        ingress(READ + "meta.x = meta.x + 1;" + WRITE),
        ingress(READ + "meta.x = (meta.x + 1) ^ hdr.h.b;" + WRITE),
    ),
    "register-conditions": (
        ingress(READ + "if (meta.x == 1) { meta.x = 0; }" + WRITE),
        ingress(READ + "if (meta.x == 1) { meta.x = 0; } if (meta.x == 2) { meta.x = 3; }" + WRITE),
    ),
    "register-coupled": (
        ingress(READ + "meta.x = meta.x + 1;" + WRITE + "q.write(0, meta.x);"),
        ingress(READ + "q.read(meta.y, 0); q.write(0, meta.x); meta.x = meta.y;" + WRITE),
    ),
    "register-table": (
        table() | ingress("t.apply(); " + READ + "meta.x = meta.x + hdr.h.b;" + WRITE),
        table() | ingress(READ + "hdr.h.a = meta.x; t.apply(); r.write(0, hdr.h.b);"),
    ),
    "recirculate": ({}, {"egress": "recirculate_preserving_field_list(0);"}),
    "resubmit": ({}, ingress("resubmit_preserving_field_list(0);")),
    "clone": ({}, ingress("clone(CloneType.I2E, 1);")),
    "multicast": ({}, ingress("sm.mcast_grp = hdr.h.s;")),
    "payload-checksum": (
        {"checksum": CHECKSUM.format(payload="")},
        {"checksum": CHECKSUM.format(payload="_with_payload")},
    ),
    "stage-width": (table("m"), table("w")),
    "sram": (table(size=1024), table(size=20 * 1024)),
    "tcam": (table(kind="ternary", size=512), table(kind="ternary", size=4096)),
    "stages": (
        ingress("hdr.h.a = hdr.h.a ^ 1; hdr.h.b = hdr.h.a ^ 1;"),
        ingress("hdr.h.a = ((((hdr.h.a + 1) ^ hdr.h.b) + 2) ^ hdr.h.b) + 3;"),
    ),
}  # fmt: skip


def fit(tmp_path: Path, parts: dict[str, str], target: Target | None = None) -> Fit:
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM.format(**(DEFAULTS | parts)))
    return measure(path).fit(target or Target.model_validate(SMALL))


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str, tmp_path: Path) -> None:
    keeps, breaks = (fit(tmp_path, parts) for parts in RULES[rule])
    assert rule not in {f.rule for f in keeps.findings}
    broken = [f for f in breaks.findings if f.rule == rule]
    assert broken
    assert all(f.lacks and f.instead for f in broken)


def test_a_register_of_both_pipelines_is_in_one(tmp_path: Path) -> None:
    access = "shared.write(0, hdr.h.a);"
    text = PROGRAM.format(**(DEFAULTS | {"ingress": access, "egress": access}))
    both = text.replace("control V(", "register<bit<32>>(64) shared;\ncontrol V(")
    path = tmp_path / "program.p4"
    path.write_text(both)
    rules = [f.rule for f in measure(path).fit(load("rmt")).findings]
    assert "register-pipelines" in rules
    assert "register-pipelines" not in [f.rule for f in measure(path).fit(load("software")).findings]


def test_a_finding_has_its_line(tmp_path: Path) -> None:
    found = fit(tmp_path, ingress("\n\nhdr.h.a = hdr.h.a * hdr.h.b;")).findings
    line = next(f.location.line for f in found if f.rule == "multiply" and f.location)
    assert "hdr.h.a * hdr.h.b" in (tmp_path / "program.p4").read_text().splitlines()[line - 1]


def test_one_access_of_a_register_is_one_stage(tmp_path: Path) -> None:
    """Read, sum and write take the register's stage; without a register they take three stages."""
    parts = ingress(READ + "meta.x = meta.x + hdr.h.b; r.write(hdr.h.a, meta.x);")
    placed = fit(tmp_path, parts).placement
    assert placed is not None
    assert placed.stages == 1
    refused = fit(tmp_path, parts, Target.model_validate(SMALL | {"register": {"operations": 0}})).placement
    assert refused is not None
    assert refused.stages == 3


@pytest.mark.parametrize(
    ("condition", "rules", "stages"),
    [
        ("hdr.h.s[11:0] >= 10", set(), 1),
        ("10 <= hdr.h.s[11:0]", set(), 1),
        ("hdr.h.s[12:0] >= 10", set(), 1),  # the lowest bit of ten is zero
        ("hdr.h.s[12:0] > 10", {"wide-compare"}, 2),
        ("hdr.h.s[12:0] <= 9", set(), 1),
        ("hdr.h.s >= 4096", set(), 1),
        ("hdr.h.s >= 10", {"wide-compare"}, 2),
        ("hdr.h.a >= 10", {"wide-compare"}, 2),
        ("hdr.h.a[7:0] >= hdr.h.b[7:0]", {"wide-compare"}, 2),
        ("hdr.h.a == hdr.h.b", set(), 1),
        ("hdr.h.m == 7", {"wide-condition"}, 1),
        ("hdr.h.a == 7 && hdr.h.s[12:0] >= 10", set(), 1),
        ("hdr.h.a == 7 && hdr.h.b[0:0] == 1 && hdr.h.s[12:0] >= 10", {"wide-condition"}, 1),
    ],
)
def test_what_a_condition_of_a_switch_chip_compares(
    condition: str, rules: set[str], stages: int, tmp_path: Path
) -> None:
    """Check the conditions against those that the compiler for these limits accepts."""
    found = fit(tmp_path, ingress(f"if ({condition}) {{ hdr.g.a = 1; }}"), load("stages12"))
    assert {f.rule for f in found.findings} == rules
    assert found.placement is not None
    assert found.placement.stages == stages


def test_a_registers_access_compares_more_than_a_condition(tmp_path: Path) -> None:
    parts = ingress(READ + "if (meta.x > hdr.h.b) { meta.x = hdr.h.b; }" + WRITE)
    assert not fit(tmp_path, parts, load("stages12")).findings


def test_a_registers_access_has_its_conditions_in_an_action_too(tmp_path: Path) -> None:
    update = READ + "if (meta.x == 1) { meta.x = 0; }" + WRITE
    parts = table() | {"locals": table()["locals"].replace("hdr.h.b = v;", update)}
    assert not fit(tmp_path, parts, load("stages12")).findings


def test_memory_of_tables(tmp_path: Path) -> None:
    """1,024 exact entries of 32 + 1 + 32 bits take one block; a ternary key takes a TCAM block and one for the data."""
    assert fit(tmp_path, table(size=1024)).memory == {"sram": 1}
    assert fit(tmp_path, table(kind="ternary", size=512)).memory == {"sram": 1, "tcam": 1}


def test_all_memory_of_a_device_without_stages(tmp_path: Path) -> None:
    device = {key: value for key, value in SMALL.items() if key not in ("stages", "stage")}
    target = Target.model_validate(device)
    for size, fits in ((1024, True), (20 * 1024, False)):
        found = [f for f in fit(tmp_path, table(size=size), target).findings if f.rule == "memory"]
        assert bool(found) != fits
        assert all(f.lacks and f.instead for f in found)


@pytest.mark.parametrize("name", built_in())
def test_targets_name_their_sources(name: str) -> None:
    target = load(name)
    assert target.name == name
    assert target.sources


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = 'x'\n", "about: missing"),
        ("stags = 3\nname = 'x'\nabout = 'y'\nsources = []", "did you mean 'stages'"),
        ("]", ".toml"),
    ],
)
def test_mistakes_in_a_target_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        load(str(path))


def test_an_unknown_target() -> None:
    with pytest.raises(UserError, match="did you mean 'rmt'"):
        load("rtm")
