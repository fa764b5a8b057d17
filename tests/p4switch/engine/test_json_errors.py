"""Each mistake in a JSON is reported in one line."""

import copy
import json
import random
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from p4switch import native
from p4switch.bmv2 import read
from p4switch.engine import ProgramError, build, generated
from tests.p4switch.engine.jsonbuilder import ProgramBuilder, assign, call, const, field, named, op, param, sm

Json = Any


def everything() -> Json:
    """Return a program with nearly every element of the format."""
    b = ProgramBuilder()
    b.header_type("h_t", ("a", 8), ("b", 24), ("c", 128))
    b.header_type("v_t", ("n", 8), ("v", "*"), max_length=5)
    b.header("h", "h_t")
    b.header("v", "v_t")
    b.stack("s", "h_t", 2)
    b.header_type("m_t", ("x", 32), ("y", 200))
    b.header("m", "m_t", metadata=True)
    b.rest["register_arrays"] = [{"name": "r", "id": 0, "size": 4, "bitwidth": 32}]
    b.rest["counter_arrays"] = [{"name": "c", "id": 0, "size": 4, "is_direct": False}]
    b.rest["meter_arrays"] = [{"name": "mt", "id": 0, "type": "bytes", "rate_count": 2, "size": 4, "is_direct": False}]
    b.rest["field_lists"] = [{"id": 1, "name": "f", "elements": [field("m", "x")]}]
    b.rest["learn_lists"] = [{"id": 1, "name": "l", "elements": [field("m", "y")]}]
    b.rest["parse_vsets"] = [{"name": "pvs", "id": 0, "compressed_bitwidth": 8}]
    b.rest["calculations"] = [{"name": "hash", "id": 0, "algo": "crc16", "input": [field("h", "a"), field("h", "b")]}]
    b.rest["checksums"] = [{"name": "ck", "id": 0, "target": ["h", "b"], "type": "generic", "calculation": "hash",
                            "verify": True, "update": True, "if_cond": op("valid", None, named("header", "h"))}]
    b.state("start", b.extract("h"), [field("h", "a")],
            [("0x01", None, "stack"), ("0x02", "0x0f", "var"), (None, None, None)])
    b.states[0]["transitions"].insert(0, {"type": "parse_vset", "value": "pvs", "mask": None, "next_state": "var"})
    b.state("stack", [{"op": "extract", "parameters": [{"type": "stack", "value": "s"}]}])
    b.state("var", [{"op": "extract_VL", "parameters": [{"type": "regular", "value": "v"}, const(16)]},
                    {"op": "set", "parameters": [field("m", "x"), {"type": "lookahead", "value": [0, 8]}]},
                    {"op": "verify", "parameters": [op("<", field("h", "a"), const(9)), const(1)]}])
    act = b.action("act", [assign(field("h", "a"), param(0)), assign(field("m", "y"), op("+", param(1), const(1)))],
                   p=8, q=128)
    b.profiles = [{"name": "ap", "id": 0, "max_size": 4,
                   "selector": {"algo": "crc32", "input": [field("h", "a")]}}]
    entry = {"match_key": [{"match_type": "ternary", "key": "0x01", "mask": "0xff"},
                           {"match_type": "range", "start": "0x1", "end": "0x2"}],
             "action_entry": {"action_id": act, "action_data": ["0x1", "0x2"]}, "priority": 1}
    b.table("t", [("ternary", field("h", "a")), ("range", field("h", "b"))], [act], default=act, data=["0x1", "0x2"],
            entries=[entry])
    b.table("u", [("lpm", field("h", "c"))], [act], type="indirect_ws", action_profile="ap")
    b.run([
        call("register_read", field("m", "x"), named("register_array", "r"), const(1)),
        call("register_write", named("register_array", "r"), field("h", "a"), field("m", "x")),
        call("count", named("counter_array", "c"), const(1)),
        call("execute_meter", named("meter_array", "mt"), const(1), field("m", "x")),
        call("modify_field_with_hash_based_offset", field("m", "x"), const(0), named("calculation", "hash"), const(8)),
        call("clone_ingress_pkt_to_egress", const(1), const(1)), call("generate_digest", const(1), const(1)),
        call("push", named("header_stack", "s"), const(1)), call("assign_header", named("header", "s[0]"),
                                                               named("header", "h")),
        call("_jump_if_zero", field("h", "a"), const(11)), call("exit"),
        call("truncate", op("?", const(1), field("m", "x"), op("==", sm("ingress_port"), const(1)))),
        call("log_msg", {"type": "string", "value": "{}"}, {"type": "parameters_vector", "value": [field("h", "a")]}),
    ])
    return b.json()


