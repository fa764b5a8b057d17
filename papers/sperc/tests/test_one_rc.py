"""1RC and weights in the virtual world: small versions of `sperc-fig5` and `sperc-fig8`."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.measure.results import Result, load_all
from tests.e2e.runs import forked

STAR = """
title = "4 to 1 at once, 300 KB each; one sends its in pieces of a BDP"
cc = ["sperc", "sperc+1rc+weights"]

[topology]
name = "single-switch"
hosts = 5

[workload]
name = "streams"
flows = [
    { name = "v1", source = 1, destination = 0, size_bytes = 300_000 },
    { name = "v2", source = 2, destination = 0, size_bytes = 300_000 },
    { name = "v3", source = 3, destination = 0, size_bytes = 300_000 },
    { name = "attacker", source = 4, destination = 0, size_bytes = 300_000 },
]

[attack]
kind = "none"
hosts = [4]

[[variants]]
name = "no attack"

[[variants]]
name = "staggered"
set = { attack.kind = "staggered" }
"""

RACKS = """
title = "over two and four switches: hosts of three racks to two of the first, with links between that bind"
cc = ["sperc+1rc", "sperc+1rc+weights"]

[topology]
name = "leaf-spine"
leaves = 3
spines = 1
hosts_per_leaf = 3
link_rate_bps = 10e9
fabric_rate_bps = 10e9

[workload]
name = "streams"
flows = [
    { name = "a1", source = 3, destination = 0, size_bytes = 100_000 },
    { name = "a2", source = 4, destination = 0, size_bytes = 100_000, start_ns = 2_000 },
    { name = "a3", source = 5, destination = 1, size_bytes = 3_000, start_ns = 9_000 },
    { name = "b1", source = 6, destination = 1, size_bytes = 100_000, start_ns = 11_000 },
    { name = "b2", source = 7, destination = 0, size_bytes = 3_000, start_ns = 20_000 },
    { name = "c1", source = 2, destination = 0, size_bytes = 100_000, start_ns = 30_000 },
    { name = "a4", source = 3, destination = 1, size_bytes = 100_000, start_ns = 40_000 },
    { name = "c2", source = 1, destination = 0, size_bytes = 20_000, start_ns = 45_000 },
]

[[record.probes]]
kind = "program"
"""

FAST = """
title = "flows of less than a BDP from three hosts to one"
cc = "sperc"
seeds = [1, 2]

[topology]
name = "single-switch"
hosts = 4
link_rate_bps = 400e9
link_delay_ns = 3_000

[workload]
name = "poisson"
distribution = "storage"
load = 0.8
duration_ns = 100_000

[[variants]]
name = "exempt"

[[variants]]
name = "1rc"
set = { cc = "sperc+1rc" }
"""


def results(folder: Path, text: str) -> list[Result]:
    scenario = folder / "twin.toml"
    scenario.write_text(text)
    done = forked("run", str(scenario), "--no-report", "--out", str(folder / "out"))
    assert done.returncode == 0, done.stderr
    return load_all(folder / "out")


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Result]:
    found = results(tmp_path_factory.mktemp("star"), STAR)
    return {(r.summary["protocol"], r.summary["variant"].rpartition(", ")[2]): r for r in found}


def test_the_attack_pays_with_s_perc_and_does_not_with_1rc_and_weights(
    star: dict[tuple[str, str], Result],
) -> None:
    fct_ns = {key: r.summary["isolation"]["attackers"]["fct_ns"]["max"] for key, r in star.items()}
    assert fct_ns["sperc", "staggered"] < 0.5 * fct_ns["sperc", "no attack"]
    weighted = "sperc+1rc+weights"
    # Rates are known one round trip after flows start, so an attack moves the end of a flow by one at most.
    usual_ns, rtt_ns = fct_ns[weighted, "no attack"], star[weighted, "no attack"].summary["base_rtt_ns"]
    assert fct_ns[weighted, "staggered"] == pytest.approx(usual_ns, abs=rtt_ns)
    victims = {key: r.summary["isolation"]["victims"]["flow_rate_bps"] for key, r in star.items()}
    assert victims[weighted, "staggered"] == pytest.approx(victims[weighted, "no attack"], rel=rtt_ns / usual_ns)


def test_what_is_dropped_is_speculative_and_sent_again_once(star: dict[tuple[str, str], Result]) -> None:
    for (protocol, _), result in star.items():
        drops = {reason: count for reason, count in result.summary["drops"].items() if count}
        assert drops.keys() == ({"speculative"} if protocol != "sperc" else set())
        assert result.summary["retransmitted"] == sum(drops.values())
        assert result.summary["timeouts"] == 0
        assert all(check["holds"] for check in result.summary["checks"])


def test_receivers_miss_nothing_though_switches_one_after_the_other_drop(tmp_path: Path) -> None:
    for result in results(tmp_path, RACKS):
        assert result.summary["flows_delivered"] == len(result.flows)
        assert result.flows["naks"].sum() == result.flows["timeouts"].sum() == 0
        drops = {reason: count for reason, count in result.summary["drops"].items() if count}
        assert drops.keys() == {"speculative"}
        assert result.flows["retransmitted"].sum() == sum(drops.values())
        dropping = result.table("program_state").query("object == 'speculative_drops'")
        assert dropping["switch"].nunique() > 1


def test_with_1rc_short_flows_wait_less_where_all_flows_are_short(tmp_path: Path) -> None:
    """Check queues, which are longer with exempt flows because nothing limits these."""
    queues: dict[str, float] = {"exempt": 0.0, "1rc": 0.0}
    for result in results(tmp_path, FAST):
        queues[result.summary["variant"].rpartition(", ")[2]] += result.summary["bottleneck"]["queue_max_bytes"]
        assert result.summary["timeouts"] == 0
    assert queues["1rc"] < 0.8 * queues["exempt"]
