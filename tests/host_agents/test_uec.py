"""Sizes and times that Ultra Ethernet's congestion controls derive from a network, compared with the simulator's."""

import pytest

from host_agents.cc.base import Path
from host_agents.cc.nscc import Nscc, NsccParameters
from host_agents.cc.uec import sizes

PACKET = 4150
PAYLOAD = 4086
ACK = 64
LINK_NS = 1_000


def derived(rate_gbps: float, links: int) -> dict[str, float]:
    """Return the values of a network by the simulator's symbols, in us and bytes, with Kmin and Kmax in packets."""
    rate_bps = rate_gbps * 1e9
    rtt_ns = links * (2 * LINK_NS + 8e9 * (PACKET + ACK) / rate_bps)  # each link stores and forwards both
    # Reaction points know a base RTT in whole ns.
    nscc = Nscc(NsccParameters(), Path(rate_bps, round(rtt_ns), PAYLOAD, PACKET, 80))
    of = sizes(rate_bps, rtt_ns, PACKET)
    return {
        "T": rtt_ns / 1e3,
        "B": rate_bps * rtt_ns / 8e9,
        "n": of.bdp_packets,
        "Q": of.queue_bytes,
        "Kmin": of.kmin_bytes / PACKET,
        "Kmax": of.kmax_bytes / PACKET,
        "D": nscc.target_ns / 1e3,
        "a": nscc.fast_increase / 0.25,
        "fi": nscc.fair_increase_bytes,
        "eta": nscc.eta_bytes,
        "alpha D": nscc.proportional_increase * nscc.target_ns,
        "Wmax": nscc.window_bytes,
        "RTO": of.rto_ns / 1e3,
        "RTO untrimmed": sizes(rate_bps, rtt_ns, PACKET, trimming=False).rto_ns / 1e3,
    }


# Of each column: the digits after the point that the table has, and the power of T in it where the reaction point is
# told T, in whole ns.
COLUMNS = {
    "T": (4, 0),
    "B": (0, 0),
    "n": (0, 0),
    "Q": (0, 0),
    "Kmin": (0, 0),
    "Kmax": (0, 0),
    "D": (4, 1),
    "a": (5, 1),
    "fi": (1, 1),
    "eta": (1, 1),
    "alpha D": (0, 2),
    "Wmax": (0, 1),
    "RTO": (3, 0),
    "RTO untrimmed": (2, 0),
}


@pytest.mark.parametrize(
    ("rate_gbps", "links", "row"),
    [
        (100, 6, "14.0227 175284 43 178450 9 35 10.5170 1.16856 23873.7 716.2 16739 262926 100.656 443.28"),
        (200, 6, "13.0114 325284 79 327850 16 64 9.7585 2.16856 44303.7 1329.1 28823 487926 93.684 408.42"),
        (400, 6, "12.5057 625284 151 626650 31 121 9.3793 4.16856 85163.7 2554.9 53252 937926 90.198 390.99"),
        (800, 6, "12.2528 1225284 296 1228400 60 237 9.1896 8.16856 166884 5006.5 102240 1837926 88.704 383.52"),
        (100, 4, "9.3485 116856 29 120350 6 24 7.0114 0.77904 15915.8 477.5 7440 175284 72.768 303.84"),
    ],
)
def test_derived_values(rate_gbps: int, links: int, row: str) -> None:
    """Check three tiers at four rates, and two tiers, to the last digit of the table except for the rounding of T.

    The table has 7440 for alpha D where its own formula gives 7439.4, so this column may be off by one.
    """
    found = derived(rate_gbps, links)
    rtt_ns = 1e3 * found["T"]
    for (name, (digits, power)), text in zip(COLUMNS.items(), row.split(), strict=True):
        expected = float(text)
        last_digit = 10.0 ** -(digits if "." in text else 0)
        tolerance = (1.0 if name == "alpha D" else 0.5) * last_digit * (1 + 1e-9) + power * 0.5 / rtt_ns * expected
        assert abs(found[name] - expected) <= tolerance, name
