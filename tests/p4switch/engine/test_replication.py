"""Fates of packets: drop, clone, multicast, resubmit, recirculate, truncate, as in simple_switch."""

from typing import Any

import pytest

from p4switch.bmv2 import read
from p4switch.engine import build, load
from tests.p4switch.engine.jsonbuilder import ProgramBuilder, assign, call, const, field, op, sm

Json = Any


def program() -> ProgramBuilder:
    """Return a program with header h: command, instance type, egress port and rid in egress, ingress number, length."""
    b = ProgramBuilder()
    b.header_type("h_t", ("cmd", 8), ("type", 8), ("port", 16), ("rid", 16), ("m", 8), ("length", 16))
    b.header_type("m_t", ("kept", 8), ("lost", 8))
    b.header("h", "h_t")
    b.header("m", "m_t", metadata=True)
    b.state("start", b.extract("h"))
    b.rest["field_lists"] = [{"id": 1, "name": "kept", "elements": [field("m", "kept")]},
                             {"id": 2, "name": "nothing", "elements": []}]
    return b


def when(b: ProgramBuilder, pipeline: str, condition: Json, primitives: list[Json]) -> None:
    """Add a conditional and its statements to the end of the pipeline."""
    name = f"if_{pipeline}_{len(b.conditionals[pipeline])}"
    b.run(primitives, pipeline)
    table = b.pipelines[pipeline][-1]
    b.conditionals[pipeline].append({"name": name, "id": len(b.conditionals[pipeline]), "expression": condition,
                                     "true_next": table["name"], "false_next": None})


def link(b: ProgramBuilder, pipeline: str) -> Json:
    """Return the JSON with each conditional before its statements."""
    document = b.json()
    for p in document["pipelines"]:
        if not p["conditionals"]:
            continue
        guarded = {c["true_next"]: c["name"] for c in p["conditionals"]}
        order = [guarded.get(t["name"], t["name"]) for t in p["tables"]]
        following = dict(zip(order, [*order[1:], None], strict=True))
        for table in p["tables"]:
            own = guarded.get(table["name"], table["name"])
            table["next_tables"] = dict.fromkeys(table["actions"], following[own])
        for c in p["conditionals"]:
            c["false_next"] = following[c["name"]]
        p["init_table"] = order[0]
    return document


def switch_of(b: ProgramBuilder) -> Any:
    return load().Switch(str(build(read(link(b, "")))))


def equals(name: str, value: int) -> Json:
    return op("==", field("h", name), const(value))


def report(b: ProgramBuilder) -> None:
    """Make egress write its values into the packet."""
    b.run([assign(field("h", "type"), sm("instance_type")), assign(field("h", "port"), sm("egress_port")),
           assign(field("h", "rid"), sm("egress_rid")), assign(field("h", "m"), field("m", "kept")),
           assign(field("h", "length"), sm("packet_length"))], "egress")


def seen(frame: bytes) -> tuple[int, int, int, int]:
    """Return type, port, rid and number."""
    return frame[1], int.from_bytes(frame[2:4], "big"), int.from_bytes(frame[4:6], "big"), frame[6]


HEAD = bytes(8)


def test_drop_in_ingress_and_egress() -> None:
    b = program()
    b.forward(3)
    when(b, "ingress", equals("cmd", 1), [call("mark_to_drop", {"type": "header", "value": "standard_metadata"})])
    when(b, "ingress", equals("cmd", 2), [assign(sm("mcast_grp"), const(5)), call("drop")])
    when(b, "egress", equals("cmd", 3), [call("drop")])
    switch = switch_of(b)
    switch.multicast_set(5, [(1, 0)])
    assert [len(switch.process(0, bytes([c]) + HEAD)) for c in range(4)] == [1, 0, 0, 0]
    assert switch.counts == {"received": 4, "cloned": 0, "multicast": 0, "transmitted": 1, "dropped": 3}
    switch.drop_port = 3
    assert switch.process(0, b"\0" + HEAD) == []


