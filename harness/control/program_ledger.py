"""Ledger of a P4 program: packets that it drops, absorbs and makes, by name.

A counter with one of these annotations says so. The first word is the pipeline that counts, the others name its cells;
a single name is that of all of them, where they count by port, say:

    @dropped["ingress", "malformed", "no_route"]     counter(2, CounterType.packets) losses;
    @absorbed["ingress", "contribution"]             counter(1, CounterType.packets) absorbed;
    @made["ingress", "result"]                       counter(1, CounterType.packets) made;
    @dropped["ingress", "queue_full"]                counter(MAX_PORTS, CounterType.packets) queue_dropped;

A packet that leaves as another one than it came counts twice: it was absorbed, and the other one was made. So a
pipeline loses exactly what it counts as dropped and absorbed, less what it counts as made; the rest has no name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.control.program_state import CellArray, Reader, counters
from p4switch.errors import UserError
from p4switch.p4runtime.messages import Message

DROPPED, ABSORBED, MADE = "dropped", "absorbed", "made"
PIPELINES = ("ingress", "egress")
_TERM = {DROPPED: "drop", ABSORBED: "absorbed", MADE: "made"}  # in the ledger, before the name
_OTHERS = (  # reasons that are the world's
    "program_ingress", "program_egress", "buffer", "no_port", "link_down", "link_loss", "hops", "endless",
    "in_switch", "socket",
)  # fmt: skip


class Kind(NamedTuple):
    """Kind of a packet's fate: what became of it, in which pipeline, under which name."""

    what: str
    pipeline: str
    name: str


@dataclass(frozen=True)
class Account:
    """A counter of a program, and what its cells count; None: a cell that has no name."""

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


def count(switches: Iterable[Reader], of_program: Iterable[Account]) -> Counter[Kind]:
    """Return how many packets of each kind the switches have counted; 0 for none.

    Raises UserError if one refuses.
    """
    totals = Counter({kind: 0 for account in of_program for kind in account.kinds if kind})
    for reader in switches:
        for account in of_program:
            packets = reader.packets(account.cells)[: len(account.kinds)]
            for index in np.flatnonzero(packets):
                if kind := account.kinds[index]:
                    totals[kind] += int(packets[index])
    return totals


def lost(counted: Mapping[Kind, int], pipeline: str) -> int:
    """Return how many packets a pipeline has lost by its program's counters."""
    return sum(-n if kind.what == MADE else n for kind, n in counted.items() if kind.pipeline == pipeline)


def by_name(ledger: Mapping[str, int], counted: Mapping[Kind, int]) -> dict[str, int]:
    """Return a world's ledger with `drop_NAME`, `absorbed_NAME` and `made_NAME`; `drop_program_...` is the rest."""
    named = dict(ledger)
    for pipeline in PIPELINES:
        named[f"drop_program_{pipeline}"] -= lost(counted, pipeline)
    for kind, packets in counted.items():
        term = f"{_TERM[kind.what]}_{kind.name}"
        named[term] = named.get(term, 0) + packets
    return named


def total(ledger: Mapping[str, int], what: str) -> int:
    """Return the number of all packets that were dropped (for whatever reason), absorbed or made."""
    return sum(packets for term, packets in ledger.items() if term.startswith(f"{_TERM[what]}_"))


def miscounted(ledger: Mapping[str, int]) -> str:
    """Return a description of impossible counts of a program; empty if there are none."""
    for term, packets in ledger.items():
        if packets < 0 and term.startswith(f"{_TERM[DROPPED]}_"):
            return f"{term} is {packets}: the program counts what it did not lose"
    absorbed, made = total(ledger, ABSORBED), total(ledger, MADE)
    return f"{made} made of {absorbed} absorbed" if made > absorbed else ""
