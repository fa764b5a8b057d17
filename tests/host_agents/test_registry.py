"""Names and parameters: how they are found, and the single line for each mistake."""

import math
from types import NoneType
from typing import Any, get_type_hints

import pytest

from host_agents.config import NicConfig
from host_agents.errors import HostError, ParameterError, UnknownNameError
from host_agents.registry import (
    LoadBalancerInfo,
    MechanismInfo,
    ProtocolInfo,
    load_balancers,
    mechanisms,
    protocols,
    resolve,
    resolve_load_balancer,
)


def test_protocols_say_what_they_need() -> None:
    known = protocols()
    assert {"none", "hpcc", "dcqcn", "dcqcn-paper"} <= set(known)
    assert (known["hpcc"].program, known["hpcc"].telemetry) == ("int", True)
    assert (known["dcqcn"].program, known["dcqcn"].telemetry) == ("ecn", False)
    assert all(info.summary for info in known.values())
    assert "ecmp" in load_balancers()


def test_parameters_have_defaults_and_are_converted() -> None:
    protocol = resolve("hpcc", {"eta": "0.9", "max_stage": 0})
    assert protocol.resolved() == {
        "eta": 0.9,
        "max_stage": 0,
        "additive_increase_bps": 50e6,
        "min_rate_bps": 100e6,
        "random_feedback": False,
    }
    assert isinstance(resolve("hpcc", {"additive_increase_bps": 1_000_000_000}).parameters.additive_increase_bps, float)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("hpc", {}, "unknown protocol 'hpc'; did you mean 'hpcc'?"),
        ("", {}, "unknown protocol ''"),
        ("none+vai", {}, "protocol 'none' has no mechanism 'vai'; there is none to choose from"),
        ("hpcc", {"etta": 1}, "hpcc has no parameter 'etta'; did you mean 'eta'?"),
        ("hpcc", {"eta": "much"}, "hpcc: parameter eta: input should be a valid number"),
        ("hpcc", {"max_stage": 1.5}, "hpcc: parameter max_stage: input should be a valid integer"),
        ("hpcc", {"eta": 0}, "hpcc: parameter eta: input should be greater than 0 (got 0)"),
        ("hpcc", {"eta": 1.01}, "hpcc: parameter eta: input should be less than or equal to 1"),
        ("hpcc", {"additive_increase_bps": -1}, "hpcc: parameter additive_increase_bps: input should be greater"),
        ("hpcc", {"additive_increase_bps": math.inf}, "hpcc: parameter additive_increase_bps: input should be a fin"),
        ("hpcc", {"eta": math.nan}, "hpcc: parameter eta: input should be a finite number"),
        ("hpcc+vai", {"vai": {"ns_per_token": 0}}, "vai: parameter ns_per_token: input should be greater than 0"),
        ("dcqcn", {"clamp_target_rate": "perhaps"}, "dcqcn: parameter clamp_target_rate: input should be a valid bool"),
    ],
)
def test_mistakes_name_the_thing_and_what_was_expected(name: str, parameters: Any, message: str) -> None:
    with pytest.raises((UnknownNameError, ParameterError)) as error:
        resolve(name, parameters)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_unknown_load_balancer() -> None:
    with pytest.raises(UnknownNameError, match="unknown load balancer 'spry'; did you mean 'spray'"):
        resolve_load_balancer("spry")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address": "10.0.0"}, "address '10.0.0': expected an IPv4 address"),
        ({"line_rate_bps": 0}, "line_rate_bps 0: expected 1 to"),
        ({"mtu_bytes": 10_000}, "mtu_bytes 10000: expected 1 to 9000"),
        ({"data_priority": 8}, "data_priority 8: expected 0 to 7"),
        ({"reliability": "tcp"}, "reliability 'tcp': expected one of: go-back-n, selective-repeat"),
        ({"cc_scope": "host"}, "cc_scope 'host': expected one of: qp, destination, pair"),
        ({"ack_every_packets": 0}, "ack_every_packets 0: expected 1 to"),
        ({"ack_wait_ns": 0}, "ack_wait_ns 0: expected 1 to"),
    ],
)
def test_a_bad_configuration(change: dict[str, str] | dict[str, int], message: str) -> None:
    config: dict[str, Any] = {"address": "10.0.0.2", "line_rate_bps": 10**9, "base_rtt_ns": 1000, **change}
    with pytest.raises(HostError) as error:
        NicConfig(**config)
    assert str(error.value).startswith(message)


def test_types_of_parameters_are_those_that_compiled_hosts_keep() -> None:
    """Mypyc makes a `type` of every other annotation, for example a `Literal`, and then refuses all values."""
    infos: list[ProtocolInfo | MechanismInfo | LoadBalancerInfo] = [
        *protocols().values(), *mechanisms().values(), *load_balancers().values()
    ]
    kept = {bool, int, float, str, NoneType}
    for info in infos:
        assert {info.name: set(get_type_hints(info.parameters).values()) - kept} == {info.name: set()}


def test_a_parameter_with_names_for_values_is_checked() -> None:
    assert resolve("dart", {"share_as": "window"}).parameters.share_as == "window"
    with pytest.raises(ParameterError, match=r"^dart: parameter share_as: input should be 'rate' or 'window'"):
        resolve("dart", {"share_as": "token"})
