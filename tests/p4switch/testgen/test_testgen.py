"""Generated tests cover all reachable statements, pass on the built-in switch, and find a planted defect."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from p4cc.cli import cli
from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.passes import lowered
from p4switch.coverage import Coverage
from p4switch.errors import UserError
from p4switch.stf import Options, run_test, run_tests

z3 = pytest.importorskip("z3", reason="z3 is not installed")

from p4switch.testgen import generate, machine, search, solver, write  # noqa: E402
from p4switch.testgen.code import Code  # noqa: E402
from p4switch.testgen.output import stf  # noqa: E402
from p4switch.testgen.run import Inputs, Run  # noqa: E402
from p4switch.testgen.search import Result  # noqa: E402
from p4switch.testgen.solver import Solver  # noqa: E402
from p4switch.testgen.values import Scalar, Variables, operate  # noqa: E402

PROGRAM = Path(__file__).with_name("program.p4")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Code, Result, list[Path], Path]:
    folder = tmp_path_factory.mktemp("generated")
    code, result = generate(PROGRAM, seconds=300)
    return code, result, write(folder, PROGRAM, [], code, result), folder


def test_every_reachable_statement_is_covered(generated: tuple[Code, Result, list[Path], Path]) -> None:
    result = generated[1]
    assert not result.missing
    assert not result.only_unstable
    assert result.covered == result.statements


def test_they_hold_on_the_built_in_switch(generated: tuple[Code, Result, list[Path], Path]) -> None:
    for test in generated[2]:
        run_test(PROGRAM, test)


def test_the_pytest_module_runs_them(generated: tuple[Code, Result, list[Path], Path]) -> None:
    *_, tests, folder = generated
    module: dict[str, object] = {"__file__": str(folder / "test_program.py")}
    exec((folder / "test_program.py").read_text(), module)
    run = module["test_program"]
    assert callable(run)
    run(tests[0].name)


def test_the_pytest_module_has_the_macros_and_finds_what_is_included(tmp_path: Path) -> None:
    program = small(tmp_path, "if (hdr.h.a == NUMBER + FLIT_BYTES) { sm.egress_spec = 1; }")
    Path(program).write_text(f'#include "include/prelude.p4"\n{Path(program).read_text()}')
    assert command(program, "-o", str(tmp_path / "out"), "-D", "NUMBER=7")[0] == 0
    file = tmp_path / "out" / "test_small.py"
    module: dict[str, object] = {"__file__": str(file)}
    exec(file.read_text(), module)
    run = module["test_small"]
    assert callable(run)
    for test in file.parent.glob("*.stf"):
        run(test.name)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("before + 1", "before + 2"),
        ("sm.egress_rid == 77", "sm.egress_rid == 78"),
        ("meta.left + 3", "meta.left + 2"),
        ("hdr.h.kind == 7, {", "hdr.h.kind == 8, {"),
    ],
)
def test_a_planted_defect_is_found(
    right: str, wrong: str, generated: tuple[Code, Result, list[Path], Path], tmp_path: Path
) -> None:
    """Registers are not read after a packet, so a value that is only written to one is not tested."""
    text = PROGRAM.read_text()
    assert right in text
    program = tmp_path / "program.p4"
    program.write_text(text.replace(right, wrong))
    failed = 0
    for test in generated[2]:
        try:
            run_test(program, test)
        except UserError:
            failed += 1
    assert bool(failed) == (right != "before + 1")


SMALL = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<32> a; bit<32> b; }}
struct headers_t {{ h_t h; }}
struct metadata_t {{ }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    state start {{ packet.extract(hdr.h); transition accept; }}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{ apply {{ {code} }} }}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def small(tmp_path: Path, code: str) -> str:
    path = tmp_path / "small.p4"
    path.write_text(SMALL.format(code=code))
    return str(path)


def command(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["testgen", *arguments])
    if isinstance(result.exception, UserError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_a_broken_assertion_gives_a_packet(tmp_path: Path) -> None:
    program = small(tmp_path, "assert(hdr.h.a != 0xBEEF); sm.egress_spec = 1;")
    status, said = command(program, "-o", str(tmp_path))
    assert status == 1
    assert "small.p4:11:" in said
    assert "can be broken" in said
    assert "0000BEEF" in (tmp_path / "small-assert-1.stf").read_text()


def test_what_cannot_be_reached_is_named(tmp_path: Path) -> None:
    code = "sm.egress_spec = 1; if (hdr.h.isValid() && hdr.h.a != hdr.h.a + 0) {\n hdr.h.b = 1;\n }"
    status, said = command(small(tmp_path, code), "-o", str(tmp_path))
    assert status == 0
    assert "tests, 3 of 3 reachable statements" in said
    (named,) = (line.partition("small.p4:12:2: ")[2] for line in said.splitlines() if "small.p4:12:" in line)
    assert named == "cannot be reached: the condition is never true at line 11"


def test_what_is_assumed_of_packets(tmp_path: Path) -> None:
    program = small(tmp_path, "if (hdr.h.a == 6) { sm.egress_spec = 1; } else { sm.egress_spec = 2; }")
    status, said = command(program, "-o", str(tmp_path), "--assume", "h.a == 6 and h.b in (1, 2)")
    assert status == 0
    assert "not reached" in said
    packets = [t.read_text() for t in tmp_path.glob("*.stf")]
    assert packets
    assert all("0000000600000001" in p or "0000000600000002" in p for p in packets)


def test_a_search_ends_at_its_limit(tmp_path: Path) -> None:
    """The product of two unknown 64-bit numbers cannot be factored in the time."""
    code = "if ((bit<64>)hdr.h.a * (bit<64>)hdr.h.b == 0xDBA0A1FA8E0C6A2D) { sm.egress_spec = 1; }"
    status, said = command(small(tmp_path, code), "-o", str(tmp_path), "--until", "0.5s")
    assert status == 0
    assert "1 tests, " in said
    assert "not reached when the time or the tests were over" in said


def test_reading_the_program_is_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    class Recorded(search.Search):
        def __init__(self, *arguments: Any) -> None:
            given.append(arguments[-1])
            super().__init__(*arguments)

    monkeypatch.setattr(search, "Search", Recorded)
    generate(small(tmp_path, "sm.egress_spec = 1;"), seconds=60)
    assert 0 < given[0] < 60


def test_a_number_of_tests(tmp_path: Path) -> None:
    program = small(tmp_path, "if (hdr.h.a == 6) { sm.egress_spec = 1; } else { sm.egress_spec = 2; }")
    assert command(program, "-o", str(tmp_path), "--until", "2")[0] == 0
    assert len(list(tmp_path.glob("*.stf"))) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "never"], "expected 'coverage'"),
        (["--assume", "g.a == 1"], "no header 'g'"),
        (["--assume", "h.c == 1"], "no field 'c' in 'h'"),
        (["--assume", "h.a =="], "invalid syntax"),
        (["--assume", "1 == 2"], "no field in"),
    ],
)
def test_mistakes(options: list[str], message: str, tmp_path: Path) -> None:
    status, said = command(small(tmp_path, ""), "-o", str(tmp_path / "out"), *options)
    assert (status, (tmp_path / "out").exists()) == (2, False)
    assert message in said
    assert "\n" not in said


SURROUNDINGS = """
    meter(8, MeterType.packets) rates;
    direct_meter<bit<2>>(MeterType.packets) own_rates;
    action_profile(8) profile;
    bit<2> colour;
    action forward(bit<9> port) { sm.egress_spec = port; }
    action marked() { own_rates.read(colour); }
    table members { key = { hdr.h.a: exact; } actions = { forward; NoAction; } implementation = profile; }
    table metered { key = { hdr.h.b: ternary; } actions = { marked; NoAction; } meters = own_rates; }
    apply {
        colour = 0;
        hdr.h.a = hdr.h.a + 1;
        members.apply();
        rates.execute_meter((bit<32>)hdr.h.a[2:0], colour);
        if (colour == 1) { hdr.h.b[7:0] = 1; } else if (colour == 2) { hdr.h.b[7:0] = 2; }
        metered.apply();
        if (colour == 1) { hdr.h.b[15:8] = 1; } else if (colour == 2) { hdr.h.b[15:8] = 2; }
        if (sm.ingress_global_timestamp[31:0] == 0x12345678) { hdr.h.b[31:24] = 1; }
    }
