"""A user's own P4 program: it may be any file, with entries from Python or a file, and its state is in the results."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import topologies
from control_plane import controller, entry_files, pipelines, programs
from control_plane.programs.entries import (
    Action,
    CloneSession,
    DefaultAction,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    Range,
    TableEntry,
    Ternary,
)
from harness.measure import results
from harness.plan.resolve import plan, resolved
from harness.plan.run import Run
from harness.plan.scenario import check, dump, parse
from harness.worlds.virtual import VirtualWorld
from p4cc.execution.batch import planned
from p4switch.errors import UserError
from p4switch.p4runtime.messages import Message
from p4switch.registry import forget
from tests.p4src.test_load_balancing import FIRST_MEMBER, PAGE, SHOWN
from tests.p4switch.p4runtime import everything

EXAMPLE = Path(__file__).parents[2] / "examples" / "quell"

# No file of p4cc's in it: a router with a register, a counter for each port, a direct counter and a meter.
ROUTER = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> to; bit<48> from; bit<16> kind; }
header ipv4_t { bit<128> head; bit<32> to; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { bit<2> colour; }
struct seen_t { bit<72> bytes; bool any; }
parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        transition accept;
    }
}
control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Router(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<72>>(4) weight;
    counter(4, CounterType.packets_and_bytes) arrived;
    direct_counter(CounterType.packets) routed;
    meter(4, MeterType.bytes) speed;
    bit<72> so_far;
    action send(bit<48> mac, bit<9> port) { hdr.ethernet.to = mac; sm.egress_spec = port; routed.count(); }
    action drop() { mark_to_drop(sm); }
    table hosts {
        key = { hdr.ipv4.to: lpm; }
        actions = { send; drop; }
        default_action = drop();
        counters = routed;
    }
    apply {
        arrived.count((bit<32>)sm.ingress_port);
        speed.execute_meter((bit<32>)sm.ingress_port, meta.colour);
        hosts.apply();
        weight.read(so_far, (bit<32>)sm.ingress_port);
        weight.write((bit<32>)sm.ingress_port, so_far + 0x100000000000000000);
    }
}
control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(Parse(), Verify(), Router(), Leave(), Update(), Deparse()) main;
"""

# On p4cc's stages: each packet that comes from a host is counted.
COUNTING = """
#include "include/prelude.p4"
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; bth_t bth; }
struct metadata_t { common_metadata_t common; }
#ifndef STEP
#define STEP 1
#endif
register<bit<32>>(MAX_PORTS) seen;
control Counting(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<32> count;
    action note() { seen.read(count, (bit<32>)standard_metadata.ingress_port);
                    seen.write((bit<32>)standard_metadata.ingress_port, count + STEP); }
    table from_host {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { note; @defaultonly NoAction; }
        const default_action = NoAction();
    }
    apply { from_host.apply(); }
}
#define INGRESS_STAGE Counting
#include "include/switch.p4"
"""

COUNTING_PARAMETERS = """
from control_plane.programs import ProgramParameters
from control_plane.programs.entries import Action, Exact, TableEntry
from control_plane.programs.base import register
from control_plane.programs.forwarding import forwarding_entries


@register("counting")
class CountingParameters(ProgramParameters):
    step: int = 1

    def defines(self):
        return {"STEP": str(self.step)}

    def entries(self, switch):
        own = [TableEntry("from_host", {"port": Exact(port)}, Action("note")) for port in switch.host_ports]
        return [*forwarding_entries(switch), *own]
"""


@pytest.fixture(autouse=True)
def _forgotten(tmp_path: Path) -> Iterator[None]:
    """Forget the names that a test registered, because they hold for the whole process."""
    yield
    for file in tmp_path.glob("*.py"):
        forget(str(file))


def scenario_of(folder: Path, program: str, more: str = "", topology: str = 'name = "single-switch"\nhosts = 3') -> str:
    """Write a small incast and return the path of its file."""
    path = folder / "own.toml"
    text = f'program = "{program}"\ncc = "dctcp"\n{more}\n[topology]\n{topology}\n'
    path.write_text(text + '[workload]\nname = "incast"\nsenders = 2\nsize_bytes = 3000\n')
    return str(path)


def runtime_json() -> dict[str, Any]:
    """Return routes of the single switch in the format of `simple_controller`."""
    topology = topologies.build("single-switch", {"hosts": 3})
    routes = [
        {
            "table": "Router.hosts",
            "match": {"hdr.ipv4.to": [str(host.address), 32]},
            "action_name": "Router.send",
            "action_params": {"mac": host.mac.hex(":"), "port": topology.uplink(host).port},
        }
        for host in topology.hosts
    ]
    drop = {"table": "Router.hosts", "default_action": True, "action_name": "Router.drop", "action_params": {}}
    return {"target": "bmv2", "p4info": "build/router.p4.p4info.txt", "table_entries": [drop, *routes]}