def test_multicast() -> None:
    b = program()
    b.run([assign(field("m", "kept"), const(9)), assign(sm("mcast_grp"), field("h", "cmd"))])
    report(b)
    switch = switch_of(b)
    switch.multicast_set(4, [(1, 10), (1, 11), (7, 0)])
    out = switch.process(0, b"\4" + HEAD + b"payload")
    assert [port for port, _ in out] == [1, 1, 7]
    assert [seen(f) for _, f in out] == [(5, 1, 10, 9), (5, 1, 11, 9), (5, 7, 0, 9)]
    assert all(f[9:] == b"payload" for _, f in out)
    assert switch.process(0, b"\5" + HEAD) == []  # a group that does not exist
    switch.multicast_set(4, [])
    assert switch.process(0, b"\4" + HEAD) == []
    switch.multicast_set(4, None)
    with pytest.raises(ValueError, match="4"):
        switch.multicast_set(4, None)
    with pytest.raises(ValueError, match="0"):
        switch.multicast_set(0, [])
    assert switch.counts == {"received": 3, "cloned": 0, "multicast": 2, "transmitted": 3, "dropped": 2}


def test_ingress_clone_is_the_packet_that_came_in() -> None:
    b = program()
    b.run([assign(field("m", "kept"), const(9)), assign(field("m", "lost"), const(8)),
           call("clone_ingress_pkt_to_egress", const(3), const(1)), assign(field("h", "cmd"), const(77)),
           assign(field("m", "kept"), const(10)), assign(sm("egress_spec"), const(2))])
    report(b)
    switch = switch_of(b)
    switch.clone_session_set(3, [(6, 1), (7, 2)])
    out = switch.process(0, b"\1" + HEAD + b"payload")
    # Clones go first; fields of the list have the values of the end of ingress.
    assert [(p, f[0], *seen(f)) for p, f in out] == [(6, 1, 1, 6, 1, 10), (7, 1, 1, 7, 2, 10), (2, 77, 0, 2, 0, 10)]
    assert all(f[9:] == b"payload" for _, f in out)
    switch.clone_session_set(3, [(6, 0)], truncate_bytes=11)
    out = switch.process(0, b"\1" + HEAD + b"payload")
    assert [(p, f[9:]) for p, f in out] == [(6, b"pa"), (2, b"payload")]
    assert int.from_bytes(out[0][1][7:9], "big") == 11
    switch.clone_session_set(3, None)
    assert [p for p, _ in switch.process(0, b"\1" + HEAD)] == [2]
    counts = switch.counts
    assert counts["received"] + counts["cloned"] == counts["transmitted"] + counts["dropped"]


def test_egress_clone_is_the_packet_that_leaves() -> None:
    b = program()
    b.run([assign(field("m", "kept"), const(9)), assign(sm("egress_spec"), const(2))])
    when(b, "egress", op("==", sm("instance_type"), const(0)),
         [assign(field("h", "cmd"), const(55)), call("clone_egress_pkt_to_egress", const(0), const(1))])
    report(b)
    switch = switch_of(b)
    switch.clone_session_set(0, [(6, 3)])
    out = switch.process(0, b"\1" + HEAD + b"x")
    assert [(p, f[0], *seen(f)) for p, f in out] == [(2, 55, 0, 2, 0, 9), (6, 55, 2, 6, 3, 9)]


def test_endless_egress_clones_end() -> None:
    b = program()
    b.run([call("clone_egress_pkt_to_egress", const(1), const(2))], "egress")
    switch = switch_of(b)
    switch.clone_session_set(1, [(1, 0)])
    assert len(switch.process(0, b"\1" + HEAD, max_outputs=5000)) == 1025
    switch.clone_session_set(1, [(1, 0), (2, 0)])  # would breed without bound: 1024 times two copies
    assert len(switch.process(0, b"\1" + HEAD, max_outputs=5000)) == 2049
    assert len(switch.process(0, b"\1" + HEAD, max_outputs=3)) == 3