"""


def test_clock_queue_meters_and_members_are_inputs(tmp_path: Path) -> None:
    program = Path(small(tmp_path, ""))
    text = program.read_text().replace("apply {  }", SURROUNDINGS, 1)
    egress = "apply { if (sm.deq_qdepth > 300000) { hdr.h.a = (bit<32>)sm.egress_global_timestamp; } }"
    program.write_text(text.replace("apply { }", egress, 2).replace(egress, "apply { }", 1))
    code, result = generate(program, seconds=60)
    assert (result.missing, result.only_unstable) == ([], [])
    tests = write(tmp_path / "out", program, [], code, result)
    for test in tests:
        run_test(program, test)
    text = "".join(test.read_text() for test in tests)
    assert "clock " in text
    assert "meter_set_rates I.rates" in text
    assert "meter_set_rates I.own_rates $e" in text
    assert max(int(line.split()[1]) for line in text.splitlines() if line.startswith("queue")) > 300000


VALUE_SETS = """
    value_set<bit<8>>(1) kinds;
    value_set<pair_t>(4) pairs;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a[7:0]) { 5: five; kinds: listed; default: more; }
    }
    state five { hdr.h.b[7:0] = 1; transition select(hdr.h.a[7:0]) { kinds: listed; default: more; } }
    state listed { hdr.h.b[15:8] = 2; transition more; }
    state more { transition select(hdr.h.a[23:8], hdr.h.a[27:24]) { pairs: paired; } }
    state paired { hdr.h.b[23:16] = 3; transition accept; }
