"""State that a packet carries between pipelines; the generated tests also pass on the built-in switch."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.stf import run_test

pytest.importorskip("z3", reason="z3 is not installed")

from p4switch.testgen import generate, write
from p4switch.testgen.search import Result

PROGRAM = Path(__file__).with_name("pipelines.p4").read_text()


def pipelines(folder: Path, ingress: str, egress: str, parser: str = "") -> Path:
    """Return a program with these statements."""
    text = PROGRAM
    for place, statements in (("PARSER", parser), ("INGRESS", ingress), ("EGRESS", egress)):
        text = text.replace(f"        {place}\n", f"        {statements}\n")
    program = folder / "pipelines.p4"
    program.write_text(text)
    return program


def generated(folder: Path, ingress: str, egress: str, parser: str = "") -> Result:
    """Return tests of a program with these statements, which cover all of them and pass."""
    program = pipelines(folder, ingress, egress, parser)
    code, result = generate(program)
    assert (result.missing, result.only_unstable) == ([], [])
    for test in write(folder, program, [], code, result):
        run_test(program, test)
    return result


def seen(result: Result) -> list[int]:
    """Return the bytes that egress wrote to the packets of the first test, in the order of its numbers."""
    return sorted(int.from_bytes(data[4:8], "big") for _, data, _ in result.tests[0].expected)


ADD, REMOVE = "hdr.more.setValid();", "hdr.more.setInvalid();"
FIRST = "if (sm.instance_type == 0) {{ {} }}"
AGAIN = "if (meta.kept == 0) {{ meta.kept = 1; {} recirculate_preserving_field_list(1); }}"


@pytest.mark.parametrize(
    ("ingress", "egress", "grown"),
    [
        ("", "", [0]),
        (ADD, "", [8]),
        (f"{ADD} {ADD}", "", [8]),
        (REMOVE, "", [0]),
        (f"{ADD} {REMOVE}", "", [0]),
        ("", ADD, [0]),
        ("hdr.first.setValid();", "", [0]),
        ("hdr.first.setInvalid();", "hdr.first.setValid();", [-8]),
        ("hdr.more = { 1 };", "", [8]),
        ("hdr.stack[0].setValid(); hdr.other = hdr.stack[0];", "", [8]),
        (f"{ADD} hdr.other = hdr.more; hdr.other.setInvalid(); {REMOVE}", "", [-8]),
        ("hdr.stack[0].setValid(); hdr.stack.push_front(1);", "", [8]),
        ("hdr.stack[0].setValid(); hdr.stack.push_front(1); hdr.stack[0].setInvalid();", "", [8]),
        ("hdr.stack[0].setValid(); hdr.stack.push_front(1); hdr.stack[1].setInvalid();", "", [0]),
        ("hdr.stack[1].setValid(); hdr.stack.pop_front(1); hdr.stack[0].setValid();", "", [8]),
        ("hdr.either.one.setValid(); hdr.either.two.setValid(); hdr.either.one.setInvalid();", "", [8]),
        (f"{ADD} truncate(20);", "", [8]),
        (f"sm.packet_length = 7; {ADD}", "", [8]),
        (f"{ADD} sm.mcast_grp = 3;", "", [8, 8]),
        (f"{ADD} clone(CloneType.I2E, 5);", "", [0, 8]),
        (FIRST.format(f"{ADD} resubmit_preserving_field_list(1);"), "", [0]),
        ("", FIRST.format(f"{ADD} clone(CloneType.E2E, 5);"), [0, 8]),
        (ADD, FIRST.format(f"{REMOVE} clone(CloneType.E2E, 5);"), [0, 8]),
        ("", AGAIN.format(ADD), [8]),
        (ADD, AGAIN.format("hdr.other = hdr.more;"), [24]),
        (f"if (sm.instance_type == 4) {{ {ADD} }}", AGAIN.format(ADD), [16]),
        ("clone(CloneType.I2E, 5 + sm.instance_type);", FIRST.format(AGAIN.format(ADD)), [0, 8, 8]),
    ],
)  # fmt: skip
def test_the_length_in_egress(tmp_path: Path, ingress: str, egress: str, grown: list[int]) -> None:
    """`setValid` and `setInvalid` change it for later pipelines, if they change a header's validity."""
    result = generated(tmp_path, ingress, f"bit<32> length = sm.packet_length; {egress} hdr.first.seen = length;")
    arrived = len(result.tests[0].run.packet)
    assert seen(result) == [arrived + count for count in grown]