def places(document: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(document, list):
        document = dict(enumerate(document))
    for key, value in document.items() if isinstance(document, dict) else ():
        found += places(value, (*path, key))
    return found


def test_everything_is_fine_as_it_is() -> None:
    build(read(everything()))


WORDS: list[Any] = [None, "", "nowhere", -1, 0, 10**30, 3.5, True, [], {}, ["h"], ["h", "nothing"], "0xzz", "*",
                    {"type": "field", "value": ["h", "a"]}, {"op": "+"}, "h", "s", "m", "v", "start", 'x"y\\z */', "é"]


def mutate(document: Json, rng: random.Random) -> Json:
    changed = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2])):
        path = rng.choice(places(changed))
        parent = changed
        for key in path[:-1]:
            parent = parent[key]
        if rng.random() < 0.3 and isinstance(parent, (dict, list)):
            del parent[path[-1]]
        else:
            parent[path[-1]] = copy.deepcopy(rng.choice(WORDS))
    return changed


@pytest.mark.parametrize("seed", range(4))
def test_wrong_json_is_refused_or_makes_valid_c(seed: int) -> None:
    rng = random.Random(seed)
    document = everything()
    texts, messages = [], []
    for _ in range(500):
        changed = mutate(document, rng)
        try:
            texts.append(generated(read(changed)).text)
        except ProgramError as error:
            messages.append(str(error))
    assert not [m for m in messages if "\n" in m or len(m) > 400]
    assert len(texts) > 20
    include = [f"-I{p}" for p in {str(h.parent) for h in _headers()}]
    for text in rng.sample(texts, 12):
        command = [*native.compiler(), *native.FLAGS, "-Wno-unused", "-fsyntax-only", *include, "-xc", "-"]
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr


def _headers() -> Any:
    from p4switch.engine import PIPELINE_HEADERS

    return [*PIPELINE_HEADERS, *generated(read(everything())).program.path.headers]


def edit(change: Callable[[Json], None]) -> Json:
    document = everything()
    change(document)
    return document


def reverse_range(document: Json) -> None:
    """Make the first key of the first table a range, and that of its first entry an empty range."""
    table = document["pipelines"][0]["tables"][0]
    table["key"][0].update(match_type="range", mask=None)
    table["match_type"] = "range"
    table["entries"][0]["match_key"][0] = {"match_type": "range", "start": "0x09", "end": "0x04"}


def add_operation(document: Json, name: str, *parameters: Json) -> None:
    document["parsers"][0]["parse_states"][0]["parser_ops"].insert(0, {"op": name, "parameters": list(parameters)})


