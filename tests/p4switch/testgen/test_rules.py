"""Rules of which the first match applies: numbers and formulas agree, and the cost is proportional to their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4switch.compiler import types
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.passes import lowered

z3 = pytest.importorskip("z3", reason="z3 is not installed")

from p4switch.testgen import rules  # noqa: E402
from p4switch.testgen.code import Code  # noqa: E402
from p4switch.testgen.machine import Machine  # noqa: E402
from p4switch.testgen.rules import Pattern, Rules  # noqa: E402
from p4switch.testgen.run import Inputs  # noqa: E402
from p4switch.testgen.search import Search  # noqa: E402
from p4switch.testgen.values import Scalar  # noqa: E402

BITS = 3
FULL = (1 << BITS) - 1
NUMBERS = st.integers(0, FULL)


def _masked(value: int, mask: int) -> Pattern:
    return Pattern(value & mask, value & mask, mask)


PATTERNS = st.one_of(
    st.builds(_masked, NUMBERS, NUMBERS),
    st.builds(lambda a, b: Pattern(min(a, b), max(a, b), FULL), NUMBERS, NUMBERS),
    st.just(Pattern(0, 0, 0)),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(PATTERNS, PATTERNS), max_size=6), NUMBERS, NUMBERS, st.booleans())
def test_numbers_and_formulas_agree(patterns: list[tuple[Pattern, Pattern]], a: int, b: int, one_known: bool) -> None:
    x, y = z3.BitVecs("x y", BITS)
    made = Rules([types.Bits(BITS)] * 2, patterns)
    keys = [Scalar(a, None if one_known else x), Scalar(b, y)]
    fitting = [i for i, rule in enumerate(patterns) if all(p.fits(n) for p, n in zip(rule, (a, b), strict=True))]
    assert made.first([a, b]) == min(fitting, default=len(patterns))

    def holds(formula: object) -> bool:
        values = (x, z3.BitVecVal(a, BITS)), (y, z3.BitVecVal(b, BITS))
        return bool(z3.is_true(z3.simplify(z3.substitute(formula, *values))))

    for index in range(len(patterns)):
        assert holds(made.fits(index, keys)) == (index in fitting)
        assert holds(made.taken(index, keys, bool)) == (made.first([a, b]) == index)
        assert made.always(index) == all(
            all(p.fits(n) for p, n in zip(patterns[index], (i, j), strict=True))
            for i in range(FULL + 1)
            for j in range(FULL + 1)
        )
    for index in range(len(patterns) + 1):
        assert holds(made.missed(index, keys, bool)) == all(i >= index for i in fitting)


ENTRIES = 1000
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<32> a; bit<8> b; }}
struct headers_t {{ h_t h; }}
struct metadata_t {{ }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    state start {{ packet.extract(hdr.h); {transition} }}
    state one {{ hdr.h.b = 1; transition accept; }}
    state two {{ hdr.h.b = 2; transition accept; }}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    action put(bit<8> n) {{ hdr.h.b = n; }}
    action other() {{ hdr.h.b = 99; }}
    table t {{ key = {{ hdr.h.a: {kind}; }} actions = {{ put; other; NoAction; }} {entries} }}
    apply {{ sm.egress_spec = 1; t.apply(); if (hdr.h.b == 77) {{ hdr.h.b = 3; }} }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture(params=["exact", "ternary", "range", "select"])
def large(request: pytest.FixtureRequest, tmp_path: Path) -> Code:
    """Return a program with a table of that kind, or a select, whose rules exclude each other."""
    last = ENTRIES - 1
    transition, entries, kind = "transition accept;", "", request.param
    if kind == "select":
        kind = "exact"
        cases = " ".join(f"{977 * i}: {'two' if i == last else 'one'};" for i in range(ENTRIES))
        transition = f"transition select(hdr.h.a) {{ {cases} default: accept; }}"
    else:
        low = (f"{977 * i} .. {977 * i + 5}" if kind == "range" else str(977 * i) for i in range(ENTRIES))
        lines = (f"{k}: {'other()' if i == last else f'put({i % 256})'};" for i, k in enumerate(low))
        entries = f"const entries = {{ {' '.join(lines)} }}"
    path = tmp_path / "large.p4"
    path.write_text(PROGRAM.format(transition=transition, entries=entries, kind=kind))
    return Code(lowered(parse_and_check(path)))


def test_rules_cost_in_proportion_to_their_number(large: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet, and each query about it, needs at most one formula for each rule."""
    made = 0
    fits = Rules.fits

    def counted(self: Rules, *arguments: Any) -> object:
        nonlocal made
        made += 1
        return fits(self, *arguments)

    monkeypatch.setattr(Rules, "fits", counted)
    run = Machine(large, Inputs(1)).run()
    assert run.problem is None
    assert made <= ENTRIES + 1
    made = 0
    ways = [way for d in run.decisions for way in d.alternatives if callable(way.formula)]
    assert len(ways) == ENTRIES
    for way in ways:
        way.condition()
    assert made <= 3 * ENTRIES  # those that exclude each other need no negations


def test_the_last_rule_is_found(large: Code) -> None:
    result = Search(large, seconds=300).run()
    assert not result.missing


def test_the_time_ends_a_packet(large: Code) -> None:
    run = Machine(large, Inputs(1), out_of_time=lambda: True).run()
    assert run.problem == "there was no time left"


def test_the_time_ends_the_making_of_a_formula() -> None:
    made = Rules([types.Bits(32)], [(Pattern(i, i, (1 << 32) - 1),) for i in range(10 * rules._AT_ONCE)])
    looks = 0

    def over() -> bool:
        nonlocal looks
        looks += 1
        return looks > 3

    with pytest.raises(TimeoutError):
        made.missed(len(made), [Scalar(0, z3.BitVec("x", 32))], over)
    assert looks == 4
