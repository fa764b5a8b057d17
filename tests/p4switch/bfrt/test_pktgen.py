"""BfRuntime's tables of the packet generator, and the masks of value sets that recognise its packets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from p4switch.architectures.t2na import T2NA
from tests.p4switch.architectures.tofino import START, compiled
from tests.p4switch.bfrt.conftest import Bench
from tests.p4switch.bfrt.test_server import refused

APPLICATIONS, BUFFER, PORTS = (f"tf1.pktgen.{name}" for name in ("app_cfg", "pkt_buffer", "port_cfg"))


def application(bench: Bench, number: int, action: str = "", **data: Any) -> Any:
    return bench.client.entry(APPLICATIONS, {"app_id": number}, action, **data)


def buffer(bench: Bench, offset: int, content: bytes, size: int | None = None) -> Any:
    keys = {"pkt_buffer_offset": offset, "pkt_buffer_size": len(content) if size is None else size}
    entry = bench.client.entry(BUFFER, keys)
    if content:
        entry.data.fields.add(field_id=1, stream=content)
    return entry


def test_fields_of_an_application_keep_their_values(bench: Bench) -> None:
    client = bench.client
    timer = application(bench, 3, "trigger_timer_periodic", timer_nanosec=1000, pkt_len=100, batch_count_cfg=2)
    client.write("MODIFY", timer)
    client.write("MODIFY", application(bench, 3, app_enable=True))
    (found,) = client.read(application(bench, 3))
    assert (found["action"], found["timer_nanosec"], found["pkt_len"]) == ("trigger_timer_periodic", 1000, 100)
    assert (found["batch_count_cfg"], found["packets_per_batch_cfg"], found["app_enable"]) == (2, 0, True)
    assert found["pipe_local_source_port"] == 68
    cell = bench.device.look(lambda state: state.path.members("$pktgen", 3))
    assert (cell["batches"], cell["packets"], cell["enabled"], cell["timer_ns"]) == (3, 1, 1, 1000)
    client.write("DELETE", client.entry(APPLICATIONS))
    assert not any(bench.device.look(lambda state: state.path.members("$pktgen", 3)).values())
    assert len(client.read(client.entry(APPLICATIONS))) == 8


def test_what_an_application_does_not_have_is_refused(bench: Bench) -> None:
    client = bench.client
    for name in ("ibg", "ipg_jitter"):
        other_than_0: dict[str, Any] = {name: 5}
        told = refused(client.write, "MODIFY", application(bench, 1, **other_than_0))[0][1]
        assert told == f"{APPLICATIONS}: {name} other than 0 is not supported"
    many = application(bench, 1, batch_count_cfg=65535, packets_per_batch_cfg=1)
    told = refused(client.write, "MODIFY", many)[0][1]
    assert told == f"{APPLICATIONS}: 131072 packets a trigger, all at once; expected at most 65536"
    fast = application(bench, 1, "trigger_timer_periodic", timer_nanosec=1, packets_per_batch_cfg=9, app_enable=True)
    told = refused(client.write, "MODIFY", fast)[0][1]
    assert "a timer of 1 ns for 10 packets; expected at least 8 ns, as the pipe takes a packet in each cycle" in told
    assert "application 8; expected less than 8" in refused(client.write, "MODIFY", application(bench, 8))[0][1]


def test_the_buffer_is_written_and_read_by_ranges(bench: Bench) -> None:
    client = bench.client
    client.write("MODIFY", buffer(bench, 10, bytes(range(1, 41))))
    client.write("MODIFY", buffer(bench, 20, b"\xff\xfe"))
    (found,) = client.entities(table_entry=buffer(bench, 8, b"", 14))
    assert [*found.table_entry.data.fields[0].int_arr_val.val] == [0, 0, *range(1, 11), 0xFF, 0xFE]
    assert "2 bytes; expected 3" in refused(client.write, "MODIFY", buffer(bench, 0, b"ab", 3))[0][1]
    last = buffer(bench, 16 * 1024 - 1, b"ab")
    assert "2 bytes from 16383 on; expected some of 16384" in refused(client.write, "MODIFY", last)[0][1]


def test_ports_of_the_generator_are_kept(bench: Bench) -> None:
    client = bench.client
    client.write("MODIFY", client.entry(PORTS, {"dev_port": 68}, pktgen_enable=True))
    (found,) = client.read(client.entry(PORTS, {"dev_port": 68}))
    assert (found["pktgen_enable"], found["pattern_matching_enable"]) == (True, False)


def test_a_port_triggers_again_after_it_was_cleared(bench: Bench) -> None:
    client = bench.client

    def went_down() -> int:
        return bench.device.look(lambda state: state.path.members("$port", 5)["went_down"])

    client.write("MODIFY", application(bench, 2, "trigger_port_down", packets_per_batch_cfg=4, app_enable=True))
    (found,) = client.read(application(bench, 2))
    assert (found["action"], found["packets_per_batch_cfg"]) == ("trigger_port_down", 4)
    told = refused(client.write, "MODIFY", application(bench, 2, batch_count_cfg=1))[0][1]
    assert told == f"{APPLICATIONS}: 2 batches; expected 1, as packets have the port instead of it"
    bench.device.set_port_up(5, False)
    assert went_down() == 1
    client.write("MODIFY", client.entry(PORTS, {"dev_port": 5}, pktgen_enable=True))
    assert went_down() == 1
    client.write("MODIFY", client.entry(PORTS, {"dev_port": 5}, clear_port_down_enable=True))
    assert went_down() == 0


def test_masks_of_ports_are_kept(tmp_path: Path) -> None:
    bench = Bench(compiled(tmp_path, "t2na", INGRESS="apply {}"), T2NA.fixed_tables)
    masks = "tf2.pktgen.port_mask"
    try:
        bench.client.write("MODIFY", bench.client.entry(masks, {"port_mask_sel": 1}, mask=1 << 71 | 1))
        assert [each["mask"] for each in bench.client.read(bench.client.entry(masks))] == [0, 1 << 71 | 1]
        other = bench.client.entry(masks, {"port_mask_sel": 2}, mask=1)
        assert "mask 2; expected less than 2" in refused(bench.client.write, "MODIFY", other)[0][1]
        app = bench.client.entry("tf2.pktgen.app_cfg", {"app_id": 3}, "trigger_port_down", port_mask_sel=1)
        bench.client.write("MODIFY", app)
        assert bench.device.look(lambda state: state.path.members("$pktgen", 3)["value"]) == 1
    finally:
        bench.close()


def test_a_value_of_a_set_may_have_a_mask(tmp_path: Path) -> None:
    parser = f"""value_set<bit<8>>(4) kinds;
    {START} packet.extract(hdr.h); transition select(hdr.h.kind) {{ kinds : more; default : accept; }} }}
    state more {{ packet.extract(hdr.extra); transition accept; }}"""
    ingress = "apply { tm.ucast_egress_port = 2; if (hdr.extra.isValid()) { hdr.h.value = 9; } }"
    bench = Bench(compiled(tmp_path, INGRESS_PARSER=parser, INGRESS=ingress))
    client, name = bench.client, "IngressParse.kinds"
    (key,) = (field["name"] for field in client.tables[name]["key"])
    try:
        value = client.entry(name, {key: (0x05, 0x0F)})
        client.write("INSERT", value)
        assert [each[key] for each in client.read(client.entry(name))] == [(0x05, 0x0F)]
        seen = [bench.switch.process(1, bytes([kind, 0, 0, 0]))[0][1][1] for kind in (0x05, 0xF5, 0x06)]
        assert seen == [9, 9, 0]
        client.write("DELETE", value)
        assert client.read(client.entry(name)) == []
    finally:
        bench.close()
