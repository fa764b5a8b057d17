"""Content of `bf-rt.json` for a program. The ids of names are those of p4c's Tofino back end."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from p4cc.commands.compile import command
from p4switch.compiler import compile_program
from tests.p4switch.architectures.tofino import START, compiled, write
from tools.bf_rt_diff import differences

INGRESS = """
    action hit(bit<9> port) { tm.ucast_egress_port = port; }
    action miss() { deparsed.drop_ctl = 1; }
    action set_md(bit<16> idx) { meta.residual = idx; }
    ActionProfile(2048) example_action_selector_ap;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) sel_hash;
    ActionSelector(example_action_selector_ap, sel_hash, SelectorMode_t.FAIR, 200, 100) example_action_selector;
    Counter<bit<32>, bit<8>>(64, CounterType_t.PACKETS_AND_BYTES) seen;
    Meter<bit<8>>(32, MeterType_t.PACKETS) rate;
    DirectCounter<bit<64>>(CounterType_t.BYTES) octets;
    Register<pair_t, bit<8>>(16) pairs;
    RegisterParam<bit<32>>(7) least;
    RegisterAction<pair_t, bit<8>, bit<32>>(pairs) more = {
        void apply(inout pair_t value, out bit<32> found) { found = max(value.lo, least.read()); value.lo = found; }
    };
    Hash<bit<16>>(HashAlgorithm_t.CRC16) mix;
    table forward {
        key = { intrinsic.ingress_port : exact @name("ig_intr_md.ingress_port"); hdr.h.value : selector; }
        actions = { hit; set_md; miss; }
        const default_action = miss();
        size = 512;
        implementation = example_action_selector;
    }
    table set_dest {
        key = { meta.residual : exact @name("ig_md.md"); }
        actions = { hit; }
        size = 4096;
    }
    action counted() { octets.count(); }
    @idletime_precision(3)
    table acl {
        key = { hdr.wide.a[23:8] : ternary; hdr.h.isValid() : exact; hdr.sum.a & 0xfff0 : exact @name("sum & 0xfff0"); }
        actions = { counted; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = octets;
        idle_timeout = true;
    }
    apply {
        forward.apply(); set_dest.apply(); acl.apply();
        seen.count(hdr.h.kind);
        meta.seen = (bit<8>) rate.execute(hdr.h.kind);
        hdr.wide.b = more.execute(hdr.h.kind);
        meta.residual = mix.get({ hdr.h.kind, hdr.wide.a, 8w3 });
    }
"""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = write(tmp_path_factory.mktemp("program"), INGRESS=INGRESS)
    path.write_text(path.read_text().replace("In(", "SwitchIngress(").replace("IngressParse(", "SwitchIngressParser("))
    return compile_program(path, arch="tna").bf_rt


def of(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(t for t in schema["tables"] if t["name"] == f"pipe.{name}")
    return found


def names(fields: list[dict[str, Any]]) -> list[str]:
    return [(field.get("singleton") or field)["name"] for field in fields]


@pytest.mark.parametrize(
    ("name", "number", "kind", "size"),
    [
        ("SwitchIngress.forward", 0x02420AB3, "MatchAction_Indirect_Selector", 512),
        ("SwitchIngress.set_dest", 0x02A7EEA6, "MatchAction_Direct", 4096),
        ("SwitchIngress.example_action_selector_ap", 0x81A16E0A, "Action", 2048),
        ("SwitchIngress.example_action_selector", 0x82B1A918, "Selector", 100),
        ("SwitchIngress.example_action_selector_get_member", 0x9AB1A918, "SelectorGetMember", 1),
        ("SwitchIngressParser.$PORT_METADATA", 0x909B7958, "PortMetadata", 288),
    ],
)
def test_tables_have_their_ids(schema: dict[str, Any], name: str, number: int, kind: str, size: int) -> None:
    table = of(schema, name)
    assert (table["id"], table["table_type"], table["size"]) == (number, kind, size)


def test_actions_have_their_ids_and_scopes(schema: dict[str, Any]) -> None:
    actions = of(schema, "SwitchIngress.set_dest")["action_specs"]
    assert [(a["name"], a["id"], a["action_scope"]) for a in actions] == [
        ("SwitchIngress.hit", 32848556, "TableAndDefault"),
        ("NoAction", 21257015, "DefaultOnly"),
    ]
    (port,) = actions[0]["data"]
    assert (port["id"], port["name"], port["type"]) == (1, "port", {"type": "bytes", "width": 9})


def test_members_and_groups_are_one_or_the_other(schema: dict[str, Any]) -> None:
    (data,) = of(schema, "SwitchIngress.forward")["data"]
    assert [(field["name"], field["id"]) for field in data["oneof"]] == [
        ("$ACTION_MEMBER_ID", 65539),
        ("$SELECTOR_GROUP_ID", 65540),
    ]
    assert of(schema, "SwitchIngress.forward")["depends_on"] == [2192681240, 2174840330]


def test_a_key_says_what_part_of_a_field_it_is(schema: dict[str, Any]) -> None:
    slice_, valid, masked, priority = of(schema, "SwitchIngress.acl")["key"]
    assert (slice_["name"], slice_["match_type"], slice_["type"]["width"]) == ("hdr.wide.a[23:8]", "Ternary", 16)
    assert slice_["annotations"] == [{"name": "isFieldSlice", "value": "true"}]
    assert valid["name"] == "hdr.h.$valid"
    assert masked["type"] == {"type": "bytes", "width": 16, "mask": "0xfff0"}
    assert (priority["name"], priority["id"]) == ("$MATCH_PRIORITY", 65537)


def test_what_a_table_has_by_its_properties(schema: dict[str, Any]) -> None:
    table = of(schema, "SwitchIngress.acl")
    assert names(table["data"]) == ["$COUNTER_SPEC_BYTES", "$ENTRY_HIT_STATE", "$ENTRY_TTL"]
    assert table["supported_operations"] == ["SyncCounters", "UpdateHitState"]
    assert table["attributes"] == ["EntryScope", "IdleTimeout"]
    assert table["size"] == 512  # the program declares no size


def test_a_counter_has_what_it_counts(schema: dict[str, Any]) -> None:
    table = of(schema, "SwitchIngress.seen")
    assert table["id"] >> 24 == 0x83
    assert [(k["name"], k["id"]) for k in table["key"]] == [("$COUNTER_INDEX", 65556)]
    assert names(table["data"]) == ["$COUNTER_SPEC_BYTES", "$COUNTER_SPEC_PKTS"]


def test_a_meter_has_rates_in_its_unit(schema: dict[str, Any]) -> None:
    table = of(schema, "SwitchIngress.rate")
    assert [(d["singleton"]["name"], d["singleton"]["id"]) for d in table["data"]] == [
        ("$METER_SPEC_CIR_PPS", 65549),
        ("$METER_SPEC_PIR_PPS", 65550),
        ("$METER_SPEC_CBS_PKTS", 65551),
        ("$METER_SPEC_PBS_PKTS", 65552),
    ]


def test_a_register_has_the_fields_of_its_cells(schema: dict[str, Any]) -> None:
    table = of(schema, "SwitchIngress.pairs")
    assert table["id"] >> 24 == 0x8B
    assert names(table["data"]) == ["SwitchIngress.pairs.lo", "SwitchIngress.pairs.hi"]


def test_a_parameter_of_a_register_depends_on_it(schema: dict[str, Any]) -> None:
    table = of(schema, "SwitchIngress.least")
    assert table["depends_on"] == [of(schema, "SwitchIngress.pairs")["id"]]
    assert table["data"][0]["singleton"]["type"] == {"type": "bytes", "width": 32, "default_value": 7}


def test_a_hash_has_the_fields_of_its_call(schema: dict[str, Any]) -> None:
    assert names(of(schema, "SwitchIngress.mix.compute")["key"]) == ["hdr.h.kind", "hdr.wide.a"]
    assert names(of(schema, "SwitchIngress.mix.configure")["data"]) == ["hdr.h.kind", "hdr.wide.a", "constant0_8_8w3"]
    assert of(schema, "SwitchIngress.mix.algorithm")["id"] >> 24 == 0x97


@pytest.mark.parametrize(
    ("applied", "keys"),
    [
        ("outer.apply(hdr.h, hdr.wide.a);", ["hdr.h.kind", "hdr.wide.a[7:0]"]),
        ("outer.apply(hdr.h, hdr.wide.a + 1);", ["hdr.h.kind", "wide[7:0]"]),
        ("outer.apply(hdr.h, hdr.wide.a); outer.apply(hdr.h, hdr.wide.b);", None),
        ("", None),
    ],
    ids=["arguments", "calculated", "twice", "never"],
)
def test_a_hash_in_a_called_control_has_the_fields_that_are_passed(
    tmp_path: Path, applied: str, keys: list[str] | None
) -> None:
    path = write(tmp_path, INGRESS=f"Outer() outer; apply {{ {applied} tm.ucast_egress_port = 2; }}")
    called = """control Inner(in bit<8> kind, in bit<32> wide) {
        Hash<bit<16>>(HashAlgorithm_t.CRC16) mix;
        bit<16> mixed;
        apply { mixed = mix.get({ kind, wide[7:0] }); }
    }
    control Outer(in h_t header_of, in bit<32> wide) { Inner() inner; apply { inner.apply(header_of.kind, wide); } }
    """
    path.write_text(path.read_text().replace("control In(", f"{called}control In("))
    tables = {t["name"]: t for t in compile_program(path, arch="tna").bf_rt["tables"]}
    compute = tables.get("pipe.In.outer.inner.mix.compute")
    assert (compute and names(compute["key"])) == keys


def test_port_metadata_has_the_fields_that_the_parser_unpacks(tmp_path: Path) -> None:
    parser = """state start {
        packet.extract(intrinsic); port_t found = port_metadata_unpack<port_t>(packet); meta.seen = found.first;
        transition accept;
    }"""
    table = of(compiled(tmp_path, INGRESS_PARSER=parser).bf_rt, "IngressParse.$PORT_METADATA")
    assert names(table["data"]) == ["first", "second"]
    assert names(table["key"]) == ["intrinsic.ingress_port"]


@pytest.mark.parametrize(("arch", "width"), [("tna", 64), ("t2na", 128)])
def test_port_metadata_that_is_passed_over_is_one_number(tmp_path: Path, arch: str, width: int) -> None:
    table = of(compiled(tmp_path, arch).bf_rt, "IngressParse.$PORT_METADATA")
    assert table["data"][0]["singleton"]["type"] == {"type": "bytes", "width": width}


def test_value_sets_and_digests(tmp_path: Path) -> None:
    parser = f"""value_set<bit<8>>(4) kinds;
    {START} packet.extract(hdr.h); transition select(hdr.h.kind) {{ kinds : more; default : accept; }} }}
    state more {{ transition accept; }}"""
    deparser = "Digest<note_t>() told; apply { if (deparsed.digest_type == 1) { told.pack(hdr.note); } }"
    made = compiled(tmp_path, INGRESS_PARSER=parser, INGRESS_DEPARSER=deparser).bf_rt
    (key,) = of(made, "IngressParse.kinds")["key"]
    assert (key["name"], key["match_type"]) == ("f1", "Ternary")
    (told,) = made["learn_filters"]
    assert (told["name"], told["id"] >> 24) == ("pipe.IngressDeparse.told", 0x8E)
    assert names(told["fields"]) == ["note", "more"]


def test_the_command_writes_the_file(tmp_path: Path) -> None:
    out = tmp_path / "bf-rt.json"
    given = [str(write(tmp_path)), "--arch", "tna", "-o", str(tmp_path / "out.json"), "--bf-rt", str(out)]
    assert CliRunner().invoke(command, given, catch_exceptions=False).exit_code == 0
    assert json.loads(out.read_text())["schema_version"] == "1.0.0"


def test_a_program_for_another_architecture_has_none(tmp_path: Path) -> None:
    path = Path(__file__).parents[3] / "p4src" / "ecn.p4"
    given = [str(path), "-o", str(tmp_path / "out.json"), "--bf-rt", str(tmp_path / "bf-rt.json")]
    result = CliRunner().invoke(command, given)
    assert "has no bf-rt.json: expected one for tna or t2na" in str(result.exception)
    assert not (tmp_path / "out.json").exists()


def test_the_comparison_tells_what_differs() -> None:
    mine = {"tables": [{"name": "a", "id": 1}, {"name": "b", "id": 2}]}
    theirs = {"tables": [{"name": "b", "id": 3}, {"name": "c", "id": 4}]}
    assert list(differences(theirs, mine)) == [
        "/tables/a: not expected",
        "/tables/b/id: expected 3, got 2",
        "/tables/c: missing",
    ]


def test_an_object_outside_of_all_blocks_has_no_pipeline_in_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, INGRESS="apply { shared.count(0); tm.ucast_egress_port = 2; }")
    shared = "Counter<bit<32>, bit<8>>(64, CounterType_t.PACKETS) shared;\n"
    path.write_text(path.read_text().replace("struct headers {", f"{shared}struct headers {{"))
    tables = {t["name"]: t for t in compile_program(path, arch="tna").bf_rt["tables"]}
    assert tables["shared"]["table_type"] == "Counter"
    assert "pipe.shared" not in tables
