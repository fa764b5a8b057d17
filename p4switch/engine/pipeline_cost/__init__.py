"""Benchmark of generated pipelines: CPU time per packet of ecn.p4 and int.p4, compared with hand-written C.

All pipelines run behind the interface of switch.h, without traffic manager: a frame enters, the packet goes directly
from ingress to egress, and a frame leaves. There are 64 flows, 33 routes of three prefix lengths, and ECMP over four
ports. Further loads are contributions to a sum (collective.p4), control packets (sperc.p4), and data packets without
tokens and with tokens while the table of deflected flows is full (dart.p4).

A processor can be slow during a whole measurement. Loads to be compared are therefore measured in alternating turns of
about a millisecond, and the fastest turn of each load counts. Ratios of these times are reproducible to a few
hundredths.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p4switch import engine, ir, native
from p4switch.compiler import types

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

_BASELINE_C = Path(__file__).parent / "baseline.c"
_FLOWS = 64
_ROUNDS = 100  # packets in a turn
_TURNS = 300
_INT_RECORDS = 2  # number of records of earlier hops in the frames for int.p4
_CHILDREN = 8
_OPERATIONS = 512  # number of sums in the slots at a time
_INTERLEAVED = 64  # number of sums in progress at the same time


@dataclass(frozen=True)
class Load:
    """Pipeline to measure.

    `packets` returns the packets of a turn, given the number of the turn. A turn sends them
    `rounds` times, and `forwarded` packets leave each time. `check` raises RuntimeError if the
    packets did not take the path to be measured.
    """

    switch: "Switch"
    packets: Callable[[int], list[bytes]]
    forwarded: int
    rounds: int = _ROUNDS
    check: Callable[[int], None] = lambda turns: None


def measure(loads: Mapping[str, Load], turns: int = _TURNS) -> dict[str, float]:
    """Return the CPU time of each load for ingress and egress, in nanoseconds per packet, of its fastest turn.

    Raises RuntimeError if a pipeline does not forward the expected number of packets.
    """
    best = dict.fromkeys(loads, float("inf"))
    for turn in range(turns):
        for name, load in loads.items():
            packets = load.packets(turn)
            seconds, sent = load.switch.measure(5, packets, load.rounds)
            if sent != load.rounds * load.forwarded:
                raise RuntimeError(f"{name}: {sent} packets of {load.rounds * load.forwarded} were forwarded")
            best[name] = min(best[name], seconds * 1e9 / (load.rounds * len(packets)))
    for load in loads.values():
        load.check(turns)
    return best


def forwarding(name: str, program: ir.Program) -> dict[str, Load]:
    """Return the loads of a program. Their frames have telemetry if the program is int.p4.

    The loads are the pipeline itself, an equivalent program "by hand" in C, and "silent": the pipeline
    built for tracing, with tracing off.
    """
    generated, baseline, packets = _set_up(name, program)
    tracing = engine.load().Switch(str(engine.build_traced(program).library))
    _program(tracing, program)
    switches = {name: generated, f"{name} by hand": baseline, f"{name} silent": tracing}
    return {what: _forwards(switch, packets) for what, switch in switches.items()}


def on_chip(name: str, program: ir.Program) -> Load:
    """Return the load of `forwarding` for a program that is written for another architecture."""
    generated, _, packets = _set_up(name, program)
    return _forwards(generated, packets)


def contributing(program: ir.Program) -> Load:
    """Return the load of collective.p4: sums of 8 contributions, the last of which leaves with the sum.

    Each turn has new sequence numbers in the same slots.
    """
    switch = engine.load().Switch(str(engine.build(program)))
    _program(switch, program)
    _join(switch, program)
    return Load(switch, lambda turn: contributions(1 + turn * _OPERATIONS), _OPERATIONS, rounds=1)


def controlling(program: ir.Program) -> Load:
    """Return the load of sperc.p4: control packets."""
    switch = engine.load().Switch(str(engine.build(program)))
    _program(switch, program)
    _share(switch, program)
    return _forwards(switch, control_packets())


def deflecting(program: ir.Program, tokens: int) -> Load:
    """Return the load of dart.p4: data packets with this many tokens.

    Each packet is the first of its message, and finds 15,000 bytes in the queue (threshold 0) and no free entry.
    """
    switch = engine.load().Switch(str(engine.build(program)))
    _program(switch, program)
    _fill(switch, program)
    packets = frames(0, None, tokens << 3)
    full = _named(program.counters)["table_full"]

    def check(turns: int) -> None:
        refused = sum(switch.counter_read(full, port)[0] for port in range(1, 5))
        if refused != (turns * _ROUNDS * len(packets) if tokens else 0):
            raise RuntimeError(f"dart: {refused} data packets found the table full")

    return Load(switch, lambda turn: packets, len(packets), check=check)


def _forwards(switch: "Switch", packets: list[bytes]) -> Load:
    """Return a load whose packets are all forwarded."""
    return Load(switch, lambda turn: packets, len(packets))


def control_packets() -> list[bytes]:
    """Return control packets of many flows: half are counted at this link (state B), half three switches later (E)."""
    out = []
    for flow in range(_FLOWS):
        own = struct.pack(">IIBB", 10**6, 10**6, (1 + flow % 2) << 6, 0)
        known = struct.pack(">IIBB", 10**6 + flow, 10**6, 0x80, 0) * 3
        unknown = struct.pack(">IIBB", 0, 0, 0x20, 0) * 4
        header = struct.pack(">BBHHHHIHI", 0, 3, 7, 1 + flow % 3, 1 + flow % 3, 1, 0xFFFFFF00, flow, 700)
        body = header + own + unknown + known
        out.append(_frame(0xE5, bytes([10, 0, flow, 1]), bytes([10, 2, flow, 2]), flow, body + bytes(4)))
    return out


def _fill(switch: "Switch", program: ir.Program) -> None:
    """Make every class a lane and ports 1 to 4 candidates, and fill all 16 entries with flows that never expire."""
    tables = _tables(program)
    actions, registers = _named(program.actions), _named(program.registers)
    for priority in range(8):
        lane = [b"\x18", b"\0", bytes([8 * priority]), bytes([priority])]
        switch.table_add(tables["lane"], [(bytes([priority]), b"")], 0, ("action", actions["in_lane"], lane))
    settings = [value.to_bytes(size, "big") for value, size in ((0, 4), (16, 4), ((1 << 48) - 1, 6), (7, 1))]
    switch.table_set_default(tables["iofd"], ("action", actions["settings"], settings))
    switch.table_set_default(tables["candidate_group"], ("action", actions["candidates"], [b"\0\0", b"\0\4"]))
    for index in range(4):
        port = (index + 1).to_bytes(2, "big")
        at = index.to_bytes(2, "big")
        switch.table_add(tables["normal_port"], [(b"\0\0", b""), (port, b"")], 0, ("action", actions["in_group"], [at]))
        taken = ("action", actions["take_candidate"], [port])
        switch.table_add(tables["candidate"], [(b"\0\0", b""), (at, b"")], 0, taken)
    for entry in range(16):
        switch.register_write(registers["dft_key"], entry, (1 + entry).to_bytes(8, "big"))


def _tables(program: ir.Program) -> dict[str, str]:
    """Return the complete name of each object by the last part of the name, for both pipelines."""
    return _named(table for pipeline in program.pipelines for table in pipeline.tables)


def _named(items: Iterable[ir.Action | ir.Counter | ir.Register | ir.Table]) -> dict[str, str]:
    """Return the complete name of each object by the last part of the name."""
    return {one.name.rsplit(".", 1)[-1]: one.name for one in items}


def _share(switch: "Switch", program: ir.Program) -> None:
    """Write the entries of sperc.p4 for links of 100 Gb/s and for 1/n."""
    tables = _tables(program)
    actions = _named(program.actions)
    link = [(95_000_000, 6), (23_193, 6), (12_000, 6), (712, 4), (2**20, 4)]
    values = [value.to_bytes(size, "big") for value, size in link]
    share = ("action", actions["share"], values)
    for port in range(1, 5):
        switch.table_add(tables["fair_share"], [(port.to_bytes(2, "big"), b"")], 0, share)
    for which in ("old", "new"):
        for n in range(1, 1024):
            divide = ("action", actions[f"divide_by_{which}"], [(2**20 // n).to_bytes(4, "big")])
            switch.table_add(tables[f"{which}_weight"], [(n.to_bytes(2, "big"), b"")], 0, divide)


def contributions(first_sequence: int) -> list[bytes]:
    """Return contributions of 8 children. They have different groups, because all arrive on the same port."""
    lanes = struct.pack(">32I", *range(32))
    out = []
    for start in range(0, _OPERATIONS, _INTERLEAVED):
        for child in range(_CHILDREN):
            for number in range(start, start + _INTERLEAVED):
                header = struct.pack(">BBHHHII", 0, 1, child + 1, 0, 128, first_sequence + number, 0)
                after_bth = header + lanes + bytes(4)
                out.append(_frame(0xFB, bytes([10, 0, child, 1]), bytes([10, 2, 0, 2]), child, after_bth))
    return out


def _join(switch: "Switch", program: ir.Program) -> None:
    """Make port 5 the port of all children. Each child has its own group, and the groups share the slots."""
    tables = _tables(program)
    child = next(a.name for a in program.actions if a.name.endswith(".child"))
    everyone, window_bits = (1 << _CHILDREN) - 1, _OPERATIONS.bit_length() - 1
    for number in range(_CHILDREN):
        params = [(number, 1), (everyone, 8), (0, 4), (window_bits, 1), (1, 2), (1, 1), (1, 2), (0, 2)]
        values = [value.to_bytes(size, "big") for value, size in params]
        key = [((number + 1).to_bytes(2, "big"), b""), (b"\1", b""), (b"\0\5", b"")]
        switch.table_add(tables["tree_port"], key, 0, ("action", child, values))


def outputs(name: str, program: ir.Program) -> tuple[list[Any], list[Any]]:
    """Return the outputs of both pipelines for each frame. In a fair comparison they are equal."""
    generated, baseline, packets = _set_up(name, program)
    return [generated.process(5, f) for f in packets], [baseline.process(5, f) for f in packets]


def _set_up(name: str, program: ir.Program) -> "tuple[Switch, Switch, list[bytes]]":
    """Return the generated and the hand-written pipeline, and frames for them."""
    switch_type = engine.load().Switch
    generated = switch_type(str(engine.build(program)))
    _program(generated, program)
    flags = [engine.abi_flag(), *(["-DBASELINE_INT"] if name == "int" else [])]
    baseline = switch_type(str(native.build("baseline", [_BASELINE_C], headers=engine.PIPELINE_HEADERS, flags=flags)))
    return generated, baseline, frames(0xC4 if name == "int" else 4, _INT_RECORDS if name == "int" else None)


def frames(opcode: int, records: int | None, flags: int = 0) -> list[bytes]:
    """Return RoCEv2 frames of many flows, with an INT shim of `records` records unless that is None.

    `flags` is the byte of the BTH with FECN and BECN.
    """
    out = []
    shim = b"" if records is None else struct.pack(">H", records << 12) + bytes(8 * records)
    for flow in range(_FLOWS):
        out.append(_frame(opcode, bytes([10, 0, flow, 1]), bytes([10, 2, flow, 2]), flow, shim + bytes(4), flags))
    return out


def _frame(opcode: int, source: bytes, destination: bytes, flow: int, after_bth: bytes, flags: int = 0) -> bytes:
    bth = bytes([opcode, 0, 0, 0, flags]) + bytes(7) + after_bth
    udp = struct.pack(">4H", 49152 + flow, 4791, 8 + len(bth), 0)
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 32 * (flow % 8) | 2, 28 + len(bth), 0, 0, 64, 17, 0, source, destination)
    total = sum(struct.unpack(">10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack(">H", ~total & 0xFFFF) + head[12:]
    return b"\2\0" + destination + b"\2\0" + source + b"\x08\x00" + head + udp + bth


def _program(switch: "Switch", program: ir.Program) -> None:
    """Write the same routes that baseline.c contains."""
    tables = _tables(program)
    actions = _named(program.actions)
    profile = program.profiles[0].name

    def forward(port: int) -> list[bytes]:
        return [port.to_bytes(2, "big")]

    members = [switch.member_add(profile, actions["member"], forward(port)) for port in range(1, 5)]
    group = switch.group_add(profile)
    switch.group_set(profile, group, members)
    switch.table_add(tables["ecmp_group"], [(b"\0\1", b"")], 0, ("group", group))
    lpm = tables["ipv4_lpm"]
    salt = bytes.fromhex("12345678")
    switch.table_add(lpm, [(bytes([10, 0, 0, 0]), 8)], 0, ("action", actions["balance"], [b"\0\1", b"\0\4", salt]))
    for i in range(16):
        switch.table_add(lpm, [(bytes([10, 1, i, 0]), 24)], 0, ("action", actions["forward"], forward(1)))
        switch.table_add(lpm, [(bytes([10, 1, 0, i]), 32)], 0, ("action", actions["forward"], forward(1)))
    for dscp in range(64):
        priority = ("action", actions["set_priority"], [bytes([dscp // 8])])
        switch.table_add(tables["dscp_to_priority"], [(bytes([dscp]), b"")], 0, priority)

    def call(name: str, *values: int) -> tuple[str, str, list[bytes]]:
        (action,) = (one for one in program.actions if one.name == actions[name])
        sizes = [((types.width_of(kind) or 0) + 7) // 8 for _, kind in action.params]
        return "action", action.name, [n.to_bytes(size, "big") for n, size in zip(values, sizes, strict=True)]

    if "ecn_threshold" in tables:
        switch.table_set_default(tables["ecn_threshold"], call("red", 100, 400, 3000))
    if "port_telemetry" in tables:
        for port in range(1, 5):
            target = call("telemetry", 1, 1, 256, 0)
            switch.table_add(tables["port_telemetry"], [(port.to_bytes(2, "big"), b"")], 0, target)
