"""Parser: extraction, stacks, varbits, lookahead, errors, and frames with only their headers present."""

from typing import Any

import pytest

from tests.p4switch.engine.jsonbuilder import ERRORS, ProgramBuilder, assign, call, const, field, op, sm

Json = Any


def error_program(ops: list[Json], **state: Any) -> ProgramBuilder:
    """Return a program with header h (2 bytes) in the first state, `ops` in the second; e: error and packet length."""
    b = ProgramBuilder()
    b.header_type("h_t", ("a", 8), ("b", 8))
    b.header_type("e_t", ("error", 8), ("length", 16))
    b.header("e", "e_t")
    b.header("h", "h_t")
    b.state("first", b.extract("h"), None, [(None, None, "second")])
    b.state("second", ops, **state)
    b.run([call("add_header", {"type": "header", "value": "e"}), assign(field("e", "error"), sm("parser_error")),
           assign(field("e", "length"), sm("packet_length"))])
    return b


def error_of(switch: Any, frame: bytes) -> str:
    [(_, out)] = switch.process(0, frame)
    assert int.from_bytes(out[1:3], "big") == len(frame)
    assert out[3:] == frame  # what was not parsed stays payload
    name: str = ERRORS[out[0]]
    return name


def test_too_short() -> None:
    b = error_program([])
    b.header_type("big_t", ("x", 32))
    b.header("big", "big_t")
    b.states[1]["parser_ops"] = b.extract("big")
    switch = b.switch()
    assert error_of(switch, b"123456") == "NoError"
    assert error_of(switch, b"1234567") == "NoError"
    for length in range(6):
        assert error_of(switch, b"12345"[:length]) == "PacketTooShort"


def test_verify() -> None:
    ops = [{"op": "verify", "parameters": [op("==", field("h", "a"), const(7)), const(ERRORS.index("Own"))]}]
    switch = error_program(ops).switch()
    assert error_of(switch, b"\7\0\1") == "NoError"
    assert error_of(switch, b"\6\0\1") == "Own"


def test_advance() -> None:
    switch = error_program([{"op": "advance", "parameters": [field("h", "a")]}]).switch()
    b = error_program([{"op": "advance", "parameters": [const(16)]}])
    [(_, out)] = b.switch().process(0, b"\1\2\3\4\5")
    assert out == bytes([0, 0, 5]) + b"\1\2\5"  # bytes that are skipped are gone
    assert error_of(switch, b"\7\0\1\1") == "ParserInvalidArgument"
    assert error_of(switch, b"\x18\0\1\1") == "PacketTooShort"


def test_endless_parser_ends() -> None:
    transitions: Any = [("0x01", None, "second"), (None, None, None)]
    switch = error_program([], key=[field("h", "a")], transitions=transitions).switch()
    assert error_of(switch, b"\2\0") == "NoError"
    assert error_of(switch, b"\1\0") == "ParserTimeout"


def test_select_with_masks_over_several_fields() -> None:
    b = ProgramBuilder()
    b.header_type("k_t", ("a", 12), ("b", 4), ("c", 72))
    b.header_type("r_t", ("r", 8))
    b.header("k", "k_t", emit=False)
    b.header("r", "r_t")
    key = [field("k", "a"), field("k", "b"), field("k", "c")]
    wide = "112233445566778899"
    b.state("start", b.extract("k"), key, [
        ("0x0abc05" + wide, None, "s1"),
        ("0x0a0000" + "00" * 9, "0x0f0000" + "00" * 9, "s2"),
        ("0x000001" + "00" * 8 + "01", "0x000001" + "00" * 8 + "ff", "s3"),
        (None, None, "s4"),
    ])
    for i in range(1, 5):
        b.state(f"s{i}", [{"op": "primitive", "parameters": [call("add_header", {"type": "header", "value": "r"})]},
                          {"op": "set", "parameters": [field("r", "r"), const(i)]}])
    switch = b.switch()

    def state(a: int, low: int, c: int) -> int:
        frame = (a << 76 | low << 72 | c).to_bytes(11, "big")
        return switch.process(0, frame)[0][1][0]

    assert state(0xABC, 5, int(wide, 16)) == 1
    assert state(0xABC, 5, int(wide, 16) + 1) == 2
    assert state(0xBBC, 3, 0x77_0000_0000_0000_0001) == 3
    assert state(0xBBC, 2, 0x77_0000_0000_0000_0001) == 4


