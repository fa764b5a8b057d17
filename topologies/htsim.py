"""Topology files of htsim and of Ultra Ethernet's simulator (.topo): fat-trees of two or three tiers.

    Nodes 1024               hosts in all
    Tiers 3
    Podsize 64               hosts of a pod
    Tier 0                   top-of-rack switches; 1: aggregation; 2: core
    Downlink_speed_Gbps 100  of each link down from this tier
    Downlink_Latency_ns 1000
    Radix_Down 8             links down of a switch
    Radix_Up 8
    Oversubscribed 1
    Bundle 1                 parallel links down to each switch

Keys are not case-sensitive. Contradictory values are refused, as by the simulator. Hosts are named
`h0` and so on by their numbers, switches `tor0`, `agg0` and `core0`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path

from p4switch.errors import Doubt, UserError, suggest
from p4switch.foreign_files import read_words, whole
from topologies.from_files import MOST_NODES, FileTopology
from topologies.model import Builder, Topology
from topologies.registry import register

_TOR, _AGG, _CORE = range(3)
_HEADER = ("nodes", "tiers", "podsize")
_QUEUES = ("queue_up", "queue_down")
_LATENCY = "switch_latency_ns"
_SPEED, _DELAY, _DOWN, _UP = "downlink_speed_gbps", "downlink_latency_ns", "radix_down", "radix_up"
_OVER, _BUNDLE = "oversubscribed", "bundle"
_KEYS = (_SPEED, _UP, _DOWN, *_QUEUES, _OVER, _BUNDLE, _LATENCY, _DELAY)
_MOST = {_SPEED: 100_001, _DELAY: 10**10, _DOWN: 511, _UP: 511, _OVER: 1 << 16, _BUNDLE: 511, _LATENCY: 1 << 32}


@register("htsim")
class Htsim(FileTopology):
    """Network from htsim's file, which has rates and delays of each tier.

    `link_rate_bps` and `link_delay_ns` are not used.
    """

    def build(self) -> Topology:
        """Return the network of these parameters."""
        return _Reader(self.file).read().build(self.model_dump())


@dataclass
class _Tree:
    """Numbers of the file by tier."""

    where: str
    hosts: int
    pod_hosts: int
    tiers: int
    values: dict[int, dict[str, int]] = field(default_factory=dict)

    def build(self, parameters: dict[str, object]) -> Topology:
        """Return the network. Raises UserError for contradictory numbers."""
        down, up = self._by_tier(_DOWN), self._by_tier(_UP)
        bundle = self._by_tier(_BUNDLE, 1)
        over = self._by_tier(_OVER, 1)
        speed = self._by_tier(_SPEED)
        for tier in range(self.tiers):
            self._expect(down[tier] % bundle[tier] == 0, f"tier {tier}: radix_down should be a multiple of bundle")
            if tier:
                self._expect(
                    up[tier - 1] % bundle[tier] == 0,
                    f"tier {tier - 1}: radix_up should be a multiple of the bundle of tier {tier}",
                )
        self._expect(bundle[_TOR] == 1, "tier 0: bundle should be 1: a host has one link")
        self._expect(self.hosts % self.pod_hosts == 0, "nodes should be a multiple of podsize")
        self._expect(self.pod_hosts % down[_TOR] == 0, "podsize should be a multiple of radix_down of tier 0")
        pods, pod_tors = self.hosts // self.pod_hosts, self.pod_hosts // down[_TOR]
        tor_uplinks = self._links(self.hosts, speed[_TOR], speed[_AGG] * over[_TOR], "tier 0")
        self._expect(down[_TOR] // up[_TOR] == over[_TOR], "tier 0: radix_down over radix_up should be oversubscribed")
        self._expect(tor_uplinks % (pods * down[_AGG]) == 0, "tier 1: radix_down does not fit the uplinks of tier 0")
        pod_aggs = tor_uplinks // (pods * down[_AGG])
        self._expect(pod_aggs * bundle[_AGG] == up[_TOR], "tier 0: radix_up does not fit the switches of tier 1")
        cores = 0
        if self.tiers > _CORE:
            agg_uplinks = self._links(tor_uplinks, speed[_AGG], speed[_CORE] * over[_AGG], "tier 1")
            self._expect(agg_uplinks % down[_CORE] == 0, "tier 2: radix_down does not fit the uplinks of tier 1")
            cores = agg_uplinks // down[_CORE]
            self._expect(cores % pod_aggs == 0, "tier 2: its switches should be a multiple of the tier 1 of a pod")
            self._expect(
                cores * bundle[_CORE] // pod_aggs == up[_AGG], "tier 1: radix_up does not fit the switches of tier 2"
            )
        self._expect(3 * pods * pod_tors <= 1 << 16, "over 21,845 switches of tier 0")
        builder = Builder("htsim")
        names = {
            _TOR: [builder.switch(f"tor{i}", _TOR) for i in range(pods * pod_tors)],
            _AGG: [builder.switch(f"agg{i}", _AGG) for i in range(pods * pod_aggs)],
            _CORE: [builder.switch(f"core{i}", _CORE) for i in range(cores)],
        }
        rate_bps = {tier: gbps * 10**9 for tier, gbps in speed.items()}
        delay_ns = self._by_tier(_DELAY)
        racks = _rack_prefixes(pods, pod_tors)
        for i, tor in enumerate(names[_TOR]):
            for place in range(down[_TOR]):
                host = builder.node(f"h{i * down[_TOR] + place}", f"{racks[i][place // 250]}.{place % 250 + 2}")
                builder.link(tor, host, rate_bps[_TOR], delay_ns[_TOR])
        for i, tor in enumerate(names[_TOR]):
            first = i // pod_tors * pod_aggs
            for agg in names[_AGG][first : first + pod_aggs]:
                for _ in range(bundle[_AGG]):
                    builder.link(tor, agg, rate_bps[_AGG], delay_ns[_AGG])
        for i, agg in enumerate(names[_AGG] if cores else ()):
            for core in names[_CORE][i % pod_aggs :: pod_aggs]:
                for _ in range(bundle[_CORE]):
                    builder.link(agg, core, rate_bps[_CORE], delay_ns[_CORE])
        return builder.build(parameters, {number: number for number in range(self.hosts)})

    def _by_tier(self, key: str, default: int | None = None) -> dict[int, int]:
        """Return a key's values by tier.

        Raises UserError if one is missing.
        """
        values = {}
        for tier in range(self.tiers):
            value = self.values[tier].get(key, default)
            if not value and not (key == _UP and tier == self.tiers - 1) and not (key == _DELAY and value == 0):
                raise UserError(f"{self.where}: tier {tier} has no {key}")
            values[tier] = value or 0
        return values

    def _links(self, below: int, rate: int, above: int, tier: str) -> int:
        """Return the number of uplinks for `below` downlinks with the given over-subscription."""
        self._expect(below * rate % above == 0, f"{tier}: its uplinks do not carry a whole share of its downlinks")
        return below * rate // above

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise UserError(f"{self.where}: {what}")


def _rack_prefixes(pods: int, pod_tors: int) -> list[list[str]]:
    """Return three prefixes of 24 bits for the hosts of each rack, which increase with the host numbers.

    They consist of pod and rack if both are few enough. Otherwise they are numbered consecutively.
    """
    if pods <= 250 and 3 * pod_tors <= 250:
        return [[f"10.{pod}.{3 * rack + part}" for part in range(3)] for pod in range(pods) for rack in range(pod_tors)]
    flat = range(3 * pods * pod_tors)
    return [[f"10.{n >> 8}.{n & 255}" for n in flat[i : i + 3]] for i in range(0, len(flat), 3)]


class _Reader:
    def __init__(self, file: str) -> None:
        self._path = Path(file)
        self._where = f"topology.file: {file}"

    def read(self) -> _Tree:
        header: dict[str, int] = {}
        values: dict[int, dict[str, int]] = {}
        tier: int | None = None
        lines = read_words(self._path)
        while True:
            try:
                number, words = next(lines, (0, []))
            except UserError as error:
                raise UserError(f"topology.file: {error}") from None
            if not number:
                break
            if not words or words[0].startswith("#"):
                continue
            where = f"{self._where}:{number}"
            if len(words) < 2:
                raise UserError(f"{where}: expected a key and a number")
            key = words[0].lower()
            if key == "tier":
                tier = whole(where, words[1], "a tier", _CORE + 1)
                values.setdefault(tier, {})
            elif tier is None:
                if key not in _HEADER:
                    raise UserError(f"{where}: {words[0]!r:.60} before the first tier; expected {', '.join(_HEADER)}")
                header[key] = whole(where, words[1], key, MOST_NODES, 1)
            else:
                self._value(where, values[tier], key, words[1])
        for key in _HEADER:
            if key not in header:
                raise UserError(f"{self._where}: has no {key}")
        tiers = header["tiers"]
        if not 2 <= tiers <= _CORE + 1:
            raise UserError(f"{self._where}: {tiers} tiers; expected 2 or 3")
        for tier in range(tiers):
            if tier not in values:
                raise UserError(f"{self._where}: does not describe tier {tier}")
        return _Tree(self._where, header["nodes"], header["podsize"], tiers, values)

    @staticmethod
    def _value(where: str, values: dict[str, int], key: str, word: str) -> None:
        if key not in _KEYS:
            raise UserError(f"{where}: no key {key!r:.60}; {suggest(key, _KEYS)}")
        if key in values:
            raise UserError(f"{where}: {key} for the second time")
        values[key] = whole(where, word, key, _MOST.get(key, 1 << 48))
        if key == _LATENCY and values[key]:
            raise UserError(f"{where}: {key} {values[key]}; expected 0, and switch.latency_ns in the scenario")
        if key in _QUEUES:
            warnings.warn(f"{where}: {key} is not used; queues are the scenario's", Doubt, stacklevel=2)