@pytest.mark.parametrize(("change", "message"), [
    (lambda d: d.pop("parsers"), "parsers"),
    (lambda d: d["parsers"].clear(), "no parser"),
    (lambda d: d["parsers"][0].update(init_state="x"), "no parser state x"),
    (lambda d: d["headers"][1].update(header_type="x"), "no header type x"),
    (lambda d: d["pipelines"].pop(), "no pipeline egress"),
    (lambda d: d["pipelines"][0].update(init_table="x"), "no node x"),
    (lambda d: d["actions"][0]["primitives"].append(call("frobnicate")), "unknown primitive frobnicate"),
    (lambda d: d["actions"][0]["primitives"].append(call("count", const(1))), "count needs a name as parameter 1"),
    (lambda d: d["actions"][0]["primitives"].append(call("truncate", const(1), const(2))), "truncate takes 1 param"),
    (lambda d: d["calculations"][0].update(algo="md5"), "md5"),
    (lambda d: d["header_types"][0]["fields"].pop(0), "ingress_port"),
    (lambda d: d["header_types"][1]["fields"].append(["odd", 3, False]), "whole number of bytes"),
    (lambda d: d["header_types"][1]["fields"].append(["huge", 5000, False]), "5000 bits"),
    (lambda d: d["pipelines"][0]["tables"][0]["key"][0].update(mask="-0x1"), "mask -0x1 is negative"),
    (lambda d: d["pipelines"][0]["tables"][0]["key"][0].update(mask="0xffffffff"), "8 bits, fewer than its mask 0xff"),
    (lambda d: d["pipelines"][0]["tables"][0]["entries"][0]["match_key"][0].update(mask="-0x1"), "mask -0x1 is neg"),
    (lambda d: d["pipelines"][0]["tables"][0]["next_tables"].update(other=None), "next node for action other, which"),
    (lambda d: d["pipelines"][0]["tables"][0]["next_tables"].update(__HIT__=None), "both by hit or miss and by"),
    (lambda d: d["pipelines"][0]["tables"][0].update(base_default_next="x"), "pipeline ingress has no node x"),
    (lambda d: d["pipelines"][0]["tables"][0]["default_entry"].update(action_data=[]), "action act takes 2 arguments"),
    (lambda d: d["pipelines"][0]["tables"][1].update(action_profile="x"), "table u: there is no action profile x"),
    (lambda d: d["meter_arrays"][0].update(is_direct=True), "direct meter mt has no binding"),
    (lambda d: d["header_stacks"].append({**d["header_stacks"][0], "name": "z", "id": 1}), "is in two stacks or un"),
    (lambda d: d["header_stacks"][0].update(header_ids=[0, 99]), "no header with id 99"),
    (lambda d: d["register_arrays"].append(d["register_arrays"][0]), "two have the same register array: r"),
    (lambda d: d["checksums"][0].update(calculation="x"), "checksum ck: there is no calculation x"),
    (reverse_range, "entries of table t: key field h.a: range 0x9 to 0x4 is empty"),
    (lambda d: d["parsers"][0]["parse_states"][0]["transitions"][2].update(mask="-0x1"), "mask -0x1 is negative"),
    (lambda d: add_operation(d, "primitive"), "primitive takes 1 parameter, got 0"),
    (lambda d: add_operation(d, "primitive", "x"), "parser operation primitive: Input should be"),
    (lambda d: add_operation(d, "primitive", {"op": 3}), "parser operation primitive: Input should be"),
    (lambda d: add_operation(d, "shift", -1), "shift by -1 bytes"),
    (lambda d: d.update(
        header_union_types=[{"name": "u_t", "id": 0, "headers": [["m", "m_t"]]}],
        header_unions=[{"name": "u", "id": 0, "union_type": "u_t", "header_ids": [
            h["id"] for h in d["headers"] if h["name"] == "m"]}]), "header m cannot be a member of u: metadata"),
])
def test_message(change: Callable[[Json], None], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        generated(read(edit(change)))


def test_json_of_another_kind() -> None:
    documents: tuple[Any, ...] = ({}, {"a": 1}, json.loads('{"pipelines": 1}'), [], "", None, 3)
    for document in documents:
        with pytest.raises(ProgramError):
            generated(read(document))
        with pytest.raises(ProgramError):
            build(read(document))


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_nesting_is_bounded(depth: int) -> None:
    deep: Json = const(1)
    for _ in range(depth):
        deep = {"type": "expression", "value": deep}
    document = edit(lambda d: d["actions"][0]["primitives"].append(assign(field("h", "a"), deep)))
    with pytest.raises(ProgramError, match="nested over 500 deep"):
        generated(read(document))
    del document["actions"][0]["primitives"][-1]
    while isinstance(deep, dict):  # Python can free such deep objects only level by level
        deep = deep["value"]


def test_an_expression_of_a_hundred_operators_is_built() -> None:
    sum_: Json = field("h", "a")
    for _ in range(100):
        sum_ = op("+", sum_, const(1))
    build(read(edit(lambda d: d["actions"][0]["primitives"].append(assign(field("h", "a"), sum_)))))


def test_an_error_is_one_line_whatever_stands_in_the_place_of_a_name() -> None:
    name = {"a": "x\ny" * 1000}
    wrong = assign(field("h", "a"), {"type": "field", "value": [name, "a"]})
    document = edit(lambda d: d["actions"][0]["primitives"].append(wrong))
    with pytest.raises(ProgramError, match=r"^BMv2 JSON: .* \.\.\.$") as caught:
        generated(read(document))
    assert len(str(caught.value)) == 300
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bits", [-1, 0, 2049, 1 << 70])
def test_a_width_that_no_field_has_is_refused_before_anything_uses_it(bits: int) -> None:
    """Cases of a select cut values by the widths of their keys."""
    document = everything()
    for header_type in document["header_types"]:
        header_type["fields"] = [[name, bits if name == "a" else width] for name, width, *_ in header_type["fields"]]
    with pytest.raises(ProgramError, match=rf"field h_t\.a has {bits} bits; expected 1 to 2048"):
        read(document)
