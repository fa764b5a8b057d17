"""Dynamic key masks: the bits of exact keys that a table ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.compiler import Compiled
from p4switch.compiler.diagnostics import CompileError
from p4switch.p4runtime.messages import code_pb2, p4runtime_pb2
from tests.p4switch.architectures.tofino import compiled
from tests.p4switch.bfrt.conftest import Bench, Client
from tests.p4switch.bfrt.test_server import refused

INGRESS = """
    action go(bit<9> port) { tm.ucast_egress_port = port; }
    @dynamic_table_key_masks(1) table masked {
        key = {
            hdr.h.kind : exact; hdr.h.value[5:0] : exact; hdr.h.isValid() : exact;
            hdr.wide.a ++ hdr.wide.b ++ hdr.wide.a : exact @name("wide");
        }
        actions = { go; }
        default_action = go(9);
        size = 4;
    }
    apply { hdr.wide.setValid(); hdr.wide.a = 1; hdr.wide.b = 2; masked.apply(); masked.apply(); }
"""
KEY = {"hdr.h.kind": 7, "hdr.h.value[5:0]": 0x15, "hdr.h.$valid": 1, "wide": 1 << 64 | 2 << 32 | 1}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("masks"), INGRESS=INGRESS)


def put(client: Client, port: int = 3, **changes: int) -> None:
    client.write("INSERT", entry(client, port, **changes))


def entry(client: Client, port: int, **changes: int) -> Message:
    named = {"kind": "hdr.h.kind", "value": "hdr.h.value[5:0]"}
    return client.entry("In.masked", KEY | {named[name]: value for name, value in changes.items()}, "go", port=port)


def set_masks(client: Client, **masks: int) -> None:
    """Set the masks of the fields `kind`, `value`, `valid` and `wide`. Fields without a mask are ignored."""
    request = bfruntime_pb2.WriteRequest()
    request.target.pipe_id = 0xFFFF
    attribute = request.updates.add(type="INSERT").entity.table_attribute
    attribute.table_id = client.tables["In.masked"]["id"]
    attribute.dyn_key_mask.SetInParent()
    for info, (name, length) in zip(
        client.tables["In.masked"]["key"], (("kind", 1), ("value", 1), ("valid", 1), ("wide", 12)), strict=True
    ):
        if name in masks:
            attribute.dyn_key_mask.fields.add(field_id=info["id"], mask=masks[name].to_bytes(length, "big"))
    client.call("Write", request, bfruntime_pb2.WriteResponse)


def ports(bench: Bench, *packets: tuple[int, int]) -> list[int]:
    return [bench.switch.process(1, bytes(packet))[0][0] for packet in packets]


def test_at_first_all_bits_count(bench: Bench) -> None:
    put(bench.client)
    assert ports(bench, (7, 0xD5), (6, 0xD5), (7, 0xD4)) == [3, 9, 9]
    fields = bench.client.attribute("In.masked", "dyn_key_mask").fields
    assert [int.from_bytes(each.mask, "big") for each in fields] == [0xFF, 0x3F, 1, (1 << 96) - 1]


def test_masked_bits_are_ignored_in_packets_and_in_entries(bench: Bench) -> None:
    client = bench.client
    set_masks(client, kind=0xFC, valid=1, wide=(1 << 64) - 1)
    put(client)
    assert ports(bench, (4, 0), (7, 0xFF), (8, 0xD5)) == [3, 3, 9]
    ((code, _),) = refused(put, client, kind=5, value=1)
    assert code == code_pb2.ALREADY_EXISTS
    (found,) = client.read(client.entry("In.masked"))
    assert (found["hdr.h.kind"], found["hdr.h.value[5:0]"], found["wide"]) == ((4,), (0,), (2 << 32 | 1,))


def test_entries_of_p4runtime_are_masked_too(bench: Bench) -> None:
    """An entry with ignored bits matches packets without them, and BfRuntime finds it."""
    client = bench.client
    set_masks(client, kind=0xFC, value=0x3F, valid=1, wide=(1 << 96) - 1)
    put(client)
    query = p4runtime_pb2.Entity()
    query.table_entry.table_id = bench.p4info.tables[0].preamble.id
    (found,) = bench.p4runtime.read([query])
    client.write("DELETE", client.entry("In.masked"))
    found.table_entry.match[0].exact.value = b"\x07"
    bench.p4runtime.write([p4runtime_pb2.Update(type=p4runtime_pb2.Update.INSERT, entity=found)])
    assert ports(bench, (4, 0xD5), (7, 0xD5), (8, 0xD5)) == [3, 3, 9]
    (read,) = client.read(client.entry("In.masked"))
    assert read["hdr.h.kind"] == (4,)


def test_a_wide_field_is_masked_in_all_its_parts(bench: Bench) -> None:
    client = bench.client
    set_masks(client, kind=0xFF, value=0x3F, valid=1, wide=1 << 64)
    put(client)
    assert ports(bench, (7, 0xD5)) == [3]
    client.write("DELETE", client.entry("In.masked"))
    set_masks(client, kind=0xFF, value=0x3F, valid=1, wide=1 << 65)
    client.write("INSERT", client.entry("In.masked", KEY | {"wide": 1 << 65}, "go", port=3))
    assert ports(bench, (7, 0xD5)) == [9]


def test_masks_of_a_table_with_entries_stay(bench: Bench) -> None:
    client = bench.client
    put(client)
    ((code, message),) = refused(set_masks, client, kind=0xFF)
    assert (code, "the table has entries" in message) == (code_pb2.FAILED_PRECONDITION, True)
    assert ports(bench, (7, 0xD5), (7, 0)) == [3, 9]


def test_a_mask_has_the_field_s_width(bench: Bench) -> None:
    ((code, message),) = refused(set_masks, bench.client, value=0x40)
    assert (code, "0x40 does not fit in 6 bits" in message) == (code_pb2.INVALID_ARGUMENT, True)


def test_only_exact_keys_have_masks(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="has to have exact keys only"):
        compiled(tmp_path, INGRESS=INGRESS.replace("hdr.h.kind : exact", "hdr.h.kind : lpm"))
