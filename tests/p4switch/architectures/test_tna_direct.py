"""Objects of TNA and T2NA with one cell for each table entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4switch.bmv2 import JsonError, read
from p4switch.compiler.diagnostics import CompileError
from p4switch.engine import build_traced, generated, load
from p4switch.fit import load as load_target
from p4switch.fit import measure
from p4switch.ir.errors import ProgramError
from p4switch.trace import Decoder, Trace
from p4switch.trace import events as ev
from tests.p4switch.architectures.tofino import compiled, switch, write
from tests.p4switch.ir.test_handed_over import differences

STAGES12 = load_target("stages12")
REGISTER = """
DirectRegister<pair_t>({7, 9}) cells;
DirectRegisterAction<pair_t, bit<32>>(cells) count = {
    void apply(inout pair_t v, out bit<32> rv) { rv = v.lo; v.lo = v.lo + 1; v.hi = v.hi + 100; }
};
action hit() { hdr.wide.setValid(); hdr.wide.a = count.execute(); }
table t { key = { hdr.h.kind: exact; } actions = { hit; MORE } ENTRIES default_action = hit(); registers = cells;
          size = 4; }
apply { tm.ucast_egress_port = 2; t.apply(); }
"""


def program(more: str = "", entries: str = "") -> str:
    return REGISTER.replace("MORE", more).replace("ENTRIES", entries)


def add(made: Any, key: int) -> int:
    return int(made.table_add("In.t", [(bytes([key]), b"")], 0, ("action", "In.hit", [])))


def counts(made: Any, *kinds: int) -> list[int]:
    return [int.from_bytes(made.process(1, bytes([kind, 0]))[0][1][2:6], "big") for kind in kinds]


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_each_entry_has_a_cell_and_so_has_the_default_action(tmp_path: Path, arch: str) -> None:
    made = switch(tmp_path, arch, INGRESS=program())
    assert [add(made, 1), add(made, 2)] == [0, 1]
    assert counts(made, 1, 2, 1, 5, 1, 6) == [7, 7, 8, 7, 9, 8]
    assert made.register_read("In.cells", 0) == (10 << 32 | 309).to_bytes(8, "big")
    assert made.register_read("In.cells", 4) == (9 << 32 | 209).to_bytes(8, "big")


def test_a_cell_begins_with_its_entry(tmp_path: Path) -> None:
    made = switch(tmp_path, INGRESS=program())
    first = add(made, 1)
    assert counts(made, 1, 1) == [7, 8]
    made.table_delete("In.t", first)
    assert add(made, 3) == first
    assert counts(made, 3) == [7]
    made.table_clear("In.t")
    assert add(made, 4) == 0
    assert counts(made, 4) == [7]


def test_entries_of_the_program_have_cells(tmp_path: Path) -> None:
    entries = "const entries = { 1: hit(); 2: hit(); 3: hit(); 4: hit(); 5: hit(); }"
    made = switch(tmp_path, INGRESS=program(entries=entries))
    assert counts(made, 5, 5, 9, 1) == [7, 8, 7, 7]
    made.reset()
    assert counts(made, 5, 9) == [7, 7]


def test_a_table_without_a_key_has_the_cell_of_its_default_action(tmp_path: Path) -> None:
    without = program().replace("key = { hdr.h.kind: exact; }", "").replace("default_action", "const default_action")
    assert counts(switch(tmp_path, INGRESS=without), 1, 2) == [7, 8]


def test_its_json_is_read(tmp_path: Path) -> None:
    made = compiled(tmp_path, INGRESS=program())
    assert made.program is not None
    assert differences(made.program, read(made.json)) == []
    (table,) = (t for p in made.json["pipelines"] for t in p["tables"] if t["name"] == "In.t")
    assert table["direct_cells"] == ["In.cells"]
    target_of = table.pop("entry_target")
    with pytest.raises(JsonError, match=r"table In\.t has direct_cells, but no entry_target"):
        read(made.json)
    table["entry_target"] = target_of
    made.json["register_arrays"][0]["size"] = 4
    with pytest.raises(ProgramError, match=r"In\.cells has 4 cells, too few for the entries of table In\.t"):
        generated(read(made.json))


def test_a_trace_has_the_cell(tmp_path: Path) -> None:
    traced = build_traced(compiled(tmp_path, INGRESS=program()).program)
    made = load().Switch(str(traced.library))
    made.set_tracing(True)
    add(made, 1)
    made.process(1, bytes([1, 0]))
    trace = Trace(Decoder(traced)(made.traced()[0]))
    found = [(e.register, e.index, e.written, e.value) for e in trace.of(ev.RegisterAccessed)]
    assert found == [("In.cells", 0, False, 7 << 32 | 9), ("In.cells", 0, True, 8 << 32 | 109)]


def test_one_without_a_table_is_told(tmp_path: Path) -> None:
    text = "DirectRegister<bit<8>>() cells; apply { tm.ucast_egress_port = 2; }"
    assert "DirectRegister 'cells' belongs to no table" in "".join(compiled(tmp_path, INGRESS=text).warnings)


OTHER = "'In.cells' is of the entries of its table, and this is "


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t.apply();", "count.execute(); t.apply();", f"{OTHER}no table's action"),
        ("registers = cells;", "", f"{OTHER}an action of 'In.t', which does not have it"),
        ("registers = cells;", "registers = count;", "property 'registers' has to be of type DirectRegister"),
        (
            "apply {",
            "table u { actions = { hit; } default_action = hit(); } apply { u.apply();",
            f"{OTHER}an action of 'In.u', which does not have it",
        ),
        (
            "apply { tm.ucast_egress_port = 2; t.apply();",
            "table u { actions = { hit; } default_action = hit(); } apply { t.apply(); u.apply();",
            f"{OTHER}an action of 'In.u', which does not have it",
        ),
        (
            "apply {",
            "table u { actions = { NoAction; } registers = cells; } apply { u.apply();",
            "'In.cells' is another table's already",
        ),
    ],
)
def test_what_is_of_its_table_alone(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = program()
    assert old in text
    with pytest.raises(CompileError) as caught:
        compiled(tmp_path, INGRESS=text.replace(old, new))
    assert message in str(caught.value)


def test_it_takes_what_a_register_by_an_index_takes(tmp_path: Path) -> None:
    """The action knows the number of its entry, so that no further stage is needed."""
    indexed = program().replace("DirectRegister<pair_t>({7, 9}) cells", "Register<pair_t, bit<8>>(5) cells")
    indexed = indexed.replace("DirectRegisterAction<pair_t,", "RegisterAction<pair_t, bit<8>,")
    indexed = indexed.replace("count.execute()", "count.execute(hdr.h.kind)").replace("registers = cells;", "")
    plain, direct = (
        measure(write(tmp_path, INGRESS=text), arch="tna").fit(STAGES12) for text in (indexed, program())
    )
    assert plain.placement is not None
    assert direct.placement is not None
    assert direct.placement.stages == plain.placement.stages
    assert direct.memory == plain.memory
