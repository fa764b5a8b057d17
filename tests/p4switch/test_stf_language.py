"""The language of packet tests, and the effect of each command on a small program and a recording switch."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from p4switch.bmv2 import read
from p4switch.errors import UserError
from p4switch.stf import Options, StfError, find_tests, parse, run_folder, run_tests
from p4switch.stf.runner import Runner

if TYPE_CHECKING:
    from p4switch.engine import Switch

DOCUMENT: dict[str, Any] = {
    "header_types": [
        {"name": "h_t", "fields": [["a", 8, False], ["w", 20, False], ["d", 32, False]]},
        {"name": "scalars", "fields": [["port", 9, False]]},
    ],
    "headers": [
        {"id": 0, "name": "h", "header_type": "h_t"},
        {"id": 1, "name": "s[0]", "header_type": "h_t"},
        {"id": 2, "name": "s", "header_type": "scalars"},
        {"id": 3, "name": "u[0].one", "header_type": "h_t"},
        {"id": 4, "name": "u[0].two", "header_type": "h_t"},
    ],
    "actions": [
        {"id": 0, "name": "NoAction", "runtime_data": []},
        {"id": 1, "name": "ingress.set", "runtime_data": [{"name": "v", "bitwidth": 9}, {"name": "w", "bitwidth": 8}]},
        {"id": 2, "name": "egress.set", "runtime_data": []},
    ],
    "pipelines": [
        {
            "tables": [
                {
                    "name": "ingress.t",
                    "match_type": "ternary",
                    "key": [
                        {"name": "h.a", "match_type": "ternary", "target": ["h", "a"]},
                        {"name": "s[0].w", "match_type": "lpm", "target": ["s[0]", "w"]},
                        {"name": "h.$valid$", "match_type": "exact", "target": ["h", "$valid$"]},
                    ],
                    "action_ids": [0, 1],
                },
                {
                    "name": "ingress.r",
                    "match_type": "range",
                    "key": [{"match_type": "range", "target": ["h", "d"]}],
                    "action_ids": [0],
                },
                {"name": "egress.t", "match_type": "exact", "key": [], "action_ids": [2]},
            ]
        }
    ],
    "counter_arrays": [
        {"name": "ingress.c", "is_direct": False},
        {"name": "ingress.hits", "is_direct": True, "binding": "ingress.t"},
    ],
    "register_arrays": [{"name": "ingress.reg", "size": 2, "bitwidth": 12}],
    "meter_arrays": [{"name": "ingress.m", "size": 3}],
    "header_stacks": [{"name": "s", "header_ids": [1]}],
    "header_unions": [{"id": 0, "name": "u[0]", "union_type": "u_t", "header_ids": [3, 4]}],
    "header_union_types": [{"name": "u_t", "headers": [["one", "h_t"], ["two", "h_t"]]}],
    "header_union_stacks": [{"name": "u", "header_union_ids": [0]}],
    "parse_vsets": [
        {"name": "P.pairs", "compressed_bitwidth": 60},
        {"name": "P.unused", "compressed_bitwidth": 8},
    ],
    "parsers": [
        {
            "parse_states": [
                {
                    "transition_key": [
                        {"type": "field", "value": ["h", "a"]},
                        {"type": "lookahead", "value": [8, 4]},
                        {"type": "stack_field", "value": ["s", "w"]},
                        {"type": "union_stack_field", "value": ["u", "two", "w"]},
                        {"type": "field", "value": ["h", "a"]},
                    ],
                    "transitions": [{"type": "default"}, {"type": "parse_vset", "value": "P.pairs"}],
                }
            ]
        }
    ],
}


def _completed() -> None:
    """Add the parts of BMv2 JSON that are required but not used in these tests."""
    missing: dict[str, dict[str, Any]] = {
        "headers": {"metadata": False},
        "actions": {"primitives": []},
        "header_stacks": {"header_type": "h_t"},
        "header_union_stacks": {"union_type": "u_t"},
        "meter_arrays": {"type": "bytes"},
    }
    for kind, items in DOCUMENT.items():
        for number, item in enumerate(items):
            for name, value in {"id": number, "name": f"{kind} {number}", **missing.get(kind, {})}.items():
                item.setdefault(name, value)
    for pipeline in DOCUMENT["pipelines"]:
        pipeline["init_table"] = None
        for number, table in enumerate(pipeline["tables"]):
            table.update(id=number, next_tables={})
    for parser in DOCUMENT["parsers"]:
        parser["init_state"] = None
        for number, state in enumerate(parser["parse_states"]):
            state.update(name="start", id=number, parser_ops=[])
            for transition in state["transitions"]:
                transition.update(next_state=None, value=transition.get("value"))
    DOCUMENT["deparsers"] = []


_completed()


class Recorder:
    """Stand-in for a switch that records the calls and returns given packets."""

    def __init__(self, outputs: list[tuple[int, bytes]] | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.outputs = outputs or []
        self.failed_assert: str | None = None

    def said(self) -> tuple[list[tuple[bool, str]], int]:
        return [], 0

    def process(
        self, port: int, frame: bytes, now: int = 0, depth: int | None = None
    ) -> list[tuple[int, bytes]]:
        self.calls.append(("process", port, frame))
        return self.outputs

    def counter_read(self, name: str, index: int) -> tuple[int, int]:
        return 3, 100 + index

    def direct_counter_read(self, table: str, handle: int) -> tuple[int, int]:
        return 7, handle

    def table_add(self, *args: Any) -> int:
        self.calls.append(("table_add", *args))
        return 40 + len(self.calls)

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.calls.append((name, *args))


def runner_of(document: dict[str, Any], recorder: Recorder) -> Runner:
    """Return a runner that takes a recorder for a switch."""
    return Runner(read(document), cast("Switch", recorder))


def run(text: str, outputs: list[tuple[int, bytes]] | None = None) -> list[tuple[Any, ...]]:
    recorder = Recorder(outputs)
    runner = runner_of(DOCUMENT, recorder)
    for command in parse(text):
        runner.carry_out(command)
    runner.check()
    return recorder.calls


def test_comments_continued_lines_and_case() -> None:
    commands = parse("# only a comment\nPacket 1 0A0B # end\n  0C0D\n\nwait\n")
    assert [(c.line, c.name, c.args) for c in commands] == [(2, "packet", "1 0A0B 0C0D"), (5, "wait", "")]


def test_add() -> None:
    calls = run("add ingress.t 7 h.a:0x1* s$0.w:0x12***/8 h.$valid$:1 ingress.set(w: 0b101, v:3) = $one")
    key = [(b"\x10", b"\xf0"), (b"\x01\x20\x00", 8), (b"\x01", b"")]
    assert calls == [("table_add", "ingress.t", key, 7, ("action", "ingress.set", [b"\x00\x03", b"\x05"]))]


def test_any_name_may_be_quoted() -> None:
    calls = run(
        'add "ingress.t" 7 "h.a":0x1* "s$0.w":0x12***/8 "h.$valid$":1 "ingress.set"("w": 0b101,"v":3) = $one\n'
        'setdefault "ingress.r" "NoAction"()\n'
        'check_counter "ingress.c"(1) packets == 3\n'
        'register_write "reg" 1 5\n'
        'pvs_add "P.unused" 5\n'
    )
    plain = run(
        "add ingress.t 7 h.a:0x1* s$0.w:0x12***/8 h.$valid$:1 ingress.set(w: 0b101, v:3) = $one\n"
        "setdefault ingress.r NoAction()\n"
        "check_counter ingress.c(1) packets == 3\n"
        "register_write reg 1 5\n"
        "pvs_add P.unused 5\n"
    )
    assert calls == plain
    assert [name for name, *_ in calls] == ["table_add", "table_set_default", "register_write", "value_set_set"]
    with pytest.raises(StfError, match="no table 'nothing'; there are"):
        run('add "nothing" NoAction()')


def test_names_in_quotes_may_have_blanks_in_any_command() -> None:
    text = """
        setdefault "ingress.t" ingress.set(v:3, w:5)
        counter_read "ingress.c" 1
        counter_write "ingress.c" 1 2 3
        register_read "ingress.reg" 1
        register_write "ingress.reg" 1 5
        register_reset "ingress.reg"
        meter_get_rates "ingress.m" 0
        meter_set_rates "ingress.m" 0 1:2 3:4
        meter_array_set_rates "ingress.m" 1:2 3:4
        pvs_add "P.unused" 5
        pvs_clear "P.unused"
    """
    plain = run(text)
    document = json.dumps(DOCUMENT)
    for name, odd in (("reg", "a reg"), ("c", "#1 of c"), ("m", "the m"), ("t", "t 2")):
        text = text.replace(f'"ingress.{name}"', f'"ingress.{odd}"')
        document = document.replace(f'"ingress.{name}"', f'"ingress.{odd}"')
    text, document = text.replace("P.unused", "P.not used"), document.replace("P.unused", "P.not used")
    recorder = Recorder()
    runner = runner_of(json.loads(document), recorder)
    for command in parse(text):
        runner.carry_out(command)
    assert [name for name, *_ in recorder.calls] == [name for name, *_ in plain]
    assert {call[1] for call in recorder.calls} == {
        "ingress.t 2", "ingress.#1 of c", "ingress.a reg", "ingress.the m", "P.not used",
    }  # fmt: skip


def test_a_key_that_is_not_mentioned_matches_everything() -> None:
    (call,) = run("add ingress.t 1 h.a:0x12 NoAction()")
    assert call[2] == [(b"\x12", b"\xff"), (b"\x00\x00\x00", 0), (b"\x00", b"")]
    (call,) = run("add ingress.r 1 NoAction()")
    assert call[2] == [(b"\x00\x00\x00\x00", b"\xff\xff\xff\xff")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5", (b"\x05", b"\xff")),
        ("0x5&&&0x7", (b"\x05", b"\x07")),
        ("0b1*1", (b"\x05", b"\x05")),
        ("0xa0/4", (b"\xa0", b"\xf0")),
    ],
)
def test_ternary_values(value: str, expected: tuple[bytes, bytes]) -> None:
    (call,) = run(f"add ingress.t 1 h.a:{value} NoAction()")
    assert call[2][0] == expected


@pytest.mark.parametrize(("value", "low", "high"), [("1..9", 1, 9), ("0x10->0x1f", 16, 31), ("7", 7, 7)])
def test_range_values(value: str, low: int, high: int) -> None:
    (call,) = run(f"add ingress.r 1 h.d:{value} NoAction()")
    assert call[2] == [(low.to_bytes(4, "big"), high.to_bytes(4, "big"))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bogus 1", "line 1: 'bogus' is not a command"),
        ("add nothing NoAction()", "no table 'nothing'"),
        ("add t 1 NoAction()", "table 't' is ambiguous: ingress.t, egress.t"),
        ("add ingress.t 1 h.b:0 NoAction()", "table ingress.t has no key 'h.b'"),
        ("add ingress.t 1 h.a:0 missing()", "no action of table ingress.t 'missing'"),
        ("add ingress.t 1 h.a:0 ingress.set(v:1)", "parameters of ingress.set: expected v, w"),
        ("add ingress.t 1 h.a:zz NoAction()", "'zz' is not a number"),
        ("add ingress.t 1 h.a:0", "is not an action"),
        ("packet 0 0G", "packet data '0G' is not hexadecimal"),
        ("remove one", "expected: remove all"),
        ("check_counter ingress.c 1", "expected: check_counter"),
        ("check_counter ingress.c(1) packets == 4", "packets is 3"),
        ("pvs_add sets 1", "no value set 'sets'; there are: P.pairs, P.unused"),
        ("pvs_add pairs 1 2", "expected: pvs_add NAME VALUE"),
        ("mirroring_add 1", "expected 2 numbers"),
        ("mc_node_associate 1 0", "no multicast group 1"),
        ("mc_mgrp_create 1\nmc_node_associate 1 0", "line 2: no multicast node 0"),
    ],
)
def test_errors_name_the_line_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(StfError) as caught:
        run(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("line ")


PACKET = "packet 0 00\n"


@pytest.mark.parametrize(
    "text",
    [
        PACKET + "expect 1 0102",
        PACKET + "expect 1 0*0203 $",
        PACKET + "expect 1 01 02\n 03$",
        PACKET + "expect 1",
        PACKET,  # a port that is not mentioned is not looked at
    ],
)
def test_expectations_that_hold(text: str) -> None:
    run(text, [(1, b"\x01\x02\x03")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PACKET + "expect 1 0103", "line 2: port 1, byte 1: expected 0103, got 010203"),
        (PACKET + "expect 1 0102 $", "expected 2 bytes, got 3"),
        (PACKET + "expect 1 01020304", "expected 4 bytes, got 3"),
        (PACKET + "expect 2 01", "line 2: port 2: expected 1 packets, got 0"),
        (PACKET + "no_packet", "port 1: expected 0 packets, got 1"),
        (PACKET * 2 + "expect 1 010203", "port 1: expected 1 packets, got 2"),
        ("packet 1 00", "port 1: expected 0 packets, got 1"),
    ],
)
def test_expectations_that_do_not_hold(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        run(text, [(1, b"\x01\x02\x03")])
    assert message in str(caught.value)


def test_replication() -> None:
    calls = run("""
        mc_mgrp_create 9
        mc_node_create 400 6 7
        mc_node_create 401 8
        mc_node_associate 9 0
        mirroring_add_mc 3 9
        mc_node_associate 9 1
        mirroring_add 4 2
        mc_node_update 1 5
        mirroring_delete 4
    """)
    assert calls[1] == ("multicast_set", 9, [(6, 400), (7, 400)])
    assert ("clone_session_set", 3, [(6, 400), (7, 400), (8, 401)]) in calls
    assert ("clone_session_set", 4, [(2, 0)]) in calls
    assert ("multicast_set", 9, [(6, 400), (7, 400), (5, 401)]) in calls
    assert calls[-1] == ("clone_session_set", 4, None)


def test_counters_registers_and_meters() -> None:
    calls = run("""
        add ingress.t 1 h.a:0 NoAction() = $one
        check_counter hits($one) packets == 7
        check_counter hits($one) bytes >= 41
        check_counter ingress.c(2) bytes == 102
        check_counter ingress.c(2)
        counter_write c 1 5 6
        register_write reg 1 0xabc
        register_reset reg
        meter_set_rates m 1 0.5:3 1:4
        setdefault ingress.t ingress.set(v:1, w:2)
        remove all
    """)[1:]
    assert calls[0] == ("counter_write", "ingress.c", 1, 5, 6)
    assert calls[1] == ("register_write", "ingress.reg", 1, b"\x0a\xbc")
    assert calls[2:4] == [("register_write", "ingress.reg", i, b"\x00\x00") for i in range(2)]
    assert calls[4] == ("meter_set", "ingress.m", 1, (500_000, 3, 1_000_000, 4))
    assert calls[5] == ("table_set_default", "ingress.t", ("action", "ingress.set", [b"\x00\x01", b"\x02"]))
    assert [c[1] for c in calls[6:]] == ["ingress.t", "ingress.r", "egress.t"]


def test_members_of_value_sets() -> None:
    """The fields are concatenated in the number, as for simple_switch."""
    whole = (0x12 << 52) | (0x3 << 48) | (0x45678 << 28) | (0x9ABCD << 8) | 0xEF
    calls = run(f"pvs_add pairs {whole:#x}\npvs_add P.unused 0x10 &&& 0xF0\npvs_add pairs 1&&&1\npvs_clear pairs")
    ones = [b"\xff", b"\x0f", b"\x0f\xff\xff", b"\x0f\xff\xff", b"\xff"]
    first = list(zip([b"\x12", b"\x03", b"\x04\x56\x78", b"\x09\xab\xcd", b"\xef"], ones, strict=True))
    last = [b"\0", b"\0", bytes(3), bytes(3), b"\1"]
    assert calls == [
        ("value_set_set", "P.pairs", [first]),
        ("value_set_set", "P.unused", [[(b"\x10", b"\xf0")]]),
        ("value_set_set", "P.pairs", [first, list(zip(last, last, strict=True))]),
        ("value_set_set", "P.pairs", []),
    ]


def test_many_tests_in_parallel(tmp_path: Path) -> None:
    good = (Path(__file__).parent / "stf" / "calls.p4").read_text()
    for name in ("head.p4", "main.p4"):
        (tmp_path / name).write_text((Path(__file__).parent / "stf" / name).read_text())
    for name in ("one", "two"):
        (tmp_path / f"{name}.p4").write_text(good)
    (tmp_path / "one.stf").write_text("packet 0 02 00 00 1234 5678 00000000\nexpect 1 02 00 00 5678 1234")
    (tmp_path / "two.stf").write_text("packet 0 02 00 00 1234 5678 00000000\nexpect 1 02 00 00 5678 1235")
    (tmp_path / "three.stf").write_text("wait")
    results = {r.test.stem: r.cause for r in run_tests(find_tests([tmp_path]), jobs=2)}
    assert results["one"] is None
    assert "byte 6" in (results["two"] or "")
    assert results["three"] == "no program three.p4 beside it"


def test_a_test_does_not_end_what_is_garbage_of_who_runs_it(tmp_path: Path) -> None:
    """The end of a gRPC server, for example, waits for threads that only the parent has."""
    own = os.getpid()

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            if os.getpid() != own:
                os._exit(3)

    stf = Path(__file__).parent / "stf"
    for name, copy in (("head.p4", "head.p4"), ("main.p4", "main.p4"), ("calls.p4", "one.p4")):
        (tmp_path / copy).write_text((stf / name).read_text())
    (tmp_path / "one.stf").write_text("packet 0 02 00 00 1234 5678 00000000\nexpect 1 02 00 00 5678 1234")
    Garbage()
    (result,) = run_tests([tmp_path / "one.stf"])
    assert result.cause is None


def test_bmv2_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "one.stf").write_text("wait")
    with pytest.raises(UserError, match="simple_switch is not in PATH"):
        run_folder([tmp_path], options=Options("bmv2"))


def test_a_folder_without_tests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected a folder with \.stf files"):
        find_tests([tmp_path])
    with pytest.raises(UserError, match="no such file or folder"):
        find_tests([tmp_path / "nothing"])


def test_a_program_among_the_tests_is_refused(tmp_path: Path) -> None:
    for name in ("one.p4", "one.stf"):
        (tmp_path / name).write_text("wait")
    assert find_tests([tmp_path / "one.stf"]) == [tmp_path / "one.stf"]
    with pytest.raises(UserError, match=r"one\.p4: expected a \.stf file; .*p4cc stf --p4 Y\.p4 X\.stf"):
        find_tests([tmp_path / "one.p4", tmp_path / "one.stf"])
