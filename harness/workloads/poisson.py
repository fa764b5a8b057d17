"""Poisson arrivals of flows with sizes of a published distribution, at the same mean rate for each host.

A distribution file has lines of a size in bytes and a cumulative percentage, from 0 to 100; between
two lines the distribution is uniform, and between two lines with the same percentage there are no
sizes. p4cc has the distributions published with HPCC's simulator, as used by the VAI/SF paper:
`websearch` (DCTCP, SIGCOMM 2010), `hadoop` (Roy et al., SIGCOMM 2015, Facebook) and `storage`
(Alibaba, 2019); and `critical-bulk`, ACCurate's 80% of 20 KB and 20% of 1 MB. `short-messages` are
Dart's: 2, 4 and 8 KiB, equally likely.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from harness.workloads.base import (
    MAX_SIZE_BYTES,
    Flow,
    Setting,
    Time,
    TimedParameters,
    Traffic,
    expect_flows,
    register,
)
from harness.workloads.files import read_text, real
from p4switch.errors import UserError, suggest

_DATA = Path(__file__).parent / "data"


@register("poisson")
class Poisson(TimedParameters):
    """Flows with Poisson arrivals at a given load.

    `load` is the fraction of each host's link that all distributions together use on average; each
    has an equal part. Sizes count payload; headers are added. Flows arrive until `duration_ns`.
    """

    # Distributions of flow sizes: one or several names, or files of sizes and cumulative
    # percentages.
    distribution: Annotated[
        list[str], BeforeValidator(lambda v: v if isinstance(v, list) else [v]), Field(min_length=1)
    ] = ["hadoop"]
    load: Annotated[float, Field(gt=0, lt=1)] = 0.5  # payload relative to the rate of each host's link
    duration_ns: Annotated[Time, Field(gt=0)] = 1_000_000  # end of the arrivals

    def generate(self, setting: Setting) -> Traffic:
        flows: list[Flow] = []
        for name in self.distribution:
            distribution = read_distribution(name, setting.folder)
            share = self.load / len(self.distribution)
            for host in setting.topology.hosts:
                rate_bps = setting.topology.uplink(host).rate_bps
                gap_ns = distribution.mean_bytes * 8e9 / (share * rate_bps)
                expect_flows("duration_ns", setting.hosts * int(self.duration_ns / gap_ns))
                time_ns = setting.rng.expovariate(1 / gap_ns)
                while time_ns < self.duration_ns:
                    other = setting.rng.randrange(setting.hosts - 1)
                    destination = other + (other >= host.index)
                    size = distribution.sample(setting.rng.random())
                    flows.append(Flow(host.index, destination, size, int(time_ns), group=name))
                    time_ns += setting.rng.expovariate(1 / gap_ns)
        flows.sort(key=lambda flow: (flow.start_ns, flow.source))
        return Traffic(flows)


@dataclass(frozen=True)
class Distribution:
    """Piecewise uniform distribution of sizes: `fractions[i]` of all are at most `sizes[i]`."""

    sizes: tuple[float, ...]
    fractions: tuple[float, ...]

    @property
    def mean_bytes(self) -> float:
        points = list(zip(self.sizes, self.fractions, strict=True))
        return sum((b - a) * (x + y) / 2 for (x, a), (y, b) in pairwise(points))

    def sample(self, fraction: float) -> int:
        """Return the size below which a fraction of all lies, rounded up to whole bytes and at least 1."""
        i = max(bisect_left(self.fractions, fraction), 1)
        smaller, larger = self.sizes[i - 1], self.sizes[i]
        low, high = self.fractions[i - 1], self.fractions[i]
        return max(1, math.ceil(smaller + (larger - smaller) * (fraction - low) / (high - low)))


def distributions() -> list[str]:
    return sorted(path.stem for path in _DATA.glob("*.txt"))


def read_distribution(name: str, folder: Path) -> Distribution:
    """Return a distribution by name, or from a file (a path that ends in .txt).

    Raises UserError for an unknown name, and for a file that cannot be read or is invalid.
    """
    if name.endswith(".txt"):
        path = folder / name
    elif name in distributions():
        path = _DATA / f"{name}.txt"
    else:
        raise UserError(
            f"workload.distribution: no distribution {name!r}; {suggest(name, distributions())}, or a .txt file"
        )
    points: list[tuple[float, float]] = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        words = line.split()
        if len(words) != 2:
            raise UserError(f"{path}:{number}: expected a size in bytes and a percentage, got {line!r:.80}")
        size, percent = (real(f"{path}:{number}", word, "a size in bytes and a percentage") for word in words)
        if not size < MAX_SIZE_BYTES:
            raise UserError(f"{path}:{number}: expected a size below {MAX_SIZE_BYTES}, got {line!r:.80}")
        if points and (size < points[-1][0] or percent / 100 < points[-1][1] or (size, percent / 100) == points[-1]):
            raise UserError(f"{path}:{number}: expected sizes and percentages that grow")
        points.append((size, percent / 100))
    if len(points) < 2 or points[0][1] != 0 or points[-1][1] != 1:
        raise UserError(f"{path}: expected percentages from 0 to 100")
    if points[-1][0] == 0:
        raise UserError(f"{path}: expected a size over 0")
    return Distribution(tuple(size for size, _ in points), tuple(fraction for _, fraction in points))
