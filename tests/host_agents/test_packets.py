"""Declared packets: decoding returns the encoded values in every layout, and each mistake gives one line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host_agents import headers
from host_agents.errors import PacketError
from host_agents.packets import (
    TO_NOTIFICATION_POINT,
    TO_REACTION_POINT,
    TO_TRANSPORT,
    Field,
    Header,
    Opcodes,
    Packet,
    Records,
)
from host_agents.registry import ProtocolInfo, protocols, resolve
from p4cc._link import connect, pair

# A record of six bytes with odd widths, as often as a field says, filled up to words.
LISTED = Packet(
    "listed",
    0xEC,
    (
        Header("listing", (Field("group", 12), Field("count", 4))),
        Records(Header("item", (Field("b", 17, initial=5), Field("state", 3), Field("x", 28))), "count", align_bytes=4),
        Header("tail", (Field("mark", 8),)),
    ),
    to=TO_NOTIFICATION_POINT,
)
# Eight records always; those not given have the fields' initial values.
EIGHT = Packet(
    "eight",
    0xE5,
    (
        Header("ask", (Field("response", 1), Field("leaving", 1), Field("reserved", 6), Field("epoch", 16))),
        Records(Header("slot", (Field("b", 32), Field("ignore", 1, initial=1), Field("reserved", 7))), 8),
    ),
    to=TO_NOTIFICATION_POINT,
    reply="response",
)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Header, dict[str, int]]:
    widths = draw(st.lists(st.integers(1, 90), min_size=1, max_size=8))
    widths.append(-sum(widths) % 8 or 8)
    fields = [Field(f"f{i}", bits) for i, bits in enumerate(widths)]
    values = {field.name: draw(st.integers(0, (1 << field.bits) - 1)) for field in fields}
    return Header("any", fields), values


@settings(deadline=None)
@given(layouts(), st.integers(0, 70), st.binary(max_size=9))
def test_any_layout_is_decoded_as_it_was_encoded(
    layout: tuple[Header, dict[str, int]], offset: int, after: bytes
) -> None:
    header, values = layout
    encoded = header.encode(values)
    bits = "".join(f"{values[field.name]:0{field.bits}b}" for field in header.fields)
    assert encoded == int(bits, 2).to_bytes(len(bits) // 8, "big")
    frame = bytes(offset) + encoded + after
    assert header.decode(frame, offset) == values
    assert {name: header.get(name, frame, offset) for name in values} == values


def test_every_byte_of_the_transports_headers() -> None:
    record = {"link_rate_code": 10, "timestamp_ns": 0x123456, "tx_units": 0x789AB, "queue_cells": 0xCDEF}
    shim = headers.WITH_INT.encode([record, {}], path_id=0x5A5)
    assert shim.hex() == "25a5" + "a123456789abcdef" + "00" * 8
    values = {"first_missing_psn": 0x040506, "map_psn": 0x070809, "map": 0x0A << 56 | 0xB}
    sack = headers.SACK.encode((), syndrome=0x1F, msn=0x010203, **values)
    assert sack.hex() == "1f010203" + "040506" + "070809" + "0a0000000000000b"
    bth = headers.BTH.encode({"opcode": 0xE8, "pad_count": 1, "becn": 1, "dest_qp": 7, "ack_request": 1, "psn": 9})
    assert bth.hex() == "e810ffff4000000780000009"
    assert headers.CNP.encode() == bytes(16)
    assert headers.NACK.encode() == headers.TRIMMED.encode() == b""


def test_records_are_counted_and_filled_up() -> None:
    items = [{"state": 2, "x": 7}, {"b": 1, "state": 0, "x": 0xFFFFFFF}, {"x": 1}]
    body = LISTED.encode(items, group=0xABC, mark=9)
    assert len(body) == 2 + 18 + 2 + 1
    assert body[:2] == b"\xab\xc3"
    assert body[-3:] == b"\0\0\x09"
    frame = bytes(54) + body
    assert LISTED.fits(frame, 54)
    assert LISTED.decode(frame, 54) == {"group": 0xABC, "count": 3, "mark": 9}
    assert LISTED.decode_records(frame, 54) == [{"b": 5, "state": 0, "x": 0, **item} for item in items]


@given(st.integers(0, 22))
def test_what_is_cut_off_does_not_fit(length: int) -> None:
    frame = bytes(54) + LISTED.encode([{}, {}, {}], group=1, mark=2)[:length]
    assert not LISTED.fits(frame, 54)
    with pytest.raises(PacketError, match=r"listed: .* bytes after the BTH are too few"):
        LISTED.decode(frame, 54)


def test_a_fixed_number_of_records() -> None:
    body = EIGHT.encode([{"b": 3, "ignore": 0}], leaving=1, epoch=13)
    assert len(body) == EIGHT.size_bytes == 3 + 8 * 5
    assert EIGHT.decode_records(body, 0) == [
        {"b": 3, "ignore": 0, "reserved": 0},
        *[{"b": 0, "ignore": 1, "reserved": 0}] * 7,
    ]
    with pytest.raises(PacketError, match="9 records; expected at most 8"):
        EIGHT.encode([{}] * 9)


def test_a_limit_on_the_records() -> None:
    limited = Packet(
        "limited", 0xEC, (Header("n", (Field("count", 8),)), Records(headers.INT_RECORD, "count", limit=2))
    )
    assert limited.fits(limited.encode([{}, {}]), 0)
    assert not limited.fits(b"\x03" + bytes(24), 0)
    with pytest.raises(PacketError, match="3 records; expected at most 2"):
        limited.encode([{}] * 3)


def test_a_header_between_bth_and_what_data_packets_carry() -> None:
    speculative = Packet("speculative", 0xF0, (Header("spec", (Field("epoch", 16),)),), opcodes=6, wraps=True)
    run = Opcodes({"the transport": headers.TRANSPORT, "mine": (speculative,)})
    assert [run.find(opcode) for opcode in (0xEF, 0xF0, 0xF5, 0xF6)] == [None, speculative, speculative, None]
    assert run.all()[-2:] == [speculative, headers.CUMULATIVE]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Field("Rate", 8), "field 'Rate': expected a name in lower case"),
        (lambda: Field("rate", 0), "field rate: 0 bits"),
        (lambda: Field("rate", 2, values={4: "four"}), "field rate: 4 does not fit 2 bits"),
        (lambda: Header("h", (Field("a", 7),)), "header h: 7 bits; expected whole bytes"),
        (lambda: Header("h", (Field("a", 4), Field("a", 4))), "header h: two fields a"),
        (lambda: Packet("p", 0x100), "packet p: opcode 0x100"),
        (lambda: Packet("p", 0xE8, (headers.AETH, headers.AETH)), "packet p: two fields syndrome"),
        (lambda: Packet("p", 0xE8, (Records(headers.AETH, "count"),)), "packet p: no field 'count' counts the records"),
        (lambda: Packet("p", 0xE8, (headers.AETH,), reply="msn"), "packet p: no field 'msn' of one bit"),
        (lambda: Packet("p", 0xE8, (Records(headers.AETH, 2),) * 2), "packet p: records twice"),
        (lambda: LISTED.encode(grup=1), "packet listed has no field 'grup'; expected one of: group, count, mark"),
        (lambda: LISTED.encode(group=4096), "header listing: group = 4096 does not fit 12 bits"),
        (lambda: LISTED.get("mark", bytes(99), 0), "packet listed has no field 'mark'; expected one of: group, count"),
        (lambda: headers.NACK.encode([{}]), "packet NACK: it has no records"),
    ],
)
def test_mistakes(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(PacketError) as caught:
        declare()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_reply_goes_to_the_other_side() -> None:
    frame = bytes(54) + EIGHT.encode()
    assert EIGHT.side(frame, 54) == TO_NOTIFICATION_POINT
    assert EIGHT.side(bytes(54) + EIGHT.encode(response=1), 54) == TO_REACTION_POINT
    assert EIGHT.fits(frame, 54)
    assert not EIGHT.fits(frame[:-1], 54)
    assert headers.NACK.side(bytes(54), 54) == TO_TRANSPORT


@pytest.mark.parametrize("value", [0, 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("bits", [63, 64])
def test_the_longest_fields_that_one_read_gets(bits: int, value: int) -> None:
    rest = (Field("rest", 64 - bits),) if bits < 64 else ()
    header = Header("long", (*rest, Field("value", bits)))
    value %= 2**bits
    frame = bytes(54) + header.encode({"value": value})
    assert header.places["value"].get(frame, 54) == value
    assert header.places["value"].get(frame[54:], 0) == value


def clashing(name: str, *packets: Packet) -> ProtocolInfo:
    return dataclasses.replace(protocols()["dctcp"], name=name, packets=packets)


def test_an_opcode_is_unique_within_a_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mine` uses the opcode of ACCurate's packet, which is allowed alone but not beside ACCurate."""
    known = {**protocols(), "mine": clashing("mine", Packet("probe", 0xE8, to=TO_REACTION_POINT))}
    monkeypatch.setattr("host_agents.registry._protocols", known)
    a, b = pair("mine")
    connect(a, b, 1)
    with pytest.raises(PacketError) as caught:
        a.open_qp("10.0.0.3", 2, 2, protocol=resolve("accurate"))
    assert str(caught.value) == "opcode 0xe8 is wanted twice: by 'probe' of mine and by 'FRP' of accurate"
    assert list(a.queue_pairs) == [1]


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        (0xE1, "opcode 0xe1 is wanted twice: by 'SACK with INT' of the transport and by 'probe' of mine"),
        (0xC3, "packet 'probe' of mine: opcode 0xc3; expected 0xe4 to 0xfe"),
    ],
)
def test_a_protocol_cannot_take_what_is_the_transports(
    opcode: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {**protocols(), "mine": clashing("mine", Packet("probe", opcode))}
    monkeypatch.setattr("host_agents.registry._protocols", known)
    with pytest.raises(PacketError) as caught:
        pair("mine")
    assert str(caught.value) == message


def test_the_nic_counts_a_packet_that_is_cut_off_as_malformed() -> None:
    a, b = pair("accurate")
    qa, _ = connect(a, b)
    frame = qa.frames.control_frame(0xE8, bytes(11))
    b.receive(0, frame)
    assert b.stats.malformed == 1
    assert b.next_frame(0) is None


def test_a_catalog_lists_packets_that_want_the_same_opcode_and_knows_the_last() -> None:
    first, second, listed = Packet("first", 0xE8), Packet("second", 0xE8), Packet("listed", 0xE4)
    catalog = Opcodes({"mine": (first,), "yours": (second, listed)}, catalog=True)
    assert catalog.all() == [listed, first, second]
    assert catalog.find(0xE8) is second
    assert catalog.joined(Opcodes({"theirs": (Packet("third", 0xE8),)})).catalog