"""


def test_members_of_value_sets_are_inputs(tmp_path: Path) -> None:
    code = """sm.egress_spec = 1;
    if (sm.parser_error == error.NoError && hdr.h.b[23:16] != 3) { hdr.h.b[31:24] = 9; }
    if (sm.parser_error == error.NoMatch) {
        hdr.h.b[31:24] = 10;
    }"""
    program = Path(small(tmp_path, code))
    text = program.read_text().replace("struct metadata_t", "struct pair_t { bit<16> x; bit<4> y; }\nstruct metadata_t")
    program.write_text(text.replace("state start { packet.extract(hdr.h); transition accept; }", VALUE_SETS))
    made, result = generate(program, seconds=60)
    assert (result.missing, result.only_unstable) == ([], [])
    assert len(result.unreachable) == 1  # a packet that no case matches goes on without an error
    tests = write(tmp_path / "out", program, [], made, result)
    reached = Coverage()
    for done in run_tests(tests, options=Options(program=program, coverage=True)):
        assert done.cause is None, done.cause
        reached.merge(done.outcome.coverage)
    assert not [str(item) for item, count in reached.items(["state"]) if not count]
    text = "".join(test.read_text() for test in tests)
    assert "pvs_add P.kinds 0x" in text
    assert "pvs_add P.pairs 0x" in text


def test_tables_without_room_for_entries_and_keys_without_a_plain_name(tmp_path: Path) -> None:
    code = """
    action one() { hdr.h.b[7:0] = 1; }
    action two(bit<8> x) { hdr.h.b[15:8] = x; }
    table closed { key = { hdr.h.a: exact; } actions = { one; NoAction; } const entries = { } }
    table open { key = { hdr.h.a[7:4]: exact; hdr.h.b & 0xF: exact @name("b & 0xF"); } actions = { two; NoAction; } }
    apply { closed.apply(); open.apply(); sm.egress_spec = 1; }
    """
    program = Path(small(tmp_path, ""))
    program.write_text(program.read_text().replace("apply {  }", code, 1))
    made, result = generate(program, seconds=60)
    assert (result.missing, result.only_unstable) == ([], [])
    tests = write(tmp_path / "out", program, [], made, result)
    for test in tests:
        run_test(program, test)
    text = "".join(test.read_text() for test in tests)
    assert '"hdr.h.a[7:4]":' in text
    assert '"b & 0xF":' in text
    assert "add I.closed" not in text


def test_lengths_and_indices_are_decided(tmp_path: Path) -> None:
    program = Path(__file__).with_name("lengths.p4")
    code, result = generate(program, seconds=60)
    assert (result.missing, result.only_unstable) == ([], [])
    lines = program.read_text().splitlines()
    assert {found.place.line for found in result.unreachable} == {
        number for number, line in enumerate(lines, start=1) if "// never" in line
    }
    for test in write(tmp_path, program, [], code, result):
        run_test(program, test)


def test_undefined_values_are_not_expected(tmp_path: Path) -> None:
    """A decision by a field of a missing header gets no test; a field that gets its value may be any digit."""
    code = "hdr.h.setInvalid(); hdr.h.setValid(); sm.egress_spec = 1; if (hdr.h.a == 3) {\n hdr.h.b = 1; }"
    status, said = command(small(tmp_path, code), "-o", str(tmp_path))
    assert status == 0
    assert "no test of it is the same on every switch" in said or "not reached" in said
    assert any("expect 1 ********" in test.read_text() for test in tmp_path.glob("*.stf"))


BINARY = ("+", "-", "*", "&", "|", "^", "|+|", "|-|", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "++")


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("op", BINARY)
def test_numbers_and_formulas_agree(op: str, negative: bool) -> None:
    rng = random.Random(f"{op}{negative}")
    t = types.Bits(8, negative)
    other = types.Bits(4) if op in ("<<", ">>") else t
    result = types.BOOL if op in ("<", "<=", ">", ">=", "==", "!=") else types.Bits(16) if op == "++" else t
    a, b = z3.BitVec("a", 8), z3.BitVec("b", 4 if op in ("<<", ">>") else 8)
    expr = ir.Op(op, (ir.FieldRef("h", "a", t), ir.FieldRef("h", "b", other)), result)
    for _ in range(12):
        x, y = rng.choice((0, 1, 127, 128, 255, rng.getrandbits(8))), rng.getrandbits(b.size())
        value = operate(expr, [Scalar(x, a), Scalar(y, b)])
        known = z3.simplify(z3.substitute(value.formula, (a, z3.BitVecVal(x, 8)), (b, z3.BitVecVal(y, b.size()))))
        assert value.number == (z3.is_true(known) if result is types.BOOL else known.as_long()), (op, x, y)


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("op", ["<<", ">>"])
def test_shifts_by_literals(op: str, negative: bool) -> None:
    """A literal has no width."""
    t = types.Bits(8, negative)
    a = z3.BitVec("a", 8)
    for amount in (0, 1, 2, 3, 7, 8, 9, 300):
        shift = ir.Op(op, (ir.FieldRef("h", "a", t), ir.Const(amount, types.INT)), t)
        value = operate(shift, [Scalar(0xA5, a), Scalar(amount)])
        assert value.number == z3.simplify(z3.substitute(value.formula, (a, z3.BitVecVal(0xA5, 8)))).as_long()


@pytest.mark.parametrize("a", ["hdr.h.a", "(bit<32>)(bit<32>)((int<32>)hdr.h.a >> hdr.h.b)"])
def test_shifts_by_amounts_of_more_than_8_bits(tmp_path: Path, a: str) -> None:
    """The compiler expands them, as BMv2 does not have them."""
    code = f"bit<32> x = {a} >> hdr.h.b; if (x == 5) {{ sm.egress_spec = 2; }}"
    program = Path(small(tmp_path, code))
    made, result = generate(program, seconds=60)
    assert not result.missing
    for test in write(tmp_path, program, [], made, result):
        run_test(program, test)


def test_random_numbers_are_inputs(tmp_path: Path) -> None:
    """Check draws within their bounds, which packets can set."""
    code = """bit<32> x; bit<8> y;
    random(x, hdr.h.a, hdr.h.b);
    random(y, 10, 19);
    if (x == 5 && hdr.h.a != hdr.h.b) { hdr.h.b[7:0] = 1; sm.egress_spec = 2; }
    if (y == 19) { hdr.h.b[15:8] = 1; } else if (y < 10) {
        hdr.h.b[15:8] = 2;
    }"""
    program = Path(small(tmp_path, code))
    made, result = generate(program, seconds=60)
    assert (result.missing, result.only_unstable) == ([], [])
    assert [found.place.line for found in result.unreachable] == [16]
    for test in result.tests:
        a, b = (int.from_bytes(test.run.packet[at : at + 4], "big") for at in (0, 4))
        assert a <= test.run.draws["small.p4:12"] <= b
        assert 10 <= test.run.draws["small.p4:13"] <= 19
    tests = write(tmp_path / "out", program, [], made, result)
    assert any("random small.p4:13 19\n" in path.read_text() for path in tests)
    for path in tests:
        run_test(program, path)


def test_a_draw_that_is_not_there_is_named(tmp_path: Path) -> None:
    program = Path(small(tmp_path, "bit<8> y; random(y, 10, 19);"))
    test = tmp_path / "small.stf"
    for text, message in (
        ("random small.p4:12 3", r"line 1: no random number is drawn at 'small.p4:12'; expected one of: small.p4:11"),
        ("random small.p4:11", "line 1: expected: random FILE:LINE NUMBER"),
    ):
        test.write_text(text)
        with pytest.raises(UserError, match=message):
            run_test(program, test)


def test_formulas_that_have_nothing_to_do_with_the_goal_are_left_out() -> None:
    a, b, c, d, clock = (z3.BitVec(name, 8) for name in ("a", "b", "c", "d", "?clock"))
    linked, far, timed = z3.ULT(a + b, 9), z3.ULT(c, d), z3.ULT(clock, d)
    asked = Solver(time.monotonic() + 60)
    assert list(asked.related({0: linked, 1: far}, [a == 3])) == [0]
    assert list(asked.related({0: linked, 1: far, 2: timed}, [a == 3])) == [0, 1, 2]
    assert Variables().of(z3.If(a == 1, b, c + 1)) == {"a", "b", "c"}


def test_what_is_too_hard_gets_more_when_the_rest_has_been_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "_RESOURCES", 1)
    code = "if (hdr.h.a * hdr.h.b == 0xDBA0A1FA) { sm.egress_spec = 1; } else { sm.egress_spec = 2; }"
    result = generate(small(tmp_path, code), seconds=60)[1]
    assert (result.missing, result.only_unstable) == ([], [])
    assert result.runs > 1


def test_what_stays_too_hard_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "_RESOURCES", 1)
    monkeypatch.setattr(solver, "_MOST", 4)
    code = "if (hdr.h.a * hdr.h.b == 0xDBA0A1FA) { sm.egress_spec = 1; }"
    status, said = command(small(tmp_path, code), "-o", str(tmp_path), "--until", "600s")
    assert status == 0
    assert "small.p4:11:" in said
    assert ": not reached\n" in said
    assert "were given up: z3" in said


UNDEFINED = SMALL.replace("{{ h_t h; }}", "{{ h_t h; h_t other; }}").replace(
    "apply {{ {code} }}",
    """
    action yes() {{ sm.egress_spec = 3; }}
    {code}
    apply {{ t.apply(); if (hdr.other.a == 0) {{ hdr.h.a = 1; }} }}""",
)


@pytest.mark.parametrize(
    ("kind", "entry"),
    [("ternary", "0x0&&&0x0"), ("lpm", "0x0/0"), ("range", "0x0->0xffffffff"), ("optional", "0x0&&&0x0")],
)
def test_an_entry_leaves_open_what_a_test_cannot_set(tmp_path: Path, kind: str, entry: str) -> None:
    """`other` is never valid. The action runs on all switches, the assignment only where undefined values are zero."""
    table = f"table t {{ key = {{ hdr.other.b: {kind} @name(\"b\"); }} actions = {{ yes; NoAction; }} }}"
    program = tmp_path / "small.p4"
    program.write_text(UNDEFINED.format(code=table))
    code, result = generate(program)
    assert (result.missing, result.only_unstable) == ([], [])
    tests = write(tmp_path, program, [], code, result)
    text = "".join(test.read_text() for test in tests)
    assert f"b:{entry} I.yes()" in text
    assert ":14 if undefined values are zero\n" in text
    assert "covers small.p4:12\n" in text
    for test in tests:
        run_test(program, test)


def test_where_no_entry_is_hit_on_every_switch_the_default_action_is_set(tmp_path: Path) -> None:
    table = "table t { key = { hdr.other.b: exact; } actions = { yes; NoAction; } }"
    program = tmp_path / "small.p4"
    program.write_text(UNDEFINED.format(code=table))
    code, result = generate(program)
    assert (result.missing, result.only_unstable) == ([], [])
    tests = write(tmp_path, program, [], code, result)
    assert "setdefault I.t I.yes()" in "".join(test.read_text() for test in tests)
    for test in tests:
        run_test(program, test)


@pytest.mark.parametrize("seed", range(4))
def test_no_test_depends_on_what_it_does_not_set(tmp_path: Path, seed: int) -> None:
    """Check that the table's default action decides where `other.a` is not zero."""
    text = UNDEFINED.replace("t.apply(); if (hdr.other.a == 0) {{ hdr.h.a = 1; }}", "{apply}")
    table = "action no() { mark_to_drop(sm); } table t { actions = { yes; no; } default_action = no(); }"
    apply = "if (hdr.other.a == 0) { sm.egress_spec = 3; } else { t.apply(); }"
    program = tmp_path / "small.p4"
    program.write_text(text.format(code=table, apply=apply))
    result = generate(program, seed=seed)[1]
    assert not result.tests