def test_a_parser_that_adds_a_header(tmp_path: Path) -> None:
    """A copy of the original packet is parsed again, and grows again."""
    result = generated(tmp_path, "clone(CloneType.I2E, 5);", "hdr.first.seen = sm.packet_length;", parser=ADD)
    assert seen(result) == [len(result.tests[0].run.packet) + 8] * 2


@pytest.mark.parametrize(
    ("ingress", "grown"),
    [
        ("hdr.options.setInvalid();", [-2]),
        ("hdr.options.setInvalid(); hdr.options.setInvalid();", [-2]),
        ("clone(CloneType.I2E, 5); hdr.options.setInvalid();", [-2, 0]),
    ],
)
def test_a_header_with_a_varbit_takes_its_length_along(tmp_path: Path, ingress: str, grown: list[int]) -> None:
    result = generated(tmp_path, ingress, "hdr.first.seen = sm.packet_length;", "packet.extract(hdr.options, 8);")
    assert seen(result) == [len(result.tests[0].run.packet) + count for count in grown]


def test_a_varbit_that_was_never_there_is_empty(tmp_path: Path) -> None:
    result = generated(tmp_path, "hdr.options.setValid(); hdr.options.kind = 7;", "hdr.first.seen = sm.packet_length;")
    run = result.tests[0].run
    assert seen(result) == [len(run.packet) + 1]
    assert run.outputs[0][1][8:] == b"\x07" + run.packet[8:]


def test_a_varbit_whose_header_comes_again_has_no_length(tmp_path: Path) -> None:
    """On simple_switch it keeps its length; on the built-in switch it has none."""
    twice = "if (sm.parser_error == error.NoError) { hdr.options.setInvalid(); hdr.options.setValid(); }"
    result = generate(pipelines(tmp_path, twice, "", "packet.extract(hdr.options, 8);"))[1]
    assert result.problems["the length of a varbit is not defined"]
    assert len(result.only_unstable) == 2


def test_a_changed_length_decides(tmp_path: Path) -> None:
    """Only a packet of 92 bytes has 100 in egress, and only a recirculated one of 84 has 92 in ingress."""
    ingress = f"""if (sm.instance_type == 4 && sm.packet_length == 92) {{ hdr.first.seen = 1; }}
        else if (sm.instance_type == 0) {{ {ADD} }}"""
    egress = f"if (sm.packet_length == 100) {{ hdr.first.seen = 2; }} {AGAIN.format('')}"
    result = generated(tmp_path, ingress, egress)
    assert {84, 92} <= {len(test.run.packet) for test in result.tests}


@pytest.mark.parametrize(
    ("ingress", "field", "there"),
    [
        ("", "ingress_port", [5]),
        ("clone(CloneType.I2E, 5);", "ingress_port", [0, 5]),
        ("sm.egress_rid = 9;", "egress_rid", [9]),
        ("sm.egress_rid = 9; clone(CloneType.I2E, 5);", "egress_rid", [0, 9]),
        ("sm.mcast_grp = 0; sm.priority = 3; clone(CloneType.I2E, 5);", "priority", [0, 3]),
    ],
)
def test_standard_metadata_in_egress(tmp_path: Path, ingress: str, field: str, there: list[int]) -> None:
    """A copy has only what each packet in egress has; the number of a replica is set only for replicas."""
    result = generated(tmp_path, ingress, f"hdr.first.seen = (bit<32>)sm.{field};")
    port = result.tests[0].run.port
    assert seen(result) == sorted(port if number == 5 else number for number in there)


def test_a_copy_has_no_metadata_of_its_parser(tmp_path: Path) -> None:
    parser = "meta.kept = 3; meta.lost = 4;"
    ingress = "meta.kept = meta.kept + 5; meta.lost = meta.lost + 5; clone_preserving_field_list(CloneType.I2E, 5, 1);"
    result = generated(tmp_path, ingress, "hdr.first.seen = meta.kept * 16 + meta.lost;", parser)
    assert seen(result) == [0x80, 0x89]


@pytest.mark.parametrize(
    ("ingress", "egress", "lengths"),
    [
        ("truncate(20);", "truncate(30);", [20]),
        ("truncate(30);", "truncate(20);", [20]),
        ("truncate(20); sm.mcast_grp = 3;", "", [60, 60]),
        ("truncate(20); sm.mcast_grp = 3;", "truncate(30);", [30, 30]),
        ("truncate(20); clone(CloneType.I2E, 5);", "", [60, 20]),
    ],
)
def test_the_shortest_truncation_counts(tmp_path: Path, ingress: str, egress: str, lengths: list[int]) -> None:
    """Check that truncation applies to the packet and not to its copies."""
    result = generated(tmp_path, ingress, egress)
    assert [len(data) for _, data, _ in result.tests[0].expected] == lengths
