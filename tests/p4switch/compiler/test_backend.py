"""BMv2 JSON, P4Info and the cache of small programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

import p4switch.compiler as compiler
from p4switch.compiler import Compiled, compile_program
from p4switch.compiler.p4info.symbols import Symbols, name_hash
from p4switch.errors import UserError
from p4switch.p4runtime.messages import p4info_pb2

HEAD = """
#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<16> x; int<8> s; }
struct inner_t { bit<4> low; bool flag; }
struct headers_t { data_t data; data_t[2] items; }
struct meta_t { inner_t inner; bit<8> m; }
parser parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.data); transition accept; }
}
control verify_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control update_sums(inout headers_t hdr, inout meta_t meta) { apply { } }
control deparse(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
"""
MAIN = "V1Switch(parse(), verify_sums(), ingress(), egress(), update_sums(), deparse()) main;"


def ingress(body: str, before: str = "", main: str = MAIN) -> str:
    params = "inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std"
    return f"{HEAD}{before}\ncontrol ingress({params}) {{ {body} }}\n{main}"


@pytest.fixture
def build(tmp_path: Path) -> Callable[[str], Compiled]:
    def run(text: str) -> Compiled:
        path = tmp_path / "program.p4"
        path.write_text(text)
        return compile_program(path)

    return run


def table(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(t for p in document["pipelines"] for t in p["tables"] if t["name"] == name)
    return found


def action(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(a for a in document["actions"] if a["name"] == name)
    return found


# BMv2 JSON


def test_all_sections_are_there(build: Callable[[str], Compiled]) -> None:
    document = build(ingress("apply { }")).json
    sections = """program __meta__ header_types headers header_stacks header_union_types header_unions
        header_union_stacks field_lists errors enums parsers parse_vsets deparsers meter_arrays counter_arrays
        register_arrays calculations learn_lists actions pipelines checksums force_arith extern_instances
        field_aliases"""
    assert set(document) == set(sections.split())
    assert document["__meta__"]["version"][0] == 2
    assert ["queueing_metadata.deq_qdepth", ["standard_metadata", "deq_qdepth"]] in document["field_aliases"]
    assert document["errors"][0] == ["NoError", 0]


def test_header_types_are_whole_bytes(build: Callable[[str], Compiled]) -> None:
    document = build(ingress("bit<3> local; apply { local = 1; meta.inner.flag = true; }")).json
    for t in document["header_types"]:
        assert sum(f[1] for f in t["fields"]) % 8 == 0, t["name"]
    scalars = {f[0]: f[1] for f in document["header_types"][0]["fields"]}
    assert scalars["userMetadata.inner.flag"] == 1
    assert scalars["ingress.local"] == 3
    names = [h["name"] for h in document["headers"]]
    assert names == ["scalars", "standard_metadata", "data", "items[0]", "items[1]"]
    assert document["header_stacks"][0]["header_ids"] == [3, 4]
    assert document["deparsers"][0]["order"] == ["data", "items[0]", "items[1]"]


def test_expressions_are_brought_back_into_range(build: Callable[[str], Compiled]) -> None:
    document = build(
        ingress("""
            action go(bit<8> n) {
                hdr.data.a = hdr.data.a + n;
                hdr.data.s = -hdr.data.s;
                meta.inner.flag = hdr.data.isValid() && meta.inner.flag;
            }
            table t { actions = { go; } default_action = go(3); }
            apply { t.apply(); }""")
    ).json
    add, negate, both = action(document, "ingress.go")["primitives"]
    expression = {"type": "expression", "value": {"op": "&", "left": {"type": "expression", "value": {
        "op": "+", "left": {"type": "field", "value": ["data", "a"]}, "right": {"type": "local", "value": 0}}},
        "right": {"type": "hexstr", "value": "0xff"}}}  # fmt: skip
    assert add["parameters"] == [{"type": "field", "value": ["data", "a"]}, {"type": "expression", "value": expression}]
    assert negate["parameters"][1]["value"]["value"]["op"] == "two_comp_mod"
    assert both["parameters"][1]["value"]["value"]["op"] == "b2d"
    assert add["source_info"]["source_fragment"].startswith("hdr.data.a = ")
    entry = table(document, "ingress.t")["default_entry"]
    assert (entry["action_data"], entry["action_const"]) == (["0x3"], False)


def test_conditions_in_actions_are_jumps(build: Callable[[str], Compiled]) -> None:
    document = build(
        ingress("""
            action go() {
                if (hdr.data.a == 1) { hdr.data.x = 1; return; } else { hdr.data.x = 2; }
                hdr.data.a = 9;
                exit;
            }
            table t { actions = { go; } const default_action = go; }
            apply { t.apply(); }""")
    ).json
    ops = [p["op"] for p in action(document, "ingress.go")["primitives"]]
    assert ops == ["_jump_if_zero", "assign", "_jump", "assign", "assign", "exit"]
    targets = [p["parameters"][-1]["value"] for p in action(document, "ingress.go")["primitives"] if "jump" in p["op"]]
    assert targets == ["0x3", "0x6"]


def test_keys(build: Callable[[str], Compiled]) -> None:
    document = build(
        ingress("""
            table t {
                key = {
                    hdr.data.a & 0xf0 : ternary;
                    hdr.data.isValid() : exact;
                    hdr.items[1].x : lpm @name("wide");
                    hdr.data.x + 1 : exact @name("sum");
                    meta.inner.flag : optional;
                }
                actions = { NoAction; }
                const entries = { (0x30 &&& 0x70, true, 0x1200 &&& 0xff00, 7, _) : NoAction(); }
            }
            apply { t.apply(); }""")
    ).json
    t = table(document, "ingress.t")
    assert t["match_type"] == "ternary"
    assert [(k["name"], k["match_type"], k["target"], k["mask"]) for k in t["key"]] == [
        ("hdr.data.a & 0xf0", "ternary", ["data", "a"], "0xf0"),
        ("hdr.data.$valid$", "exact", ["data", "$valid$"], None),
        ("wide", "lpm", ["items[1]", "x"], None),
        ("sum", "exact", ["scalars", "ingress.t.key3"], None),
        ("meta.inner.flag", "ternary", ["scalars", "userMetadata.inner.flag"], None),
    ]
    assert t["entries"][0]["match_key"] == [
        {"match_type": "ternary", "key": "0x30", "mask": "0x70"},
        {"match_type": "exact", "key": "0x01"},
        {"match_type": "lpm", "key": "0x1200", "prefix_length": 8},
        {"match_type": "exact", "key": "0x0007"},
        {"match_type": "ternary", "key": "0x00", "mask": "0x00"},
    ]
    first = document["pipelines"][0]["init_table"]
    assert table(document, first)["next_tables"] == {first.removeprefix("tbl_"): "ingress.t"}


def test_next_tables(build: Callable[[str], Compiled]) -> None:
    document = build(
        ingress("""
            action one() { }
            table t { key = { hdr.data.a : exact; } actions = { one; NoAction; } }
            table u { key = { hdr.data.x : exact; } actions = { NoAction; } }
            apply {
                if (t.apply().hit) { u.apply(); }
            }""")
    ).json
    assert table(document, "ingress.t")["next_tables"] == {"__HIT__": "ingress.u", "__MISS__": None}
    assert table(document, "ingress.u")["next_tables"] == {"NoAction": None}


def test_select_values_are_padded_field_by_field(build: Callable[[str], Compiled]) -> None:
    text = ingress("apply { }").replace(
        "transition accept;",
        """transition select(hdr.data.a[3:0], hdr.data.x) {
            (0xa, 0x12): more;
            (_, 0x8000 &&& 0x8000): more;
            (1, 5 .. 6): more;
            default: accept;
        } }
        state more { transition accept;""",
    )
    state = build(text).json["parsers"][0]["parse_states"][0]
    values = [(t["value"], t["mask"], t["next_state"]) for t in state["transitions"]]
    assert values[:2] == [("0x0a0012", None, None), ("0x008000", "0x008000", None)]
    assert values[2:4] == [("0x010005", "0x0fffff", None), ("0x010006", "0x0fffff", None)]
    assert state["transitions"][-1]["type"] == "default"


# P4Info


def test_ids_are_those_of_p4c() -> None:
    assert name_hash("NoAction") & 0xFFFFFF == 21257015 & 0xFFFFFF
    symbols = Symbols()
    for name in ("a.t", "b.t", "b.u"):
        symbols.add(2, name, [])
    symbols.number()
    assert symbols.id(2, "a.t") >> 24 == 2
    assert [symbols.alias(n) for n in ("a.t", "b.t", "b.u")] == ["a.t", "b.t", "u"]


def test_p4info(build: Callable[[str], Compiled]) -> None:
    info = build(
        ingress(
            """
            @id(0x1234) action set(bit<9> port, @id(7) @name("label") mac_t m) { std.egress_spec = port; }
            action other() { }
            direct_counter(CounterType.bytes) hits;
            @brief("Where to") table t {
                key = { hdr.data.a : exact; (color_t)hdr.data.a : ternary @name("color"); hdr.data.x : lpm @id(9); }
                actions = { set; @tableonly NoAction; @defaultonly other; }
                const default_action = other;
                counters = hits;
                size = 64;
                support_timeout = true;
            }
            register<bit<12>>(5) cells;
            apply { t.apply(); }""",
            before="""
            @p4runtime_translation("example/mac", string) type bit<48> mac_t;
            enum bit<8> color_t { red = 1, blue = 2 }
            @controller_header("packet_in") header in_t { bit<9> port; bit<7> pad; }
            """,
            main='@pkginfo(name="demo", version="1") ' + MAIN,
        )
    ).p4info
    (t,) = info.tables
    assert (t.preamble.name, t.preamble.alias, t.size, t.preamble.doc.brief) == ("ingress.t", "t", 64, "Where to")
    assert [(f.id, f.name, f.bitwidth, f.match_type) for f in t.match_fields] == [
        (1, "hdr.data.a", 8, p4info_pb2.MatchField.EXACT),
        (2, "color", 8, p4info_pb2.MatchField.TERNARY),
        (9, "hdr.data.x", 16, p4info_pb2.MatchField.LPM),
    ]
    by_name = {a.preamble.name: a for a in info.actions}
    assert t.const_default_action_id == by_name["ingress.other"].preamble.id
    scopes = {r.id: r.scope for r in t.action_refs}
    assert scopes[21257015] == p4info_pb2.ActionRef.TABLE_ONLY
    assert scopes[by_name["ingress.other"].preamble.id] == p4info_pb2.ActionRef.DEFAULT_ONLY
    assert t.idle_timeout_behavior == p4info_pb2.Table.NOTIFY_CONTROL
    assert t.direct_resource_ids == [info.direct_counters[0].preamble.id]
    assert info.direct_counters[0].direct_table_id == t.preamble.id
    set_ = by_name["ingress.set"]
    assert set_.preamble.id == 0x01001234
    assert [(p.id, p.name, p.bitwidth, p.type_name.name) for p in set_.params] == [
        (1, "port", 9, ""),
        (7, "label", 0, "mac_t"),
    ]
    assert info.type_info.new_types["mac_t"].translated_type.uri == "example/mac"
    assert [m.name for m in info.type_info.serializable_enums["color_t"].members] == ["red", "blue"]
    assert info.registers[0].type_spec.bitstring.bit.bitwidth == 12
    assert [m.name for m in info.controller_packet_metadata[0].metadata] == ["port", "pad"]
    assert (info.pkg_info.name, info.pkg_info.version, info.pkg_info.arch) == ("demo", "1", "v1model")


# Files and the cache


def test_write(build: Callable[[str], Compiled], tmp_path: Path) -> None:
    compiled = build(ingress("table t { actions = { NoAction; } } apply { t.apply(); }"))
    compiled.write(tmp_path / "out.json", tmp_path / "out.txtpb")
    compiled.write(p4info_path=tmp_path / "out.bin")
    assert json.loads((tmp_path / "out.json").read_text()) == compiled.json
    text = text_format.Parse((tmp_path / "out.txtpb").read_text(), p4info_pb2.P4Info())
    assert text == p4info_pb2.P4Info.FromString((tmp_path / "out.bin").read_bytes()) == compiled.p4info


def test_what_is_in_the_cache_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "program.p4"
    path.write_text('#include "part.p4"\n' + ingress("apply { hdr.data.a = VALUE; }"))
    (tmp_path / "part.p4").write_text("#define VALUE 1\n")
    count = []
    real = compiler._compile

    def counted(*args: Any) -> Any:
        count.append(args)
        return real(*args)

    monkeypatch.setattr(compiler, "_compile", counted)
    first = compile_program(path)
    assert compile_program(path).json == first.json
    assert len(count) == 1
    (tmp_path / "part.p4").write_text("#define VALUE 2\n")
    assert compile_program(path).json != first.json
    assert compile_program(path, defines={"UNUSED": "1"}).json != first.json
    assert len(count) == 2


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        compile_program(tmp_path / "nothing.p4")
    assert "nothing.p4" in str(caught.value)
    assert "\n" not in str(caught.value)


# Features that this target lacks

EXTERN = "extern thing { thing(); void poke(); }\nextern void shout(in bit<8> v);"


@pytest.mark.parametrize(
    ("body", "before", "message"),
    [
        ("thing() it; apply { it.poke(); }", EXTERN, "method 'thing.poke' is not supported on this target"),
        ("apply { shout(1); }", EXTERN, "extern function 'shout' is not supported on this target"),
        ("register<bool>(4) r; apply { }", "", "a register of bool is not supported"),
        ("register<bit<8>>(0) r; apply { }", "", "the size has to be 1 to 268435456, not 0"),
        ("register<bit<8>>(4294967295) r; apply { }", "", "the size has to be 1 to 268435456, not 4294967295"),
        ("table t { key = { hdr.data.a : exact; } actions = { NoAction; } size = 1 << 31; } apply { t.apply(); }", "",
         "the size has to be 1 to 2147483647, not 2147483648"),
        ("table t { key = { hdr.data.a : lpm; hdr.data.x : lpm; } actions = { NoAction; } } apply { t.apply(); }", "",
         "a table with more than one lpm key"),
        ("bit<0> nothing; apply { nothing = 0; }", "", "a variable or field of no bits"),
        ("apply { data_t[256] many; many[0].a = 1; }", "", "a header stack of 256 is more than"),
        ("register<bit<8>>(4) r; register<bit<8>>(4) s; inner() a; apply { a.apply(r); a.apply(s); }",
         "control inner(register<bit<8>> c) { action x() { c.write(0, 1); } table t { actions = { x; } }"
         " apply { t.apply(); } }", "needs the same extern object each time"),
        ("table t { key = { hdr.data.a + 1 : exact; } actions = { NoAction; } } apply { t.apply(); }", "",
         "this key is not a name"),
        ("action a() { } @name(\"a\") action b() { } table t { actions = { a; b; } default_action = a; }"
         "apply { t.apply(); }", "", "another action has the control-plane name 'ingress.a' already"),
        (
            "inner() a; inner() b; apply { a.apply(); b.apply(); }",
            "control inner() { @name(\".t\") table t { actions = { NoAction; } } apply { t.apply(); } }",
            "another table has the control-plane name 't' already",
        ),
        ("odd_t odd; apply { odd = { 1 }; }", "header odd_t { bit<12> v; }", "header 'odd_t' has 12 bits"),
        ("apply { clone(CloneType.E2E, 1); }", "", "'clone' can only be called in egress on this target"),
    ],
)  # fmt: skip
def test_limits_are_told_with_their_place(
    build: Callable[[str], Compiled], body: str, before: str, message: str
) -> None:
    with pytest.raises(UserError) as caught:
        build(ingress(body, before))
    first = str(caught.value).splitlines()[0]
    assert message in first
    assert "program.p4:" in first
    assert ": error: " in first


def test_a_package_is_needed(build: Callable[[str], Compiled]) -> None:
    with pytest.raises(UserError, match="no package is instantiated"):
        build(ingress("apply { }", main=""))