@pytest.mark.parametrize(
    ("code", "name"),
    [("hdr.h.a = (bit<32>)sm.ingress_global_timestamp;", "clock"), ("hdr.h.a = (bit<32>)sm.packet_length;", "length")],
)
def test_a_clock_that_only_some_switches_read_is_no_test(tmp_path: Path, code: str, name: str) -> None:
    """The packet itself has its length."""
    text = SMALL.format(code=f"if (hdr.other.a != 0) {{ {code} }} sm.egress_spec = 1;")
    program = tmp_path / "small.p4"
    program.write_text(text.replace("{ h_t h; }", "{ h_t h; h_t other; }"))
    assert bool(generate(program)[1].tests) == (name == "length")


def test_unknown_values_differ_from_each_other(tmp_path: Path) -> None:
    text = SMALL.format(code="sm.egress_spec = 1; hdr.h.a = hdr.other.a ^ hdr.other.b;")
    program = tmp_path / "small.p4"
    program.write_text(text.replace("{ h_t h; }", "{ h_t h; h_t other; }"))
    tests = generate(program)[1].tests
    assert tests
    assert all(mask[:4] == bytes(4) and mask[4:8] == b"\xff" * 4 for test in tests for _, _, mask in test.expected)
    program.write_text(program.read_text().replace("hdr.h.a = hdr.other.a ^", "if (hdr.other.a == ").replace(
        "hdr.other.b;", "hdr.other.b) { sm.egress_spec = 2; }"
    ))
    assert not generate(program)[1].tests


