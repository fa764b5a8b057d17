"""The file of `p4cc switch --traffic`: JSON, in which keys are text and tuples are lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.compiler import Compiled
from p4switch.daemon.config import TrafficSettings, read
from p4switch.daemon.process import SwitchProcess
from p4switch.errors import UserError
from tests.p4switch.architectures.test_psa import compiled as psa_program
from tests.p4switch.architectures.tofino import compiled


def test_a_file_has_ports_by_number_and_lists(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    wanted = {
        "ports": {"1": {"rate_bps": 10_000_000}, "12": {}},
        "dscp_classes": [dscp // 8 for dscp in range(64)],
        "equal_priorities": [1, 2],
        "buffer_bytes": "none",
        "pfc": {"priorities": [3], "xoff_bytes": 1000},
        "all_ports": {"rate_bps": 1_000_000_000},
    }
    file.write_text(json.dumps(wanted))
    settings = read(file)
    assert (settings.ports[1].rate_bps, settings.ports[12].rate_bps) == (10_000_000, 0)
    assert settings.dscp_classes is not None
    assert settings.dscp_classes[-1] == 7
    assert settings.equal_priorities == (1, 2)
    assert settings.buffer_bytes is None


class Ports:
    """Stand-in for a `Live` that keeps the settings of its ports."""

    def __init__(self) -> None:
        self.given: list[tuple[int, ...]] = []

    def log_depths(self, interval_ns: int) -> None:
        pass

    def set_traffic(self, **settings: object) -> None:
        pass

    def set_port(self, *values: int) -> None:
        self.given.append(values)


def test_a_port_has_its_own_framing_or_that_of_all(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    file.write_text(json.dumps({"framing_bytes": 24, "ports": {"1": {"framing_bytes": 38}, "2": {}}}))
    ports = Ports()
    read(file).apply(ports, [1, 2, 3])
    assert ports.given == [(1, 0, 0, 38), (2, 0, 0, 24), (3, 0, 0, 24)]


def test_a_port_that_is_no_number_is_named(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    file.write_text('{"ports": {"one": {}}}')
    with pytest.raises(UserError, match=r"traffic\.json: ports\.one"):
        read(file)


@pytest.mark.parametrize(
    ("settings", "tick_ns"), [({"tick_ns": 2500}, 2500), ({"tick_ns": 2500, "model_tick_ns": 1}, 1)]
)
def test_programs_count_time_in_the_models_nanoseconds(tmp_path: Path, settings: dict[str, int], tick_ns: int) -> None:
    """Check that a tick is one nanosecond of model time, even with a dilation."""
    ingress = (
        "apply { tm.ucast_egress_port = 2; hdr.wide.setValid(); hdr.wide.a = parsed.global_tstamp[31:0];"
        " hdr.wide.b = 0; }"
    )
    process = SwitchProcess({}, address=f"unix:{tmp_path}/p4rt", traffic=TrafficSettings.model_validate(settings))
    switch = process._build(0, compiled(tmp_path, INGRESS=ingress).program)
    ((_, frame),) = switch.process(1, bytes(2), 7)
    assert int.from_bytes(frame[2:6], "big") == 7 * tick_ns


@pytest.mark.parametrize(("given", "port"), [(None, PACKET_PATHS.find("PSA_Switch").drop_port), (77, 77)])
def test_packets_are_dropped_at_the_architectures_port_or_at_the_one_that_is_asked_for(
    tmp_path: Path, given: int | None, port: int
) -> None:
    process = SwitchProcess({}, address=f"unix:{tmp_path}/p4rt", drop_port=given)
    assert process._build(0, psa_program(tmp_path).program).drop_port == port


@pytest.mark.parametrize(("program", "largest"), [(psa_program, 0xFFFFFFFF), (compiled, 511)])
def test_a_drop_port_above_the_architectures_own_is_refused(
    tmp_path: Path, program: Callable[[Path], Compiled], largest: int
) -> None:
    process = SwitchProcess({}, address=f"unix:{tmp_path}/p4rt", drop_port=largest + 1)
    with pytest.raises(UserError, match=f"^--drop-port {largest + 1}: expected at most {largest}, the architecture's "):
        process._build(0, program(tmp_path).program)
