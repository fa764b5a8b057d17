"""BfRuntime's tables of the traffic manager."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p4switch.architectures.t2na import T2NA
from p4switch.p4runtime.messages import code_pb2
from p4switch.p4runtime.ports import PortCounts, QueueCounts
from tests.p4switch.architectures.tofino import compiled
from tests.p4switch.bfrt.conftest import Bench
from tests.p4switch.bfrt.test_server import refused

PORTS, QUEUES, SHAPING = "tm.port.cfg", "tm.queue.sched_cfg", "tm.queue.sched_shaping"


@pytest.fixture
def wide(tmp_path: Path) -> Iterator[Bench]:
    """Yield a bench with a program for T2NA."""
    bench = Bench(compiled(tmp_path, "t2na", INGRESS="apply {}"), T2NA.fixed_tables)
    yield bench
    bench.close()


def queue(bench: Bench, group: int, number: int, chip: str = "tf1", **data: Any) -> Any:
    return bench.client.entry(f"{chip}.{QUEUES}", {"pg_id": group, "pg_queue": number}, **data)


def cell(bench: Bench, port: int) -> dict[str, int]:
    return bench.device.look(lambda state: state.path.members("$schedule", port))


def test_a_port_has_the_queues_of_its_place_in_a_group(bench: Bench, wide: Bench) -> None:
    def found(bench: Bench, chip: str, port: int) -> tuple[Any, ...]:
        (entry,) = bench.client.read(bench.client.entry(f"{chip}.{PORTS}", {"dev_port": port}))
        return entry["pg_id"], entry["pg_port_nr"], entry["port_queues_count"], entry["egress_qid_queues"]

    assert found(bench, "tf1", 6) == (1, 2, 8, list(range(16, 24)))
    assert found(wide, "tf2", 128 + 9) == (1, 1, 16, list(range(16, 32)))
    missing = bench.client.entry(f"tf1.{PORTS}", {"dev_port": 72})
    assert refused(bench.client.read, missing)[0][0] == code_pb2.NOT_FOUND
    port = bench.client.entry(f"tf1.{PORTS}", {"dev_port": 6})
    assert refused(bench.client.write, "MODIFY", port)[0][0] == code_pb2.UNIMPLEMENTED


def test_a_queue_has_its_number_as_priority_until_it_is_scheduled(bench: Bench) -> None:
    client = bench.client
    (found,) = client.read(queue(bench, 1, 21))
    assert (found["max_priority"], found["dwrr_weight"], found["scheduling_enable"]) == ("5", 0, True)
    assert (found["min_priority"], found["min_rate_enable"], found["max_rate_enable"]) == ("0", False, False)
    client.write("MODIFY", queue(bench, 1, 21, max_priority="HIGH", dwrr_weight=1023))
    client.write("MODIFY", queue(bench, 1, 21, scheduling_enable=False))
    client.write("MODIFY", queue(bench, 1, 20, max_priority="LOW", min_priority="LOW"))
    (found,) = client.read(queue(bench, 1, 21))
    assert (found["max_priority"], found["dwrr_weight"], found["scheduling_enable"]) == ("7", 1023, False)
    assert cell(bench, 6) == {"priorities": 8 << 40 | 1 << 32, "weights": 1023 << 80, "disabled": 1 << 5}
    assert len(client.read(client.entry(f"tf1.{QUEUES}"))) == 18 * 32
    client.write("MODIFY", queue(bench, 1, 21, max_priority="5", dwrr_weight=0, scheduling_enable=True))
    client.write("DELETE", client.entry(f"tf1.{QUEUES}"))
    assert not any(cell(bench, 6).values())


def test_a_queue_of_t2na_stops_at_xoff_only(wide: Bench) -> None:
    wide.client.write("MODIFY", queue(wide, 2, 127, "tf2", advanced_flow_control="XOFF", dwrr_weight=3))
    assert cell(wide, 23)["weights"] == 3 << 240
    assert wide.client.read(queue(wide, 2, 127, "tf2"))[0]["advanced_flow_control"] == "XOFF"
    credit = queue(wide, 2, 127, "tf2", advanced_flow_control="CREDIT")
    assert refused(wide.client.write, "MODIFY", credit) == [
        (code_pb2.UNIMPLEMENTED, f"tf2.{QUEUES}: advanced_flow_control: expected XOFF, as there is no credit mode")
    ]


@pytest.mark.parametrize(
    ("group", "number", "data", "code", "told"),
    [
        (0, 0, {"dwrr_weight": 1024}, code_pb2.INVALID_ARGUMENT, "dwrr_weight 1024; expected at most 1023"),
        (0, 0, {"max_priority": "8"}, code_pb2.INVALID_ARGUMENT, "'8'; expected one of LOW, 0, 1"),
        (18, 0, {}, code_pb2.INVALID_ARGUMENT, "pg_id 18; expected less than 18"),
        (0, 32, {}, code_pb2.INVALID_ARGUMENT, "pg_queue 32; expected less than 32"),
    ],
)
def test_what_a_queue_does_not_have_is_refused(
    bench: Bench, group: int, number: int, data: dict[str, Any], code: int, told: str
) -> None:
    ((found, message),) = refused(bench.client.write, "MODIFY", queue(bench, group, number, **data))
    assert found == code
    assert told in message
    assert not any(cell(bench, 0).values())


def shaper(bench: Bench, name: str, index: int) -> dict[str, int]:
    found: dict[str, int] = bench.device.look(lambda state: state.path.members(f"${name}_shaper", index))
    return {member: value for member, value in found.items() if value}


def test_a_queue_is_shaped_where_its_buckets_are_enabled(bench: Bench) -> None:
    client, key = bench.client, {"pg_id": 1, "pg_queue": 21}
    rates: dict[str, Any] = {"max_rate": 2_000_000, "max_burst_size": 9000, "min_rate": 7, "min_burst_size": 1}
    client.write("MODIFY", client.entry(f"tf1.{SHAPING}", key, provisioning="UPPER", unit="BPS", **rates))
    client.write("MODIFY", queue(bench, 1, 21, max_rate_enable=True, min_rate_enable=True, min_priority="3"))
    members = {"max_rate": 2_000_000, "max_burst": 9000, "min_rate": 7, "min_burst": 1, "min_priority": 3}
    assert shaper(bench, "queue", 16 * 6 + 5) == {**members, "limited": 1, "guaranteed": 1}
    (found,) = client.read(client.entry(f"tf1.{SHAPING}", key))
    assert ({name: found[name] for name in rates}, found["unit"]) == (rates, "BPS")
    (found,) = client.read(queue(bench, 1, 21))
    assert (found["min_priority"], found["min_rate_enable"], found["max_rate_enable"]) == ("3", True, True)
    client.write("MODIFY", client.entry(f"tf1.{SHAPING}", key, unit="PPS"))
    assert shaper(bench, "queue", 16 * 6 + 5)["packets"] == 1
    client.write("DELETE", client.entry(f"tf1.{QUEUES}"))
    assert shaper(bench, "queue", 16 * 6 + 5) == {
        name: members[name] for name in ("max_rate", "max_burst", "min_rate", "min_burst")
    } | {"packets": 1}


def test_a_port_of_any_pipe_is_shaped(bench: Bench) -> None:
    client, key = bench.client, {"dev_port": 128 + 6}
    client.write("MODIFY", client.entry("tf1.tm.port.sched_cfg", key, max_rate_enable=True))
    client.write("MODIFY", client.entry("tf1.tm.port.sched_shaping", key, unit="PPS", max_rate=3, max_burst_size=1))
    assert shaper(bench, "port", 128 + 6) == {"max_rate": 3, "max_burst": 1, "limited": 1, "packets": 1}
    (found,) = client.read(client.entry("tf1.tm.port.sched_shaping", key))
    assert (found["unit"], found["max_rate"], found["provisioning"]) == ("PPS", 3, "UPPER")
    missing = client.entry("tf1.tm.port.sched_cfg", {"dev_port": 72}, max_rate_enable=True)
    ((code, message),) = refused(client.write, "MODIFY", missing)
    assert (code, message) == (code_pb2.INVALID_ARGUMENT, "tf1.tm.port.sched_cfg: dev_port 72; no port has this number")
    zero = client.entry("tf1.tm.port.sched_shaping", key, max_rate=0)
    assert "max_rate 0; expected 1 or more" in refused(client.write, "MODIFY", zero)[0][1]


def test_a_queue_of_a_group_is_one_of_a_port(bench: Bench) -> None:
    (found,) = bench.client.read(bench.client.entry("tf1.tm.queue.map", {"pg_id": 1, "pg_queue": 20}))
    assert (found["dev_port"], found["queue_nr"]) == (6, 4)


def test_what_queues_have_lost_and_hold_is_told(bench: Bench) -> None:
    """Check the fifth queue of port 6, which is in group 1."""
    queues = (*[QueueCounts()] * 4, QueueCounts(2, 3, 9))
    bench.counts = {6: PortCounts(waiting=QueueCounts(7, 8, 9), queues=queues), 7: PortCounts(queues=queues[:4] * 2)}

    def found(name: str, **key: int) -> list[tuple[int, ...]]:
        entries = bench.client.read(bench.client.entry(f"tf1.tm.counter.{name}", key))
        return [(each["drop_count_packets"], each["usage_cells"], each["watermark_cells"]) for each in entries]

    assert found("eg_port", dev_port=6) == found("eg_port")[:1] == [(7, 8, 9)]
    assert found("queue", pg_id=1, pg_queue=20) == [(2, 3, 9)]
    assert found("queue", pg_id=0, pg_queue=4) == [(0, 0, 0)]
    entry = bench.client.entry("tf1.tm.counter.queue", {"pg_id": 1, "pg_queue": 20}, drop_count_packets=0)
    assert refused(bench.client.write, "MODIFY", entry)[0][0] == code_pb2.UNIMPLEMENTED


def test_the_queues_of_all_pipes_that_one_pipeline_runs_are_counted_together(bench: Bench) -> None:
    """Port 134 is port 6 of the second pipe."""
    queues = {6: QueueCounts(2, 3, 9), 128 + 6: QueueCounts(1, 2, 10), 128 + 7: QueueCounts(5, 5, 50)}
    bench.counts = {port: PortCounts(queues=(counts,)) for port, counts in queues.items()}
    (found,) = bench.client.read(bench.client.entry("tf1.tm.counter.queue", {"pg_id": 1, "pg_queue": 16}))
    assert (found["drop_count_packets"], found["usage_cells"], found["watermark_cells"]) == (3, 5, 10)


def test_group_and_queue_are_both_needed(bench: Bench) -> None:
    half = bench.client.entry(f"tf1.{QUEUES}", {"pg_id": 1}, dwrr_weight=1)
    assert "expected pg_id and pg_queue as the key" in refused(bench.client.write, "MODIFY", half)[0][1]