@pytest.mark.parametrize("bits", [1, 9, 32, 200])
def test_each_bit_of_an_unknown_value_is_once_set(bits: int) -> None:
    """Check that none is set in environment 0, and that seven values differ in each bit."""
    for first in (0, 7, 42):
        values = [machine.unknown_values(number, bits) for number in range(first, first + 7)]
        for i in range(bits):
            column = [tuple(v >> i & 1 for v in value) for value in values]
            assert all(bit[0] == 0 and any(bit) for bit in column)
            assert len(set(column)) == 7


def test_two_packets_by_one_port_differ_by_what_is_known_of_them(tmp_path: Path) -> None:
    """An undefined value is zero in one packet, and the other packet has zero, so their order would matter."""
    text = SMALL.format(code="sm.egress_spec = 3; clone(CloneType.I2E, 10);")  # seed 0 draws port 3 for session 10
    text = text.replace("{ h_t h; }", "{ h_t h; h_t other; }")
    egress = "apply { if (sm.instance_type == 0) { hdr.h.a = 0; } else { hdr.h.a = hdr.other.a; } }"
    program = tmp_path / "small.p4"
    program.write_text(text.replace("apply { }", egress, 2).replace(egress, "apply { }", 1))
    result = generate(program, most=1)[1]
    assert result.problems["several different packets leave by one port"]
    ports = [port for port, *_ in result.tests[0].expected]
    assert len(set(ports)) == len(ports)


