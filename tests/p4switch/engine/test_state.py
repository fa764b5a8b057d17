"""Counters, meters, registers, random numbers, digests, action profiles, queue metadata."""

import binascii
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from p4switch.bmv2 import read
from p4switch.engine import build_traced, load
from p4switch.trace import Decoder, Trace, events
from tests.p4switch.engine.jsonbuilder import ProgramBuilder, assign, call, const, field, named, op, param, sm

Json = Any


def header_program(*fields: tuple[str, int]) -> ProgramBuilder:
    b = ProgramBuilder()
    b.header_type("h_t", *fields)
    b.header("h", "h_t")
    b.state("start", b.extract("h"))
    return b


def test_counter() -> None:
    b = header_program(("i", 8))
    b.rest["counter_arrays"] = [{"name": "c", "id": 0, "size": 3, "is_direct": False}]
    b.run([call("count", named("counter_array", "c"), field("h", "i"))])
    switch = b.switch()
    for i in (0, 2, 2, 3, 255):  # out of bounds counts nothing
        switch.process(0, bytes([i]) + bytes(9))
    assert [switch.counter_read("c", i) for i in range(3)] == [(1, 10), (0, 0), (2, 20)]
    switch.counter_write("c", 1, 5, 6)
    assert switch.counter_read("c", 1) == (5, 6)
    assert np.frombuffer(switch.counter_packets("c", 2), np.int64).tolist() == [1, 5]
    assert switch.counter_packets("c", 0) == b""
    with pytest.raises(ValueError, match="counter c has 3 cells; there is no cell 3"):
        switch.counter_packets("c", 4)
    with pytest.raises(ValueError, match="no cell 3"):
        switch.counter_read("c", 3)
    with pytest.raises(ValueError, match="no counter"):
        switch.counter_read("d", 0)
    switch.reset()
    assert switch.counter_read("c", 2) == (0, 0)