def one(scenario: str, *settings: str) -> Run:
    (run,) = planned([scenario], settings, {})
    return run


def state_of(run: Run) -> dict[tuple[str, int, str, str], int]:
    """Return the state of the first switch's program, by object, index, entry and field."""
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    table = recording.tables["program_state"]
    first = table[table["switch"] == run.topology.switches[0].name]
    columns = (first[name] for name in ("object", "index", "entry", "field", "value"))
    return {(name, index, entry, field): int(value) for name, index, entry, field, value in zip(*columns, strict=True)}


def test_any_program_runs_with_the_json_of_simple_controller(tmp_path: Path) -> None:
    (tmp_path / "router.p4").write_text(ROUTER)
    (tmp_path / "router.entries.json").write_text(json.dumps(runtime_json()))
    run = one(scenario_of(tmp_path, "router.p4"))
    state = state_of(run)
    # Three packets of each sender, an ACK for each; ports 2 and 3 lead to the senders.
    assert {key: value for key, value in state.items() if key[0] == "arrived" and key[3] == "packets"} == {
        ("arrived", 1, "", "packets"): 6,
        ("arrived", 2, "", "packets"): 3,
        ("arrived", 3, "", "packets"): 3,
    }
    assert state["arrived", 2, "", "bytes"] > 3000
    assert state["weight", 1, "", "value[64]"] == 6 << 4
    assert ("weight", 1, "", "value") not in state  # the lower 64 bits are 0
    routed = {entry: value for (name, _, entry, _), value in state.items() if name == "routed"}
    assert sorted(routed.values()) == [3, 3, 6]
    assert all(entry.startswith("hdr.ipv4.to=0x0a") and entry.endswith("/32") for entry in routed)


def test_a_file_of_entries_for_each_switch_and_p4runtime_text(tmp_path: Path) -> None:
    source = tmp_path / "router.p4"
    source.write_text(ROUTER)
    (tmp_path / "all.json").write_text(json.dumps(runtime_json()))
    p4info = pipelines.compiled(pipelines.Build(source)).p4info
    known = controller.Program(p4info, b"")
    updates = [update for found in entry_files.read(tmp_path / "all.json", p4info) for update in known.updates(found)]
    (tmp_path / "write-s0.txtpb").write_text("\n".join(f"updates {{ {update} }}" for update in updates))
    entities = "\n".join(f"entities {{ {update.entity} }}" for update in updates)
    (tmp_path / "entities.txtpb").write_text(f"# as read\n{entities}")
    expected = state_of(one(scenario_of(tmp_path, "router.p4", 'programs.router.entry_files = ["all.json"]')))
    for name in ("write-{switch}.txtpb", "entities.txtpb"):
        run = one(scenario_of(tmp_path, "router.p4", f'programs.router.entry_files = ["{name}"]'))
        assert state_of(run) == expected


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    (tmp_path / "counting.p4").write_text(COUNTING)
    (tmp_path / "counting.py").write_text(COUNTING_PARAMETERS)
    return tmp_path


def test_a_program_on_the_stages_with_parameters_beside_it(counting: Path) -> None:
    """Its entries use the hosts' places. Its macro, its load balancer and its state need no other file."""
    fat_tree = 'name = "fat-tree"\nk = 4'
    (counting / "first_member.p4").write_text(FIRST_MEMBER)
    scenario = scenario_of(counting, "counting.p4", topology=fat_tree)

    def counts(run: Run) -> list[int]:
        return sorted(VirtualWorld(run).run().tables["program_state"]["value"])

    # The ports of two senders, and of the receiver, which acknowledges.
    assert counts(one(scenario, "programs.counting.step=10")) == [30, 30, 60]
    run = one(scenario, f"switch.load_balancing={counting / 'first_member.p4'}", "switch.defines.STEP=7")
    assert dict(run.build(run.switch_programs[0]).defines) == {"STEP": "7", "LOAD_BALANCER": "first_member"}
    assert counts(run) == [21, 21, 42]


def test_the_resolved_scenario_runs_from_another_folder(counting: Path) -> None:
    run = one(scenario_of(counting, "counting.p4"), "programs.counting.step=3", "switch.load_balancing=drill")
    again = check(parse(dump(resolved(run))))
    (rerun,) = plan("again", again, Path("/"))
    assert rerun.switch_programs == run.switch_programs
    assert rerun.build(rerun.switch_programs[0]) == run.build(run.switch_programs[0])
    assert resolved(rerun) == resolved(run)


def test_routes_come_by_themselves_where_the_stages_are_included(counting: Path) -> None:
    (counting / "plain.p4").write_text(COUNTING)
    assert state_of(one(scenario_of(counting, "plain.p4"))) == {}