def test_another_hash_comes_of_other_data(tmp_path: Path) -> None:
    code = """
        bit<16> found;
        hash(found, HashAlgorithm.crc16, 16w0, { hdr.h.a }, 32w0x10000);
        if (found[2:0] == 5) { sm.egress_spec = 1; } else { sm.egress_spec = 2; }"""
    result = generate(small(tmp_path, code), seconds=300)[1]
    assert (result.missing, result.only_unstable) == ([], [])


def test_a_hash_of_a_varbit_takes_the_bits_that_it_has(tmp_path: Path) -> None:
    code = """
        bit<16> found;
        hash(found, HashAlgorithm.crc16, 16w0, { hdr.h.a, hdr.o.opt }, 32w0x10000);
        if (found[1:0] == 2) { sm.egress_spec = 1; } else { sm.egress_spec = 2; }"""
    text = SMALL.format(code=code).replace("{ h_t h; }", "{ h_t h; o_t o; }")
    text = text.replace("struct headers_t", "header o_t { bit<8> len; varbit<320> opt; }\nstruct headers_t")
    program = tmp_path / "small.p4"
    program.write_text(text.replace("extract(hdr.h);", "extract(hdr.h); packet.extract(hdr.o, 16);"))
    made, result = generate(program)
    assert (result.missing, result.only_unstable) == ([], [])
    for test in write(tmp_path, program, [], made, result):
        run_test(program, test)


