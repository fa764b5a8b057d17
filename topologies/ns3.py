"""Topology files of HPCC's ns-3 simulator and its descendants (ConWeave, ns-3-alibabacloud).

    NODES SWITCHES LINKS
    SWITCH ...
    A B RATE DELAY LOSS      of each link: 0 320 100Gbps 1000ns 0.000000

Nodes are numbered from 0, and nodes that are no switches are hosts. Host n is called `h<n>` here
and switch n `s<n>`; flow files name hosts by these numbers. As in the simulator, words may be on
any lines, and anything after the last link is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from p4switch.errors import UserError
from p4switch.foreign_files import decimal, read_words, shown, whole
from topologies.from_files import MOST_NODES, FileLink, FileNetwork, FileTopology, assembled
from topologies.model import MAX_LINKS, Topology
from topologies.registry import register

_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
# Units of ns-3's DataRate and Time; numbers without a unit are bits per second, and seconds.
_BITS_A_SECOND = {
    "": 1,
    **{f"{prefix}{unit}": factor for prefix, factor in _DECIMAL.items() for unit in ("bps", "b/s")},
    **{f"{prefix}{unit}": 8 * factor for prefix, factor in _DECIMAL.items() for unit in ("Bps", "B/s")},
    **{f"{prefix}b/s": factor for prefix, factor in _BINARY.items()},
    **{f"{prefix}B/s": 8 * factor for prefix, factor in _BINARY.items()},
}
_NANOSECONDS = {
    "": Decimal(10**9), "s": Decimal(10**9), "ms": Decimal(10**6), "us": Decimal(1000), "ns": Decimal(1),
    "ps": Decimal("0.001"), "fs": Decimal("0.000001"),
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9.eE+-]*[0-9.])([A-Za-z/]*)")
_MOST_BPS, _MOST_NS = 10**14, 10**10


@register("ns3")
class Ns3(FileTopology):
    """Network from HPCC's file, which has rate and delay of each link.

    `link_rate_bps` and `link_delay_ns` are not used.
    """

    def build(self) -> Topology:
        """Return the network of these parameters."""
        where = f"topology.file: {self.file}"
        words = _Words(Path(self.file), where)
        nodes = words.whole("the number of nodes", MOST_NODES)
        switch_count = words.whole("the number of switches", MOST_NODES)
        link_count = words.whole("the number of links", MAX_LINKS + 1)
        switches: dict[int, None] = {}
        for _ in range(switch_count):
            number = words.whole("the number of a switch", nodes)
            if number in switches:
                raise UserError(f"{words.where}: switch {number} for the second time")
            switches[number] = None
        links = [self._link(words, nodes, switches) for _ in range(link_count)]
        numbers = {f"h{node}": node for node in range(nodes) if node not in switches}
        names = [f"s{number}" for number in switches]
        network = FileNetwork(list(numbers), names, links, numbers)
        return assembled("ns3", where, network, self)

    @staticmethod
    def _link(words: _Words, nodes: int, switches: dict[int, None]) -> FileLink:
        a, b = (words.whole("the number of a node", nodes) for _ in range(2))
        where = words.where
        rate_bps = words.quantity(_BITS_A_SECOND, "a rate, as in 100Gbps")
        if not 0 < rate_bps <= _MOST_BPS:
            raise UserError(f"{words.where}: expected a rate of at most 100 Tb/s, and above 0")
        delay_ns = words.quantity(_NANOSECONDS, "a delay, as in 1000ns")
        if delay_ns > _MOST_NS:
            raise UserError(f"{words.where}: expected a delay of at most 10 s")
        loss = words.share()
        names = [f"s{number}" if number in switches else f"h{number}" for number in (a, b)]
        return FileLink(names[0], names[1], int(rate_bps), int(delay_ns), loss, where)


class _Words:
    """Words of a file in order; `where` is the line of the last one."""

    def __init__(self, path: Path, name: str) -> None:
        self._name = name
        self.where = name
        self._words = self._read(path)

    def _read(self, path: Path) -> Iterator[str]:
        try:
            for number, words in read_words(path):
                self.where = f"{self._name}:{number}"
                yield from words
        except UserError as error:
            raise UserError(f"topology.file: {error}") from None

    def _next(self, what: str) -> str:
        word = next(self._words, None)
        if word is None:
            raise UserError(f"{self.where}: ends where {what} should follow")
        return word

    def whole(self, what: str, most: int) -> int:
        """Return a number below `most`. Raises UserError for a word that is not such a number."""
        word = self._next(what)
        return whole(self.where, word, what, most)

    def quantity(self, units: dict[str, int] | dict[str, Decimal], what: str) -> Decimal:
        """Return a number with a unit, in the smallest of the units.

        Raises UserError for a word that is not such a number.
        """
        word = self._next(what)
        match = _QUANTITY.fullmatch(word) if len(word) <= 40 else None
        number = decimal(match[1]) if match is not None else None
        if match is None or number is None or match[2] not in units:
            raise UserError(f"{self.where}: expected {what}, got {shown(word)}")
        return number * units[match[2]]

    def share(self) -> float:
        """Return the share of frames that a link loses.

        Raises UserError for a word that is not a number from 0 to below 1.
        """
        word = self._next("the share of packets that a link loses")
        number = decimal(word)
        if number is None or number >= 1:
            what = "the share of packets that a link loses, below 1"
            raise UserError(f"{self.where}: expected {what}, got {shown(word)}")
        return float(number)
