"""Tables of a hash: its algorithm, the slices of its fields, and the hash of given fields."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import grpc
import pytest

from p4switch.architectures.tna.externs.hash import Hash
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.hashing import hash_of
from p4switch.bits.checksums import CRCS, Crc, reflect
from p4switch.compiler import Compiled
from p4switch.engine import objects
from p4switch.p4runtime.messages import code_pb2
from tests.p4switch.architectures.tofino import compiled
from tests.p4switch.bfrt.conftest import Bench, Client, errors
from tests.p4switch.bfrt.test_server import refused

INGRESS = """
    Hash<bit<48>>(HashAlgorithm_t.CRC32) mix;
    ActionProfile(16) members;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) pick;
    ActionSelector(members, pick, SelectorMode_t.FAIR, 8, 4) groups;
    action go(bit<9> port) { tm.ucast_egress_port = port; }
    table spread { key = { hdr.h.kind : exact; hdr.h.value : selector; } actions = { go; } implementation = groups; }
    apply {
        tm.ucast_egress_port = 2; hdr.wide.setValid(); hdr.wide.b = 0;
        hdr.wide.a = mix.get({ hdr.h.kind[6:0], 5w9, hdr.h.value })[31:0];
        spread.apply();
    }
"""
NAMES = "hdr.h.kind[6:0]", "constant0_5_5w9", "hdr.h.value"
WIDTHS = 7, 5, 8
CRC16 = Crc(16, 0x1021, 0xFFFF, 0, True)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("hashing"), INGRESS=INGRESS)


def hashed(bench: Bench, kind: int, value: int) -> int:
    ((_, frame),) = bench.switch.process(1, bytes([kind, value]))
    return int.from_bytes(frame[2:6], "big")


def inputs(kind: int, value: int) -> bytes:
    """Return the bytes that the program hashes: fields of 20 bits after 4 zero bits."""
    return ((kind & 0x7F) << 13 | 9 << 8 | value).to_bytes(3, "big")


def choose(client: Client, action: str, **data: Any) -> None:
    client.write("MODIFY", client.entry("In.mix.algorithm", None, action, default=True, **data))


def fields_of(info: dict[str, Any]) -> list[dict[str, Any]]:
    return [each["singleton"] for each in info["data"]]


def slices(client: Client, **fields: list[dict[str, int]]) -> Message:
    """Return an entry with slices of the fields `kind`, `constant` and `value`."""
    info = client.tables["In.mix.configure"]
    entry = bfruntime_pb2.TableEntry(table_id=info["id"], is_default_entry=True)
    for name, field in zip(("kind", "constant", "value"), fields_of(info), strict=True):
        if name in fields:
            made = entry.data.fields.add(field_id=field["id"])
            ids = {part["singleton"]["name"]: part["singleton"]["id"] for part in field["container"]}
            for each in fields[name]:
                container = made.container_arr_val.container.add()
                for part, number in each.items():
                    container.val.add(field_id=ids[part], stream=number.to_bytes(8, "big"))
    return entry


def configured(client: Client) -> list[list[dict[str, int]]]:
    """Return the slices of each field."""
    info = client.tables["In.mix.configure"]
    query = bfruntime_pb2.TableEntry(table_id=info["id"], is_default_entry=True)
    (found,) = client.entities(table_entry=query)
    by_id = {f.field_id: f.container_arr_val.container for f in found.table_entry.data.fields}
    names = {part["singleton"]["id"]: part["singleton"]["name"] for f in fields_of(info) for part in f["container"]}
    return [
        [{names[v.field_id]: int.from_bytes(v.stream, "big") for v in c.val} for c in by_id.get(f["id"], [])]
        for f in fields_of(info)
    ]


def test_at_first_it_is_the_program_s_hash(bench: Bench) -> None:
    assert hashed(bench, 7, 200) == CRCS["crc32"].of(inputs(7, 200))
    (found,) = bench.client.read(bench.client.entry("In.mix.algorithm", default=True))
    assert (found["action"], found["polynomial"], found["hash_bit_width"]) == ("user_defined", 0x04C11DB7, 32)
    whole = [[{"start_bit": 0, "length": width, "order": at}] for at, width in enumerate(WIDTHS, 1)]
    assert configured(bench.client) == whole


def test_an_algorithm_by_its_name_and_by_its_parameters(bench: Bench) -> None:
    client = bench.client
    choose(client, "pre_defined", algorithm_name="CRC_16_MCRF4XX")
    assert hashed(bench, 7, 200) == CRC16.of(inputs(7, 200))
    (found,) = client.read(client.entry("In.mix.algorithm", default=True))
    assert (found["action"], found["algorithm_name"], found["msb"]) == ("pre_defined", "CRC_16_MCRF4XX", False)
    choose(client, "pre_defined", algorithm_name="IDENTITY")
    assert hashed(bench, 7, 200) == int.from_bytes(inputs(7, 200), "big")
    choose(client, "user_defined", polynomial=0x1021, init=0xFFFF, reverse=True, hash_bit_width=16, extend=True)
    once = CRC16.of(inputs(7, 200))
    assert hashed(bench, 7, 200) == once << 16 | once
    choose(client, "user_defined", polynomial=0x1021, init=0xFFFF, reverse=True, hash_bit_width=16, rotate=4)
    assert hashed(bench, 7, 200) == once << 4
    client.write("RESET", client.entry("In.mix.algorithm", None, default=True))
    assert hashed(bench, 7, 200) == CRCS["crc32"].of(inputs(7, 200))
    assert objects.values(Hash, bench.switch.object_read("In.mix", 0))["configured"] == 0


def test_parts_of_fields_are_hashed_in_their_order(bench: Bench) -> None:
    client = bench.client
    parts = {"kind": [{"order": 5, "start_bit": 2}], "value": [{"order": 1, "start_bit": 0, "length": 3}]}
    client.write("MODIFY", slices(client, **parts))
    kind, value = 0b1011011, 0b110
    assert hashed(bench, kind, value) == CRCS["crc32"].of(bytes([value << 5 | kind >> 2]))
    assert hashed(bench, kind ^ 3, value ^ 0xF8) == hashed(bench, kind, value)
    assert configured(client) == [
        [{"start_bit": 2, "length": 5, "order": 5}], [], [{"start_bit": 0, "length": 3, "order": 1}]
    ]  # fmt: skip
    client.write("RESET", client.entry("In.mix.configure", None, default=True))
    assert hashed(bench, kind, value) == CRCS["crc32"].of(inputs(kind, value))


def test_parts_with_the_same_order_are_symmetric(bench: Bench) -> None:
    client = bench.client
    client.write("MODIFY", slices(client, kind=[{"order": 2}], value=[{"order": 2, "start_bit": 1}]))
    assert hashed(bench, 5, 3 << 1) == hashed(bench, 3, 5 << 1) == CRCS["crc32"].of(bytes([5 ^ 3]))


def test_the_hash_of_given_fields_is_that_of_a_packet(bench: Bench) -> None:
    client = bench.client
    query = client.entry("In.mix.compute", {"hdr.h.kind[6:0]": 7, "hdr.h.value": 200})
    for change in (lambda: None, lambda: choose(client, "pre_defined", algorithm_name="crc_64"),
                   lambda: client.write("MODIFY", slices(client, value=[{"order": 1}]))):  # fmt: skip
        change()
        (found,) = client.read(query)
        assert found["hash_value"] == hashed(bench, 7, 200)


def test_the_member_of_a_group_for_a_hash(bench: Bench) -> None:
    client = bench.client
    for member in (4, 5, 6):
        client.write("INSERT", client.entry("In.members", {"$ACTION_MEMBER_ID": member}, action="go", port=member))
    both: dict[str, Any] = {"_ACTION_MEMBER_ID": [4, 5, 6], "_ACTION_MEMBER_STATUS": [True, False, True]}
    client.write("INSERT", client.entry("In.groups", {"$SELECTOR_GROUP_ID": 1}, **both))
    client.write("INSERT", client.entry("In.spread", {"hdr.h.kind": 7}, _SELECTOR_GROUP_ID=1))
    for value in range(20):
        key = {"$SELECTOR_GROUP_ID": 1, "hash_value": CRCS["crc16"].of(bytes([value]))}
        (found,) = client.read(client.entry("In.groups_get_member", key))
        assert found["$ACTION_MEMBER_ID"] == bench.switch.process(1, bytes([7, value]))[0][0]
    for group in (2, (1 << 64) - 1):
        with pytest.raises(grpc.RpcError) as raised:
            client.read(client.entry("In.groups_get_member", {"$SELECTOR_GROUP_ID": group, "hash_value": 0}))
        assert f"group {group} does not exist" in errors(raised.value)[0][1]


@pytest.mark.parametrize("seed", range(30))
def test_the_switch_computes_what_the_model_computes(bench: Bench, seed: int) -> None:
    draw = random.Random(seed)
    width = draw.randint(8, 64)
    numbers = [draw.getrandbits(width) | 1 for _ in range(3)]
    reflected = draw.randint(0, 1)
    parts, bits = 0, 0
    count = draw.randint(1, 8)
    for at in range(count):
        length = draw.randint(1, 20)
        start = draw.randint(0, 24 - length)
        parts |= (start | bits << 16 | length << 32) << 64 * at
        bits += length * draw.randint(0, 1)
    cell = {
        "configured": 1, "identity": int(draw.random() < 0.2), "width": width, "reflected": reflected,
        "msb": draw.randint(0, 1), "extend": draw.randint(0, 1), "rotate": draw.randint(0, 100), "count": count,
        "bits": bits + 20, "slices": parts, "final": numbers[1], "initial": numbers[2],
        "polynomial": reflect(numbers[0], width) if reflected else numbers[0],
    }  # fmt: skip
    bench.switch.object_write("In.mix", 0, objects.packed(Hash, cell))
    for kind, value in ((draw.randrange(128), draw.randrange(256)) for _ in range(5)):
        expected = hash_of(cell, int.from_bytes(inputs(kind, value), "big"), 24, 48)
        assert hashed(bench, kind, value) == expected & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        ({"algorithm_name": "XOR"}, code_pb2.UNIMPLEMENTED, "XOR is not supported"),
        ({"algorithm_name": "CRC_32", "seed": 3}, code_pb2.UNIMPLEMENTED, "a seed is not supported"),
        ({"polynomial": 7}, code_pb2.INVALID_ARGUMENT, "hash_bit_width is missing"),
        ({"hash_bit_width": 8}, code_pb2.INVALID_ARGUMENT, "polynomial is missing"),
        ({"polynomial": 0x107, "hash_bit_width": 8}, code_pb2.INVALID_ARGUMENT, "numbers of so many bits"),
    ],
)
def test_wrong_algorithms_are_refused(bench: Bench, data: dict[str, Any], code: int, message: str) -> None:
    action = "pre_defined" if "algorithm_name" in data else "user_defined"
    ((found, text),) = refused(choose, bench.client, action, **data)
    assert (found, message in text) == (code, True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": [{"start_bit": 1}]}, "order is missing"),
        ({"kind": [{"order": 1, "start_bit": 3, "length": 5}]}, "bits 3 to 7; expected some of its 7 bits"),
        ({"kind": [{"order": 1}], "value": [{"order": 1}]}, "2 slices with order 1, of [7, 8] bits; expected two of"),
        ({"value": [{"order": 1, "start_bit": at, "length": 1} for at in range(3)]}, "3 slices with order 1"),
        ({"value": [{"order": 1, "length": 3}, {"order": 2, "start_bit": 2}]}, "two slices overlap"),
    ],
)
def test_wrong_slices_are_refused(bench: Bench, fields: dict[str, list[dict[str, int]]], message: str) -> None:
    ((code, text),) = refused(bench.client.write, "MODIFY", slices(bench.client, **fields))
    assert (code, message in text) == (code_pb2.INVALID_ARGUMENT, True)


def test_an_extended_hash_stays_that_of_the_program(tmp_path: Path) -> None:
    polynomial = "CRCPolynomial<bit<16>>(16w0x1021, true, false, true, 16w0xFFFF, 16w0) poly;"
    extended = f"{polynomial} Hash<bit<48>>(HashAlgorithm_t.CUSTOM, poly) mix;"
    text = INGRESS.replace("Hash<bit<48>>(HashAlgorithm_t.CRC32) mix;", extended)
    bench = Bench(compiled(tmp_path, INGRESS=text))
    try:
        ((code, message),) = refused(choose, bench.client, "pre_defined", algorithm_name="CRC_32")
        assert (code, "extended in the program" in message) == (code_pb2.UNIMPLEMENTED, True)
        once = CRC16.of(inputs(7, 200))
        assert hashed(bench, 7, 200) == once << 16 | once
    finally:
        bench.close()


def test_a_cell_of_any_bytes_reads_nothing_but_the_fields(bench: Bench) -> None:
    """Slices outside the fields are ignored, so that equal fields have equal hashes whatever the cell contains."""
    draw = random.Random(5)
    others = objects.packed(Hash, {})
    cells = [b"\xff" * len(others), b"\x01" + bytes(len(others) - 1)]
    cells += [b"\x01" + draw.randbytes(len(others) - 1) for _ in range(20)]
    found = []
    for cell in cells:
        bench.switch.object_write("In.mix", 0, cell)
        found.append(hashed(bench, 3, 7))
        assert [hashed(bench, 3, 7), hashed(bench, 0x83, 7)] == found[-1:] * 2
    assert len(set(found)) > 2