def test_a_hash_is_not_tried_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hashes of the same data are equal, which the proof does not know."""
    monkeypatch.setattr(search, "_CHANCES", 3)
    monkeypatch.setattr(search, "_FRESH", 2)
    code = """
        bit<16> f; bit<16> g;
        hash(f, HashAlgorithm.crc16, 16w0, { hdr.h.a }, 32w0x10000);
        hash(g, HashAlgorithm.crc16, 16w0, { hdr.h.a }, 32w0x10000);
        if (f != g) { sm.egress_spec = 2; }"""
    result = generate(small(tmp_path, code), seconds=60)[1]
    assert result.exhausted
    assert [found.line for found in result.missing] == [15]
    assert result.runs < 30


def test_checksums_are_statements_and_no_decisions(tmp_path: Path) -> None:
    fields = "{ hdr.h.a }, hdr.h.b, HashAlgorithm.csum16"
    text = SMALL.format(code="if (sm.checksum_error == 0) { sm.egress_spec = 1; } else { mark_to_drop(sm); }")
    text = text.replace("bit<32> b;", "bit<16> b; bit<16> c;")
    verify = f"meta) {{ apply {{ verify_checksum(true, {fields}); }} }}\ncontrol I"
    text = text.replace("meta) { apply { } }\ncontrol I", verify)
    never = f"update_checksum(hdr.h.c == 7 && hdr.h.c == 8, {fields});"
    update = f"meta) {{ apply {{ update_checksum(hdr.h.c == 7, {fields});\n {never} }} }}\ncontrol D"
    text = text.replace("meta) { apply { } }\ncontrol D", update)
    program = tmp_path / "small.p4"
    program.write_text(text)
    code, result = generate(program)
    assert [u.place.line for u in result.unreachable] == [14]
    assert result.unreachable[0].reason.startswith("the checksum's condition is never true there")
    assert result.covered == result.statements - 1
    reached = Coverage()
    for done in run_tests(write(tmp_path, program, [], code, result), options=Options(program=program, coverage=True)):
        assert done.cause is None
        reached.merge(done.outcome.coverage)
    assert [item.line for item in reached.missed(["statement"])] == [14]


def test_a_header_that_was_looked_at_may_be_cut_off(tmp_path: Path) -> None:
    """A packet that is too short for the header still has the byte that was read earlier."""
    code = "if (sm.parser_error == error.PacketTooShort) { sm.egress_spec = 2; }"
    text = SMALL.format(code=code).replace(
        "packet.extract(hdr.h); transition accept; }",
        "transition select(packet.lookahead<bit<8>>()) { 7: more; default: accept; } }\n"
        " state more { packet.extract(hdr.h); transition accept; }",
    )
    program = tmp_path / "small.p4"
    program.write_text(text)
    result = generate(program, most=30)[1]
    assert not any("no length" in problem for problem in result.problems)
    assert {len(test.run.packet) for test in result.tests} >= {0, 1, 60}


def test_rounds_of_loops_are_left_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet chooses the number of rounds, which is usually larger than a run allows.

    Queries begin with the first rounds, because the last ones lead to equally long runs.
    """
    monkeypatch.setattr(machine, "MAX_STEPS", 300)
    loops = """
        for (bit<16> i = 0; i < hdr.h.a[15:0]; i = i + 1) {
            for (bit<16> j = 0; j < hdr.h.a[15:0]; j = j + 1) { sm.egress_spec = 1; }
        }"""
    program = small(tmp_path, f"{loops} if (hdr.h.b == 7) {{ sm.mcast_grp = 0; }}")
    result = generate(program)[1]
    assert (result.missing, result.only_unstable) == ([], [])
    assert result.problems["too many steps"]
    assert result.runs > 1
    looking = search.Search(Code(lowered(parse_and_check(program))))
    looking._try(Inputs(0))
    for heap in looking._heaps:
        asked = [(way.site, position) for *_, position, way, _ in sorted(heap, key=lambda entry: entry[:3])]
        inner, rounds = Counter(site for site, _ in asked).most_common(1)[0]
        assert rounds > 100
        positions = [position for site, position in asked if site == inner]
        assert positions == sorted(positions)