def test_many_cases() -> None:
    b = ProgramBuilder()
    b.header_type("k_t", ("a", 16))
    b.header("k", "k_t")
    cases = [(hex(i * i), None, f"s{i}") for i in range(20)]
    b.state("start", b.extract("k"), [field("k", "a")], [*cases, ("0x4", None, "s19"), (None, None, "default")])
    for name, value in [(f"s{i}", i) for i in range(20)] + [("default", 99)]:
        b.state(name, [{"op": "set", "parameters": [field("k", "a"), const(value)]}])
    switch = b.switch()
    for i in range(20):
        assert switch.process(0, (i * i).to_bytes(2, "big"))[0][1] == i.to_bytes(2, "big")
    assert switch.process(0, b"\0\5")[0][1] == b"\0\x63"


def stack_program() -> ProgramBuilder:
    """Return a parser of labels up to one whose lowest bit is set; `next` of the stack counts them."""
    b = ProgramBuilder()
    b.header_type("label_t", ("v", 7), ("last", 1))
    b.stack("s", "label_t", 3)
    b.state("start", [{"op": "extract", "parameters": [{"type": "stack", "value": "s"}]}],
            [{"type": "stack_field", "value": ["s", "last"]}], [("0x00", None, "start"), (None, None, None)])
    return b


def test_stack_overflow() -> None:
    b = stack_program()
    b.run([assign(sm("egress_spec"), sm("parser_error"))])
    switch = b.switch()
    assert switch.process(0, b"\2\4\7") == [(0, b"\2\4\7")]
    assert switch.process(0, b"\2\4\6\7") == [(ERRORS.index("StackOutOfBounds"), b"\2\4\6\7")]


@pytest.mark.parametrize(("name", "count", "expected"), [
    ("push", 1, b"\2\4"), ("push", 2, b"\2"), ("push", 3, b""), ("push", 9, b""),
    ("pop", 1, b"\4\7"), ("pop", 2, b"\7"), ("pop", 3, b""), ("pop", 9, b""),
])
def test_push_and_pop(name: str, count: int, expected: bytes) -> None:
    b = stack_program()
    b.run([call(name, {"type": "header_stack", "value": "s"}, const(count))])
    switch = b.switch()
    # What push makes room for is not valid; it takes the last elements from the stack.
    assert switch.process(0, b"\2\4\7")[0][1] == expected


def test_push_then_set_valid() -> None:
    b = stack_program()
    b.run([call("push", {"type": "header_stack", "value": "s"}, const(1)),
           call("add_header", {"type": "header", "value": "s[0]"}), assign(field("s[0]", "v"), const(0x55))])
    assert b.switch().process(0, b"\2\5\7\7")[0][1] == b"\xaa\2\5\7\7"


def test_stack_index_out_of_bounds_reads_and_writes_nothing_else() -> None:
    b = stack_program()
    b.header_type("x_t", ("i", 8), ("v", 8))
    b.header("x", "x_t")
    b.states[0]["parser_ops"].insert(0, b.extract("x")[0])
    b.states[0]["name"] = "labels"
    b.states[0]["transitions"][0]["next_state"] = "labels"
    b.states.append({"name": "start", "id": 9, "parser_ops": b.states[0]["parser_ops"][:1], "transition_key": [],
                     "transitions": [{"type": "default", "value": None, "mask": None, "next_state": "labels"}]})
    b.states.reverse()
    del b.states[1]["parser_ops"][0]
    stack = {"type": "header_stack", "value": "s"}
    element = op("access_field", op("dereference_header_stack", stack, field("x", "i")), 0)
    b.run([assign(element, op("+", element, const(1)))])
    switch = b.switch()
    assert switch.process(0, b"\1\0\2\4\7")[0][1] == b"\2\6\7\1\0"
    for index in (3, 4, 200, 255):
        assert switch.process(0, bytes([index]) + b"\0\2\4\7")[0][1] == b"\2\4\7" + bytes([index, 0])


def test_varbit() -> None:
    b = ProgramBuilder()
    b.header_type("v_t", ("n", 4), ("v", "*"), ("tail", 12), max_length=8)
    b.header("v", "v_t")
    nbits = op("*", field("k", "n"), const(8))
    b.header_type("k_t", ("n", 8))
    b.header("k", "k_t")
    b.order.reverse()
    b.state("start", [*b.extract("k"),
                      {"op": "extract_VL", "parameters": [{"type": "regular", "value": "v"}, nbits]}])
    b.run([assign(field("v", "n"), const(0xF)), assign(sm("egress_spec"), sm("parser_error"))])
    switch = b.switch()
    for count in range(7):
        body = bytes(range(1, 1 + count + 4))
        [(port, out)] = switch.process(0, bytes([count]) + body)
        assert port == 0
        assert out == bytes([count, 0xF0 | body[0]]) + body[1:]
    assert switch.process(0, bytes([7]) + bytes(20))[0] == (ERRORS.index("HeaderTooShort"), bytes([7]) + bytes(20))
    assert switch.process(0, bytes([6]) + bytes(7))[0][0] == ERRORS.index("PacketTooShort")