@pytest.mark.parametrize("width", [1, 8, 13, 32, 48, 64, 65, 128, 200])
def test_register(width: int) -> None:
    pad = -width % 8 or 8
    b = header_program(("i", 8), ("v", width), ("pad", pad))
    b.rest["register_arrays"] = [{"name": "r", "id": 0, "size": 4, "bitwidth": width}]
    array = named("register_array", "r")
    b.header_type("m_t", ("old", width))
    b.header("m", "m_t", metadata=True)
    # Exchanges the packet's value and the register's.
    b.run([call("register_read", field("m", "old"), array, field("h", "i")),
           call("register_write", array, field("h", "i"), field("h", "v")), assign(field("h", "v"), field("m", "old"))])
    switch = b.switch()
    nbytes = (width + 7) // 8
    ones = (1 << width) - 1

    def exchange(index: int, value: int) -> int:
        frame = bytes([index]) + (value << pad).to_bytes((width + pad) // 8, "big")
        return int.from_bytes(switch.process(0, frame)[0][1][1:], "big") >> pad

    switch.register_write("r", 3, (ones // 3).to_bytes(nbytes, "big"))
    assert exchange(3, ones) == ones // 3
    assert exchange(3, 0) == ones
    assert exchange(0, 1) == 0
    assert exchange(4, 1) == 0  # out of bounds: neither read nor written
    assert switch.register_read("r", 0) == (1).to_bytes(nbytes, "big")
    for index, value in ((4, bytes(nbytes)), (0, bytes(nbytes + 1)), (0, b"\xff" * nbytes if width % 8 else b"")):
        with pytest.raises(ValueError, match="register r"):
            switch.register_write("r", index, value)


def test_registers_of_one_size_lie_side_by_side_and_apart() -> None:
    """Compare arrays of five widths, four of one size, with a dictionary: packets and control planes access them."""
    sizes = {1: 4, 200: 4, 13: 4, 64: 4, 32: 5}
    b = header_program(("i", 8), *((f"v{width}", width) for width in sizes), ("pad", 2))
    b.rest["register_arrays"] = [
        {"name": f"r{width}", "id": n, "size": size, "bitwidth": width} for n, (width, size) in enumerate(sizes.items())
    ]
    b.run([
        call("register_write", named("register_array", f"r{width}"), field("h", "i"), field("h", f"v{width}"))
        for width in sizes
    ])
    switch = b.switch()
    random = np.random.default_rng(1)
    cells = {(width, index): 0 for width, size in sizes.items() for index in range(size)}
    for _ in range(200):
        index, bits = int(random.integers(6)), int.from_bytes(random.bytes(39), "big") & ~3
        switch.process(0, bytes([index]) + bits.to_bytes(39, "big"))
        below = 312
        for width in sizes:
            below -= width
            if (width, index) in cells:
                cells[width, index] = bits >> below & (1 << width) - 1
        width, index = list(cells)[random.integers(len(cells))]
        cells[width, index] ^= 1
        switch.register_write(f"r{width}", index, cells[width, index].to_bytes((width + 7) // 8, "big"))
        for (width, index), value in cells.items():
            assert int.from_bytes(switch.register_read(f"r{width}", index), "big") == value
    switch.reset()
    assert not any(any(switch.register_read(f"r{width}", index)) for width, index in cells)


def meter_program(kind: str) -> Any:
    b = header_program(("i", 8), ("color", 8))
    b.rest["meter_arrays"] = [{"name": "m", "id": 0, "type": kind, "rate_count": 2, "size": 2, "is_direct": False}]
    b.run([call("execute_meter", named("meter_array", "m"), field("h", "i"), field("h", "color"))])
    return b.switch(tick_ns=1000)


def color(switch: Any, now: int, length: int = 100, index: int = 0) -> int:
    out: bytes = switch.process(0, bytes([index, 9]) + bytes(length - 2), now=now)[0][1]
    return out[1]


def test_meter_of_packets() -> None:
    switch = meter_program("packets")
    assert [color(switch, 0) for _ in range(3)] == [0, 0, 0]  # not configured: always green
    # The committed rate is 10 per second with bursts of 2, the peak rate 100 per second with bursts of 5.
    switch.meter_set("m", 0, (10, 2, 100, 5))
    assert [color(switch, 0) for _ in range(7)] == [0, 0, 1, 1, 1, 2, 2]
    assert color(switch, 9_999) == 2  # ticks are microseconds
    assert color(switch, 10_000) == 1  # one token of the peak rate
    assert [color(switch, 110_000) for _ in range(7)] == [0, 1, 1, 1, 1, 2, 2]
    assert color(switch, 110_000, index=1) == 0
    assert color(switch, 110_000, index=2) == 9  # out of bounds: not written
    switch.meter_set("m", 0, None)
    assert color(switch, 110_000) == 0
    with pytest.raises(ValueError, match="peak"):
        switch.meter_set("m", 0, (2, 1, 1, 1))
    with pytest.raises(ValueError, match="no cell"):
        switch.meter_set("m", 2, None)


def test_meter_of_bytes() -> None:
    switch = meter_program("bytes")
    switch.meter_set("m", 0, (1000, 150, 10_000, 250))
    assert [color(switch, 0) for _ in range(3)] == [0, 1, 2]
    assert color(switch, 10_000, 50) == 0  # a packet that does not fit takes nothing: 50 of 150 were left
    assert color(switch, 10_000, 51) == 1  # 10 ms bring 10 bytes committed, 100 bytes peak


def test_direct_meter() -> None:
    b = header_program(("i", 8), ("color", 8))
    b.rest["meter_arrays"] = [{"name": "m", "id": 0, "type": "packets", "rate_count": 2, "size": 9, "is_direct": True,
                               "binding": "t", "result_target": ["h", "color"]}]
    nothing = b.action("nothing", [])
    b.table("t", [("exact", field("h", "i"))], [nothing], default=nothing, direct_meters="m")
    switch = b.switch()
    handles = [switch.table_add("t", [(bytes([i]), b"")], 0, ("action", "nothing", [])) for i in range(20)]
    switch.direct_meter_set("t", handles[17], (0, 1, 0, 2))
    assert [color(switch, 0, index=17) for _ in range(4)] == [0, 1, 2, 2]
    assert color(switch, 0, index=16) == 0
    assert color(switch, 0, index=99) == 9  # a miss does not run the meter
    with pytest.raises(ValueError, match="no entry"):
        switch.direct_meter_set("t", 20, None)


def test_random_is_within_bounds_and_repeats_with_the_seed() -> None:
    b = header_program(("low", 16), ("high", 16), ("r", 64))
    b.run([call("modify_field_rng_uniform", field("h", "r"), field("h", "low"), field("h", "high"))])

    def draw(switch: Any, low: int, high: int) -> int:
        frame = low.to_bytes(2, "big") + high.to_bytes(2, "big") + b"\xee" * 8
        return int.from_bytes(switch.process(0, frame)[0][1][4:], "big")

    one, same, other = b.switch(seed=1), b.switch(seed=1), b.switch(seed=2)
    first = [draw(one, 10, 19) for _ in range(2000)]
    assert set(first) == set(range(10, 20))
    assert max(first.count(n) for n in range(10, 20)) < 300
    assert [draw(same, 10, 19) for _ in range(2000)] == first
    assert [draw(other, 10, 19) for _ in range(2000)] != first
    assert draw(one, 7, 7) == 7
    assert draw(one, 8, 7) == 0xEEEEEEEEEEEEEEEE  # nothing is drawn from an empty range
    one.reset()
    assert [draw(one, 10, 19) for _ in range(2000)] == first


def test_digest() -> None:
    b = header_program(("a", 12), ("b", 4), ("c", 72))
    b.rest["learn_lists"] = [{"id": 1, "name": "d", "elements": [field("h", "a"), sm("ingress_port"), field("h", "c")]}]
    b.run([call("generate_digest", const(1), const(1))])
    switch = b.switch()
    assert switch.digests() == []
    frame = bytes.fromhex("abcd") + bytes(range(9))
    switch.process(300, frame)
    switch.process(1, frame)
    data = bytes.fromhex("0abc"), bytes(range(9))
    assert switch.digests() == [(1, data[0] + b"\1\x2c" + data[1]), (1, data[0] + b"\0\1" + data[1])]
    assert switch.digests() == []
    for _ in range(65536 + 3):
        switch.process(1, frame)
    assert switch.lost_digests == 3
    assert len(switch.digests()) == 65536
    switch.process(1, frame)
    assert (len(switch.digests()), switch.lost_digests) == (1, 3)


# --- hashes ---


def crc16(data: bytes) -> int:
    """Return CRC-16/ARC."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def csum16(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[i:i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def xor16(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = 0
    for i in range(0, len(data), 2):
        total ^= int.from_bytes(data[i:i + 2], "big")
    return total


HASHES: dict[str, Callable[[bytes], int]] = {
    "crc16": crc16, "crc16_custom": crc16, "crc32": binascii.crc32, "crc32_custom": binascii.crc32, "csum16": csum16,
    "xor16": xor16, "identity": lambda data: int.from_bytes(data[:8], "big"),
    "crcCCITT": lambda data: binascii.crc_hqx(data, 0xFFFF),
}


@pytest.mark.parametrize("algorithm", HASHES)
def test_hash(algorithm: str) -> None:
    """Check hashes of absent headers' fields, metadata, constants and parts of bytes."""
    b = ProgramBuilder()
    b.header_type("h_t", ("a", 48), ("b", 16), ("c", 12), ("d", 4), ("e", 24))
    b.header_type("o_t", ("whole", 64), ("bits", 64), ("small", 64), ("payload", 64))
    b.header_type("m_t", ("port", 16), ("wide", 72))
    b.header("h", "h_t", emit=False)
    b.header("o", "o_t")
    b.header("m", "m_t", metadata=True)
    b.state("start", b.extract("h"))
    whole = [field("h", "a"), field("h", "b"), field("m", "port"), field("m", "wide"), field("h", "e"),
             {"type": "hexstr", "value": "0xabcd", "bitwidth": 16}]
    bits = [field("h", "d"), {"type": "hexstr", "value": "0x15", "bitwidth": 5}, field("h", "c"), field("m", "wide")]
    b.rest["calculations"] = [
        {"name": name, "id": i, "algo": algorithm, "input": items}
        for i, (name, items) in enumerate({"whole": whole, "bits": bits,
                                           "payload": [field("h", "e"), {"type": "payload", "value": None}]}.items())
    ]
    b.run([call("add_header", {"type": "header", "value": "o"}), assign(field("m", "port"), const(0x1234)),
           assign(field("m", "wide"), const(0x112233445566778899))])

    def hashed(target: str, name: str, size: int) -> Json:
        return call("modify_field_with_hash_based_offset", field("o", target), const(5), named("calculation", name),
                    const(size))

    b.run([hashed("whole", "whole", 1 << 63), hashed("bits", "bits", 1 << 63), hashed("small", "whole", 10),
           hashed("payload", "payload", 1 << 63)])
    present = b.switch()
    b.actions[0]["primitives"].append(call("remove_header", {"type": "header", "value": "h"}))
    absent = b.switch()
    frame = bytes.fromhex("0102030405060708090a0b0c0d")
    wide, port = bytes.fromhex("112233445566778899"), b"\x12\x34"
    rest = b"some payload"
    function = HASHES[algorithm]
    bit_string = f"{frame[9] & 15:04b}"
    bit_string += "10101" + f"{frame[8] << 4 | frame[9] >> 4:012b}" + f"{int.from_bytes(wide, 'big'):072b}"
    bit_string += "0" * (-len(bit_string) % 8)
    expected = {
        present: (frame[:8] + port + wide + frame[10:] + b"\xab\xcd",
                  int(bit_string, 2).to_bytes(len(bit_string) // 8, "big"), frame[10:] + rest),
        absent: (port + wide + b"\xab\xcd",
                 (int("10101" + f"{int.from_bytes(wide, 'big'):072b}" + "000", 2)).to_bytes(10, "big"), rest),
    }
    for switch, (all_bytes, packed, with_payload) in expected.items():
        out = switch.process(0, frame + rest)[0][1]
        found = [int.from_bytes(out[i:i + 8], "big") for i in range(0, 32, 8)]
        top = (1 << 63) - 1
        assert found == [(function(all_bytes) & top) + 5, (function(packed) & top) + 5, function(all_bytes) % 10 + 5,
                         (function(with_payload) & top) + 5]


@pytest.mark.parametrize("update", [True, False])
def test_checksum(update: bool) -> None:
    b = ProgramBuilder()
    b.header_type("h_t", ("a", 16), ("sum", 16), ("b", 32), ("go", 8), ("ok", 8))
    b.header("h", "h_t")
    b.state("start", b.extract("h"))
    b.rest["calculations"] = [{"name": "c", "id": 0, "algo": "csum16",
                               "input": [field("h", "a"), field("h", "b"), {"type": "payload", "value": None}]}]
    b.rest["checksums"] = [{"name": "s", "id": 0, "target": ["h", "sum"], "type": "generic", "calculation": "c",
                            "verify": not update, "update": update,
                            "if_cond": op("==", field("h", "go"), const(1))}]
    b.run([assign(field("h", "ok"), sm("checksum_error"))])
    switch = b.switch()
    payload = b"odd"
    right = csum16(b"\1\2\3\4\5\6" + payload).to_bytes(2, "big")
    for go, given, error, leaves in ((1, right, 0, right), (1, b"\7\7", 1, right), (0, b"\7\7", 0, b"\7\7")):
        out = switch.process(0, b"\1\2" + given + b"\3\4\5\6" + bytes([go, 9]) + payload)[0][1]
        assert out[2:4] == (leaves if update else given)
        assert out[9] == (0 if update else error)


# --- action profiles ---


def profile_program(selector: bool) -> ProgramBuilder:
    b = header_program(("i", 8), ("x", 16), ("out", 8))
    act = b.action("act", [assign(field("h", "out"), param(0))], v=8)
    profile: Json = {"name": "p", "id": 0, "max_size": 4}
    if selector:
        profile["selector"] = {"algo": "crc16", "input": [field("h", "x")]}
    b.profiles = [profile]
    b.table("t", [("exact", field("h", "i"))], [act], type="indirect_ws" if selector else "indirect",
            action_profile="p")
    return b


def test_members_and_groups() -> None:
    switch = profile_program(True).switch()

    def out(i: int, x: int = 0) -> int:
        return switch.process(0, bytes([i]) + x.to_bytes(2, "big") + b"\xff")[0][1][3]

    members = [switch.member_add("p", "act", [bytes([10 + i])]) for i in range(4)]
    with pytest.raises(OverflowError, match="full"):
        switch.member_add("p", "act", [b"\0"])
    group = switch.group_add("p")
    switch.table_add("t", [(b"\1", b"")], 0, ("member", members[2]))
    switch.table_add("t", [(b"\2", b"")], 0, ("group", group))
    assert out(1) == 12
    assert out(2) == 0xFF  # an empty group: as if the table had no entry
    assert out(3) == 0xFF
    # The hash picks among the members in the order of their handles; a member may be there several times.
    switch.group_set("p", group, [members[3], members[1], members[3]])
    pick = [11, 13, 13]
    assert [out(2, x) for x in range(50)] == [pick[crc16(x.to_bytes(2, "big")) % 3] for x in range(50)]
    switch.member_modify("p", members[1], "act", [b"\x63"])
    pick[0] = 99
    assert [out(2, x) for x in range(50)] == [pick[crc16(x.to_bytes(2, "big")) % 3] for x in range(50)]
    for member in (members[1], members[2]):
        with pytest.raises(ValueError, match="in use"):
            switch.member_delete("p", member)
    with pytest.raises(ValueError, match="in use"):
        switch.group_delete("p", group)
    switch.table_set_default("t", ("member", members[0]))
    assert out(3) == 10
    switch.table_set_default("t", None)
    assert out(3) == 0xFF
    switch.table_modify("t", 1, ("member", members[0]))
    switch.group_delete("p", group)
    switch.member_delete("p", members[1])
    for bad in (("member", members[1]), ("group", group), ("member", 77), ("action", "act", [b"\0"])):
        with pytest.raises(ValueError, match=r".+"):
            switch.table_add("t", [(b"\7", b"")], 0, bad)
    assert switch.member_add("p", "act", [b"\1"]) == members[1]
    switch.reset()
    assert out(1) == 0xFF


def test_profile_without_selector_has_no_groups() -> None:
    switch = profile_program(False).switch()
    with pytest.raises(ValueError, match="no selector"):
        switch.group_add("p")


# --- queue metadata, time, trace ---


def test_metadata_of_time_and_queue() -> None:
    fields = (("in_time", 48), ("out_time", 48), ("enq", 32), ("delta", 32), ("depth", 19), ("left", 19), ("pad", 2))
    b = header_program(*fields)
    b.run([assign(field("h", "in_time"), sm("ingress_global_timestamp")), assign(sm("mcast_grp"), const(1))])
    b.run([assign(field("h", "out_time"), sm("egress_global_timestamp")),
           assign(field("h", "enq"), sm("enq_timestamp")),
           assign(field("h", "delta"), sm("deq_timedelta")), assign(field("h", "depth"), sm("enq_qdepth")),
           assign(field("h", "left"), sm("deq_qdepth"))], "egress")
    switch = b.switch()
    switch.multicast_set(1, [(1, 0), (2, 0), (3, 0)])
    now = 0x123456789ABC
    out = switch.process(0, bytes(25), now=now)
    times = 2 * now.to_bytes(6, "big") + (now & 0xFFFFFFFF).to_bytes(4, "big") + bytes(4)
    assert [f[:20] for _, f in out] == [times] * 3
    depths = [int.from_bytes(f[20:25], "big") >> 2 for _, f in out]
    assert [(d >> 19, d & (1 << 19) - 1) for d in depths] == [(0, 2), (1, 1), (2, 0)]


def test_trace_tells_what_happened() -> None:
    b = header_program(("i", 8))
    nothing = b.action("nothing", [call("log_msg", {"type": "string", "value": "100% {} of {}"},
                                       {"type": "parameters_vector", "value": [field("h", "i"), const(-2)]})])
    b.table("t", [("exact", field("h", "i"))], [nothing], default=nothing)
    b.run([call("assert", op("!=", field("h", "i"), const(9)))])
    document = b.json()
    traced = build_traced(read(document))
    switch = load().Switch(str(traced.library))
    switch.process(3, b"\5\0")
    assert switch.traced() == ([], 0)  # tracing is off
    switch.set_tracing(True)
    handle = switch.table_add("t", [(b"\5", b"")], 0, ("action", "nothing", []))
    switch.process(3, b"\5\0", now=1)
    trace = Trace(Decoder(traced)(switch.traced()[0]))
    assert [type(event).__name__ for event in trace[:3]] == ["Received", "StateEntered", "Extracted"]
    (applied,) = trace.of(events.TableApplied)
    assert (applied.table, applied.entry, applied.key[0].value, applied.key[0].match) == ("t", handle, 5, "0x05")
    assert [event.text for event in trace.of(events.Logged)] == ["100% 5 of -2"]
    assert [type(event).__name__ for event in trace[-2:]] == ["Emitted", "Transmitted"]
    assert (trace.of(events.Transmitted)[0].port, trace.of(events.Received)[0].packet) == (0, 1)
    assert switch.failed_asserts == 0
    switch.process(3, b"\x09")
    assert switch.failed_asserts == 1
    failed = Trace(Decoder(traced)(switch.traced()[0]))
    assert [event.failed for event in failed.of(events.Logged)] == [False, True]
    switch.set_tracing(False)
    switch.process(3, b"\5\0")
    assert switch.traced() == ([], 0)