def test_names_that_are_none_of_p4s_are_quoted(tmp_path: Path) -> None:
    table = '@name("<#>/|t") table t { key = { hdr.h.a: exact; } actions = { yes; NoAction; } }'
    declared = f"sm) {{ action yes() {{ sm.egress_spec = 3; }} {table} apply {{ t"
    text = SMALL.format(code="t.apply();").replace("sm) { apply { t", declared)
    program = tmp_path / "small.p4"
    program.write_text(text)
    code, result = generate(program)
    assert not result.missing
    for test in write(tmp_path, program, [], code, result):
        run_test(program, test)


def test_names_of_all_that_is_set_before_a_packet_are_quoted(tmp_path: Path) -> None:
    program = Path(small(tmp_path, ""))
    text = program.read_text().replace("apply {  }", SURROUNDINGS, 1)
    for declared, name in (("meter(8", "a meter"), ("direct_meter<", "own meter")):
        text = text.replace(f"    {declared}", f'    @name("{name}") {declared}')
    text = text.replace("    apply {\n", '    @name("a register") register<bit<8>>(1) kept;\n    apply {\n', 1)
    read = "bit<8> x; kept.read(x, 0); if (x == 3) { hdr.h.b[23:16] = x; }\n"
    text = text.replace("colour = 0;", f"colour = 0; {read}")
    states = """@name("a set") value_set<bit<8>>(1) kinds;
    state start { packet.extract(hdr.h); transition select(hdr.h.a[7:0]) { kinds: more; default: accept; } }
    state more { hdr.h.b[23:16] = 7; transition accept; }"""
    program.write_text(text.replace("state start { packet.extract(hdr.h); transition accept; }", states))
    code, result = generate(program)
    assert (result.missing, result.only_unstable) == ([], [])
    tests = write(tmp_path / "out", program, [], code, result)
    text = "".join(test.read_text() for test in tests)
    for start in ('meter_set_rates "I.a meter"', 'meter_set_rates "I.own meter" $e', 'pvs_add "P.a set"'):
        assert start in text
    assert 'register_write "I.a register" 0 3\n' in text
    for test in tests:
        run_test(program, test)


def test_a_packet_that_leaves_twice_is_expected_twice() -> None:
    run = Run(Inputs(0), port=1, packet=b"\x07")
    twice = [(5, b"\x07", b"\xff")] * 2
    assert stf(search.Test(run, twice, 0, 0), [], []) == "packet 1 07\nexpect 5 07$\nexpect 5 07$\nno_packet\n"


def test_a_stack_of_unions_is_followed(tmp_path: Path) -> None:
    text = SMALL.format(code="if (hdr.u[1].one.isValid()) { sm.egress_spec = 1; }")
    union = "header_union u_t { h_t one; h_t two; }\nstruct headers_t { h_t h; u_t[2] u; }"
    text = text.replace("struct headers_t { h_t h; }", union)
    program = tmp_path / "small.p4"
    program.write_text(text)
    assert generate(program)[1].statements


HEADERS = """
    if (hdr.g.isValid() && hdr.h.a == 1) {
        hdr.h.b = 1;
    } else if (!hdr.g.isValid()) {
        hdr.h.b = 2;
        hdr.i.setValid();
    }
    if (hdr.i.isValid()) {
        hdr.h.b = 3;
    }
"""


def test_what_the_headers_of_a_packet_leave_open(tmp_path: Path) -> None:
    """A header that only the parser makes valid decides; one that the program adds does not."""
    path = Path(small(tmp_path, HEADERS))
    path.write_text(path.read_text().replace("{ h_t h; }", "{ h_t h; h_t g; h_t i; }"))
    code = Code(lowered(parse_and_check(path)))

    def lines(valid: set[str]) -> set[str]:
        bits = [1 << n for n in range(code.all.bit_length()) if code.open(valid) >> n & 1]
        return {path.read_text().splitlines()[code.location(bit).line - 1].strip() for bit in bits}

    assert "hdr.h.b = 1;" in lines({"h", "g"})
    assert lines({"h"}) - lines({"h", "g"}) == {"hdr.h.b = 2;", "hdr.i.setValid();"}
    assert "hdr.h.b = 1;" not in lines({"h"})
    assert "hdr.h.b = 3;" in lines({"h"}) & lines({"h", "g"})