def test_the_programs_that_the_page_shows(tmp_path: Path) -> None:
    """The program of stages has the tables of ecn.p4; the class beside the other program has that program's name."""
    (stages,) = (text for text in SHOWN if "EGRESS_STAGE" in text)
    (tmp_path / "shown.p4").write_text(stages)
    shown, ecn = (
        pipelines.compiled(pipelines.Build(source)).p4info
        for source in (tmp_path / "shown.p4", programs.program("ecn").source)
    )
    assert list(shown.tables) == list(ecn.tables)
    (python,) = (text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "@register" in text)
    (tmp_path / "my.p4").write_text(COUNTING.replace("STEP", "THRESHOLD_BYTES"))
    (tmp_path / "my.py").write_text(python)
    assert set(state_of(one(scenario_of(tmp_path, "my.p4"), "programs.my.threshold_bytes=5")).values()) == {30, 15}


def test_an_extension_is_new_files_and_no_others(tmp_path: Path) -> None:
    """Count the files against the number on the page.

    The files include no P4 header: p4cc makes it from the declaration, for runs with other
    protocols, too.
    """
    files = ("delays.p4", "delays.py", "quell.py", "waves.py", "port_delay.py")
    guide = (EXAMPLE.parents[1] / "docs" / "adding-a-protocol.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| all of `examples/quell`.*\| (\d+) \|", guide, re.MULTILINE)
    assert int(row) == len(files)
    for name in (*files, "quell.toml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    runs = planned([str(tmp_path / "quell.toml")], (), {})
    assert [run.protocol.name for run in runs] == ["quell", "dcqcn"]
    for run in runs:
        build = run.build(run.switch_programs[0])
        types = pipelines.compiled(build).json["header_types"]
        (probe,) = (header for header in types if header["name"] == "probe_t")
        assert len(probe["fields"]) == 3
    made = build.include_dirs[-1] / "include" / "packets" / "quell.p4"
    with pytest.raises(UserError, match=r"quell\.p4"):
        pipelines.compiled(pipelines.Build(build.source))
    assert "OPCODE_PROBE" in made.read_text()


def test_what_it_keeps_is_in_the_folder_of_the_run(counting: Path) -> None:
    run = one(scenario_of(counting, "counting.p4"))
    made = results.write(counting / "made", results.files(run, VirtualWorld(run).run()))
    table = made.table("program_state")
    assert list(table.columns) == ["time_ns", "switch", "kind", "object", "index", "entry", "field", "value"]
    assert set(table["object"]) == {"seen"}


def test_marks_are_counted_whatever_the_program_counts(tmp_path: Path) -> None:
    """The count is the number of packets that left with ECN CE and arrived without, as captured frames show."""
    mark = "hdr.ipv4.head = hdr.ipv4.head | (bit<128>)3 << 112;"
    (tmp_path / "own.p4").write_text(ROUTER.replace("arrived.count(", f"{mark} arrived.count("))
    (tmp_path / "own.entries.json").write_text(json.dumps(runtime_json()))
    recording = VirtualWorld(one(scenario_of(tmp_path, "own.p4"))).run()
    marked = recording.tables["links"].query("node == 's0'").groupby("port")["marked"].sum()
    stats = recording.port_stats
    here = stats["node"] == recording.node_names.index("s0")
    sent = dict(zip(stats["port"][here].tolist(), stats["tx_packets"][here].tolist(), strict=True))
    assert max(sent.values()) > 0
    assert marked.to_dict() == {port: count for port, count in sent.items() if port in marked.index}
    assert recording.tables["links"].query("node != 's0'")["marked"].sum() == 0


@pytest.mark.parametrize(
    ("files", "settings", "says"),
    [
        ({}, [], "no P4 program '{folder}/own.p4'"),
        ({"own.p4": ROUTER}, ["programs.own.entry_files=['x.json']"], "no file '{folder}/x.json'"),
        ({"own.p4": ROUTER}, ["programs.own.entries=1"], "programs.own.entries: no such key; did you mean"),
        ({"own.p4": ROUTER, "own.py": "x = 1"}, [], "{folder}/own.py registers no program 'own'; expected"),
        ({"own.p4": ROUTER, "own.entries.json": "{"}, [], "{folder}/own.entries.json: not JSON"),
        ({"own.p4": ROUTER, "own.entries.json": "[]"}, [], "{folder}/own.entries.json: expected an object with"),
        ({"own.p4": ROUTER, "own.entries.txtpb": "update {}"}, [], "neither a WriteRequest nor entities"),
        (
            {"own.p4": ROUTER, "own.entries.txtpb": "entities { table_entry { table_id: 5 } }"},
            [],
            "switch 1: ",
        ),
        ({"own.p4": ROUTER}, ["switch.load_balancing=drill"], "own.p4 does not use a load balancer; expected"),
        ({"own.p4": "control"}, [], "own.p4:1"),
        (
            {"own.p4": ROUTER, "own.py": COUNTING_PARAMETERS.replace('"counting"', '"own"')},
            [],
            "the program has no table 'ipv4_lpm'; expected one of Router.hosts, hosts",
        ),
        (
            {"own.p4": COUNTING, "own.py": COUNTING_PARAMETERS.replace('"counting"', '"ecn"')},
            [],
            "program 'ecn' is registered twice, by {folder}/own.py and p4cc itself",
        ),
        (
            {"own.p4": ROUTER, "own.py": "from control_plane.programs.base import register\nregister('own')(int)"},
            [],
            "program 'own': class int should derive from ProgramParameters",
        ),
    ],
)
def test_mistakes(tmp_path: Path, files: dict[str, str], settings: list[str], says: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as error:
        VirtualWorld(one(scenario_of(tmp_path, "own.p4"), *settings))
    assert says.replace("{folder}", str(tmp_path)) in str(error.value)


def test_a_name_that_p4cc_has_needs_parameters_of_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "ecn.p4").write_text(ROUTER)
    with pytest.raises(UserError, match=r"ecn\.p4: there is a program 'ecn'; expected a name of its own"):
        one(scenario_of(tmp_path, "ecn.p4"))


def entries(tmp_path: Path, p4info: Message, **tables: Any) -> list[Any]:
    path = tmp_path / "entries.json"
    path.write_text(json.dumps(tables))
    return entry_files.read(path, p4info)


@pytest.fixture(scope="module")
def p4info() -> Message:
    """Return a program with one table for each match kind."""
    return everything.p4info()


def test_json_becomes_entries(tmp_path: Path, p4info: Message) -> None:
    mixed = {"e": [7], "l": ["10.0.0.0", 8], "t": ["0x1200", 0xFF00], "r": [3, 200]}
    found = entries(
        tmp_path,
        p4info,
        table_entries=[
            {"table": "mixed", "match": mixed, "action_name": "send", "action_params": {"port": 3}, "priority": 5},
            {"table": "lpm_one", "default_action": True, "action_name": "drop"},
        ],
        multicast_group_entries=[{"multicast_group_id": 2, "replicas": [{"egress_port": 1, "instance": 4}]}],
        clone_session_entries=[{"clone_session_id": 9, "replicas": [{"egress_port": 2}], "packet_length_bytes": 64}],
    )
    match: dict[str, Match] = {"e": Exact(7), "l": Lpm(0x0A000000, 8), "t": Ternary(0x1200, 0xFF00), "r": Range(3, 200)}
    assert found == [
        TableEntry("mixed", match, Action("send", {"port": 3}), 5),
        DefaultAction("lpm_one", Action("drop")),
        MulticastGroup(2, ((1, 4),)),
        CloneSession(9, ((2, 0),), 64),
    ]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"table": "lpm_two"}, r"table_entries\.0: no table 'lpm_two'; did you mean 'lpm_one'\?"),
        ({"match": {"x": 1}}, r"table_entries\.0: no match field 'x'; expected one of l"),
        ({"match": {"l": 1}}, r"table_entries\.0: l: expected \[value, prefix length\], got 1"),
        ({"match": {"l": ["1.2.3", 8]}}, r"l: expected a number, an IPv4 address or a MAC address, got '1\.2\.3'"),
        ({"match": {"l": [1 << 40, 8]}}, r"l: 1099511627776 does not fit into 32 bits"),
        ({"action_name": 3}, r"table_entries\.0\.action_name: should be a valid string, got 3"),
    ],
)
def test_mistakes_in_json_name_the_file_and_the_entry(
    tmp_path: Path, p4info: Message, entry: dict[str, Any], says: str
) -> None:
    whole = {"table": "lpm_one", "match": {}, "action_name": "drop", **entry}
    with pytest.raises(UserError, match=r"entries\.json.*" + says) as told:
        entries(tmp_path, p4info, table_entries=[whole])
    assert "\n" not in str(told.value)


def test_an_action_that_the_table_does_not_have_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "router.p4").write_text(ROUTER)
    bad = runtime_json()
    bad["table_entries"][1]["action_name"] = "Router.fly"
    (tmp_path / "router.entries.json").write_text(json.dumps(bad))
    with pytest.raises(UserError, match=r"router\.entries\.json: Router\.hosts has no action 'Router\.fly'"):
        VirtualWorld(one(scenario_of(tmp_path, "router.p4")))


def test_programs_are_found_by_their_files() -> None:
    assert set(programs.names()) >= {"accurate", "ecn", "int", "trim"}