def test_resubmit() -> None:
    b = program()
    report(b)
    b.run([assign(sm("egress_spec"), field("m", "kept"))])
    when(b, "ingress", op("and", equals("cmd", 1), op("<", field("m", "kept"), const(3))),
         [assign(field("h", "cmd"), const(99)), assign(field("m", "kept"), op("+", field("m", "kept"), const(1))),
          assign(field("m", "lost"), const(1)), call("resubmit", const(1))])
    when(b, "ingress", equals("cmd", 2), [call("resubmit", const(2))])
    switch = switch_of(b)
    [(port, frame)] = switch.process(0, b"\1" + HEAD)
    assert (port, frame[0], frame[6]) == (3, 1, 3)  # the frame as it came, the list's fields kept
    assert switch.process(0, b"\2" + HEAD) == []  # endless: dropped
    assert switch.counts["dropped"] == 1


def test_recirculate() -> None:
    b = program()
    b.forward(4)
    when(b, "egress", op("<", field("m", "kept"), const(3)),
         [assign(field("m", "kept"), op("+", field("m", "kept"), const(1))),
          assign(field("h", "cmd"), op("+", field("h", "cmd"), const(1))), call("recirculate", const(1))])
    report(b)
    switch = switch_of(b)
    [(port, frame)] = switch.process(0, b"\0" + HEAD + b"payload")
    assert (port, frame[0]) == (4, 3)
    assert seen(frame) == (0, 4, 0, 3)  # the type is set anew on every enqueueing
    assert frame[9:] == b"payload"


def test_endless_recirculation_ends() -> None:
    b = program()
    b.run([call("recirculate", const(2))], "egress")
    switch = switch_of(b)
    assert switch.process(0, b"\0" + HEAD) == []
    assert switch.counts == {"received": 1, "cloned": 0, "multicast": 0, "transmitted": 0, "dropped": 1}


def test_a_frame_that_is_recirculated_and_cloned_each_time_has_one_budget() -> None:
    b = program()
    b.run([call("clone_egress_pkt_to_egress", const(1), const(2)), call("recirculate", const(2))], "egress")
    switch = switch_of(b)
    switch.clone_session_set(1, [(1, 0), (2, 0), (3, 0)])
    for _ in range(2):
        assert switch.process(0, b"\0" + HEAD) == []
    counts = switch.counts
    assert counts["received"] == 2
    # Each hop makes three packets at most, and each packet is lost in the end.
    assert counts["cloned"] <= 2 * 3 * 1025
    assert counts["received"] + counts["cloned"] == counts["dropped"]


def test_truncate() -> None:
    b = program()
    b.run([call("truncate", field("h", "cmd"))])
    switch = switch_of(b)
    frame = HEAD + b"payload"
    for length in (0, 1, 9, 12, 16, 17, 200):
        assert switch.process(0, bytes([length]) + frame)[0][1] == (bytes([length]) + frame)[:length]


def test_truncate_in_ingress_is_not_of_the_replicas() -> None:
    b = program()
    b.run([call("truncate", const(10)), assign(sm("mcast_grp"), const(4))])
    when(b, "egress", equals("cmd", 1), [call("truncate", const(9))])
    switch = switch_of(b)
    switch.multicast_set(4, [(1, 0), (2, 0)])
    for cmd, left in ((b"\0", b"payload"), (b"\1", b"")):
        assert switch.process(0, cmd + HEAD + b"payload") == [(port, cmd + HEAD + left) for port in (1, 2)]


def test_packet_length_follows_added_and_removed_headers() -> None:
    b = program()
    b.header_type("x_t", ("x", 32))
    b.header("x", "x_t")
    when(b, "ingress", equals("cmd", 1), [call("add_header", {"type": "header", "value": "x"})])
    report(b)
    switch = switch_of(b)
    assert int.from_bytes(switch.process(0, b"\1" + HEAD)[0][1][7:9], "big") == 13
    assert int.from_bytes(switch.process(0, b"\0" + HEAD)[0][1][7:9], "big") == 9


def test_exit_ends_the_pipeline() -> None:
    b = program()
    b.run([call("_jump_if_zero", field("h", "cmd"), const(2)), call("exit"), assign(field("h", "m"), const(1))])
    b.run([assign(field("h", "rid"), const(7))])
    b.run([assign(field("h", "port"), const(8))], "egress")
    switch = switch_of(b)
    assert switch.process(0, b"\0" + HEAD)[0][1][2:7] == bytes([0, 8, 0, 7, 1])
    assert switch.process(0, b"\1" + HEAD)[0][1][2:7] == bytes([0, 8, 0, 0, 0])