def test_lookahead() -> None:
    b = ProgramBuilder()
    b.header_type("h_t", ("a", 20), ("b", 4))
    b.header("h", "h_t")
    b.state("start", [{"op": "primitive", "parameters": [call("add_header", {"type": "header", "value": "h"})]},
                      {"op": "set", "parameters": [field("h", "a"), {"type": "lookahead", "value": [4, 12]}]},
                      {"op": "set", "parameters": [field("h", "b"), {"type": "lookahead", "value": [0, 4]}]}],
            [{"type": "lookahead", "value": [3, 9]}], [("0x0123", None, "found"), (None, None, None)])
    b.state("found", [{"op": "set", "parameters": [field("h", "b"), const(0)]}])
    b.run([assign(sm("egress_spec"), sm("parser_error"))])
    switch = b.switch()
    assert switch.process(0, b"\xab\xcd") == [(0, bytes.fromhex("00bcda") + b"\xab\xcd")]
    assert switch.process(0, b"\x12\x3f")[0][1][:3] == bytes.fromhex("0023f0")
    assert switch.process(0, b"\x12") == [(1, bytes(3) + b"\x12")]


def test_value_set() -> None:
    b = ProgramBuilder()
    b.header_type("h_t", ("a", 8), ("b", 16))
    b.header("h", "h_t")
    b.state("start", b.extract("h"), [field("h", "a"), field("h", "b")])
    b.states[0]["transitions"] = [{"type": "parse_vset", "value": "pvs", "mask": None, "next_state": "found"},
                                  {"type": "default", "value": None, "mask": None, "next_state": None}]
    b.state("found", [{"op": "set", "parameters": [field("h", "b"), const(0)]}])
    b.rest["parse_vsets"] = [{"name": "pvs", "id": 0, "compressed_bitwidth": 24}]
    switch = b.switch()
    assert switch.process(0, b"\1\2\3")[0][1] == b"\1\2\3"
    switch.value_set_set("pvs", [[(b"\1", b""), (b"\2\3", b"")], [(b"\7", b""), (b"\0\0", b"\0\xff")]])
    assert switch.process(0, b"\1\2\3")[0][1] == b"\1\0\0"
    assert switch.process(0, b"\7\2\0")[0][1] == b"\7\0\0"
    assert switch.process(0, b"\7\2\1")[0][1] == b"\7\2\1"
    switch.value_set_set("pvs", [])
    assert switch.process(0, b"\1\2\3")[0][1] == b"\1\2\3"
    for bad in ([[(b"\1", b"")]], [[(b"\1", b""), (b"\2", b"")]]):
        with pytest.raises(ValueError, match=r".+"):
            switch.value_set_set("pvs", bad)


def union_program() -> ProgramBuilder:
    b = ProgramBuilder()
    b.header_type("k_t", ("k", 8))
    b.header_type("one_t", ("v", 8))
    b.header_type("two_t", ("v", 16))
    b.header("k", "k_t")
    b.header("one", "one_t")
    b.header("two", "two_t")
    ids = {h["name"]: h["id"] for h in b.headers}
    b.rest["header_union_types"] = [{"name": "u_t", "id": 0, "headers": [["one", "one_t"], ["two", "two_t"]]}]
    b.rest["header_unions"] = [{"name": "u", "id": 0, "union_type": "u_t", "header_ids": [ids["one"], ids["two"]]}]
    cases: Any = [("0x01", None, "one"), ("0x02", None, "two"), (None, None, None)]
    b.state("start", b.extract("k"), [field("k", "k")], cases)
    b.state("one", b.extract("one"))
    b.state("two", b.extract("two"))
    return b


def test_one_member_of_a_union_is_valid() -> None:
    b = union_program()
    b.run([call("add_header", {"type": "header", "value": "two"}), assign(field("two", "v"), const(0xABCD))])
    switch = b.switch()
    assert switch.process(0, b"\1\5\6")[0][1] == b"\1\xab\xcd\6"
    assert switch.process(0, b"\2\5\6")[0][1] == b"\2\xab\xcd"
    assert switch.process(0, b"\3\5\6")[0][1] == b"\3\xab\xcd\5\6"
