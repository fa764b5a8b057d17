"""Ledger of a P4 program: packets that it drops, absorbs and makes, by name.

An annotation turns a counter into a part of the ledger. The first word is the pipeline that counts,
and the others name the counter's cells. A single name applies to all cells, for example if they
count by port:

    @dropped["ingress", "malformed", "no_route"]     counter(2, CounterType.packets) losses;
    @absorbed["ingress", "contribution"]             counter(1, CounterType.packets) absorbed;
    @made["ingress", "result"]                       counter(1, CounterType.packets) made;
    @dropped["ingress", "queue_full"]                counter(MAX_PORTS, CounterType.packets) queue_dropped;

A packet that the program turns into another one counts twice: the first is absorbed, and the second
is made. So the named losses of a pipeline are the packets that it counts as dropped and absorbed,
less those that it counts as made. Other losses have no name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from control_plane.program_state import CellArray, Reader, counters
from p4switch.errors import UserError
from p4switch.p4runtime.messages import Message

DROPPED, ABSORBED, MADE = "dropped", "absorbed", "made"
PIPELINES = ("ingress", "egress")
_TERM = {DROPPED: "drop", ABSORBED: "absorbed", MADE: "made"}  # prefix of the name in the ledger
_OTHERS = (  # reasons for drops that belong to the world
    "program_ingress", "program_egress", "buffer", "no_port", "link_down", "link_loss", "hops", "endless",
    "in_switch", "socket",
)  # fmt: skip


class Kind(NamedTuple):
    """Kind of a packet's fate: the event, its pipeline and its name."""

    what: str
    pipeline: str
    name: str


@dataclass(frozen=True)
class Account:
    """Counter of a program, and the meanings of its cells; None is a cell without a name."""

    cells: CellArray
    kinds: tuple[Kind | None, ...]


def accounts(p4info: Message) -> tuple[Account, ...]:
    """Return the annotated counters of a program.

    Raises UserError for a wrong annotation.
    """
    arrays = counters(p4info)
    return tuple(
        Account(array, tuple(_kinds(annotation, array)))
        for counter in p4info.counters
        for annotation in counter.preamble.structured_annotations
        if annotation.name in _TERM
        for array in (arrays[counter.preamble.name],)
    )


def _kinds(annotation: Message, array: CellArray) -> Iterator[Kind | None]:
    where = f"@{annotation.name} of counter {array.name!r}"
    words = [expression.string_value for expression in annotation.expression_list.expressions]
    if not words or words[0] not in PIPELINES:
        first_word = repr(words[0]) if words else "nothing"
        raise UserError(f"{where}: {first_word} comes first; expected one of {', '.join(map(repr, PIPELINES))}")
    if "packets" not in array.values:
        raise UserError(f"{where}: it counts {', '.join(array.values)}; expected packets")
    pipeline, *names = words
    if len(names) > array.size:
        raise UserError(f"{where}: {len(names)} names of {array.size} cells")
    for name in names * array.size if len(names) == 1 else names:
        if name in _OTHERS or (name and not name.replace("_", "a").isalnum()):
            raise UserError(f"{where}: {name!r}; expected a word that is not one of {', '.join(_OTHERS)}")
        yield Kind(annotation.name, pipeline, name) if name else None


def count(switches: Iterable[tuple[Reader, Iterable[Account]]]) -> Counter[Kind]:
    """Return the number of packets of each kind that the switches have counted, by their programs' accounts.

    Kinds that a program names and no switch has counted are 0. Raises UserError if a switch refuses.
    """
    totals: Counter[Kind] = Counter()
    for reader, accounts in switches:
        for account in accounts:
            totals.update({kind: 0 for kind in account.kinds if kind})
            packets = reader.packets(account.cells)[: len(account.kinds)]
            for index in np.flatnonzero(packets):
                if kind := account.kinds[index]:
                    totals[kind] += int(packets[index])
    return totals


def lost(counted: Mapping[Kind, int], pipeline: str) -> int:
    """Return the number of packets that a pipeline has lost, from the counters of its program."""
    return sum(-n if kind.what == MADE else n for kind, n in counted.items() if kind.pipeline == pipeline)


def by_name(ledger: Mapping[str, int], counted: Mapping[Kind, int]) -> dict[str, int]:
    """Return a world's ledger with the program's counts: `drop_NAME`, `absorbed_NAME` and `made_NAME`.

    Drops that no counter of the program names are in `drop_program_...`.
    """
    named = dict(ledger)
    for pipeline in PIPELINES:
        named[f"drop_program_{pipeline}"] -= lost(counted, pipeline)
    for kind, packets in counted.items():
        term = f"{_TERM[kind.what]}_{kind.name}"
        named[term] = named.get(term, 0) + packets
    return named


def total(ledger: Mapping[str, int], what: str) -> int:
    """Return the number of packets that were dropped for any reason, absorbed or made."""
    return sum(packets for term, packets in ledger.items() if term.startswith(f"{_TERM[what]}_"))


def miscounted(ledger: Mapping[str, int]) -> str:
    """Return a description of impossible counts of a program; empty if there are none."""
    for term, packets in ledger.items():
        if packets < 0 and term.startswith(f"{_TERM[DROPPED]}_"):
            return f"{term} is {packets}: the program counts packets that were not lost"
    absorbed, made = total(ledger, ABSORBED), total(ledger, MADE)
    return f"{made} made of {absorbed} absorbed" if made > absorbed else ""
