"""Collective communication by algorithm, over any group of ranks.

| algorithm | all-reduce | all-gather | reduce-scatter | all-to-all |
|---|---|---|---|---|
| ring | 2 (n - 1) steps of 1/n | n - 1 of 1/n | n - 1 of 1/n | n - 1, to one further on each |
| recursive-doubling | log n of all | log n, doubling | log n, halving | log n of a half |
| tree (binomial) | reduce, broadcast | gather, broadcast | reduce, scatter | |

Reduce and gather send to a root, broadcast and scatter send from it. The root is the first rank of
the group. These collectives go along the ring from one rank to the next, or over the tree.
Recursive doubling uses the tree for them, too.

If the size of the group is no power of two, recursive doubling uses the next lower one. Each excess
rank has a partner that represents both. It sends its data to the partner first, and gets the result
from it afterwards.

The size of a collective is that of the reduced vector, of the result that all ranks have, or of the
data that one rank has for all others. For a collective with a root it is the size at the root.
Reducing takes no time of its own. Source: Thakur, Rabenseifner, Gropp, "Optimization of Collective
Communication Operations in MPICH", IJHPCA 2005; the ring is Patarasuk and Yuan's (JPDC 2009).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from harness.workloads.schedule import Ends, Schedule
from p4switch.errors import UserError

Collective = Literal[
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "gather", "scatter"
]
Algorithm = Literal["ring", "recursive-doubling", "tree"]

# One round: sender and receiver, by place in the group, and number of blocks of 1/n.
_Round = list[tuple[int, int, int]]
_TO_ROOT, _FROM_ROOT = ("reduce", "gather"), ("broadcast", "scatter")


def add(
    schedule: Schedule,
    collective: Collective,
    algorithm: Algorithm,
    group: Sequence[int],
    size_bytes: int,
    after: Ends,
    tag: int = 0,
) -> Ends:
    """Add a collective to a schedule and return the operations that end it.

    Each rank begins `after` its given operations. It begins a round when all its messages of the
    rounds before are sent and received. Raises UserError if the algorithm does not support the
    collective or the group.
    """
    n = len(group)
    last = {rank: list(after.get(rank, ())) for rank in group}
    for exchanged in rounds(collective, algorithm, n):
        ends: dict[int, list[int]] = {}
        for sender, receiver, blocks in exchanged:
            source, destination = group[sender], group[receiver]
            share_bytes = -(-size_bytes * blocks // n)
            ends.setdefault(source, []).append(schedule.send(source, destination, share_bytes, last[source], tag))
            ends.setdefault(destination, []).append(schedule.recv(destination, source, last[destination], tag))
        last.update(ends)
    return last


def messages(collective: Collective, algorithm: Algorithm, n: int) -> int:
    """Return the number of messages of a collective of `n` ranks.

    Raises UserError if the algorithm does not support the collective.
    """
    return sum(map(len, rounds(collective, algorithm, n)))


def rounds(collective: Collective, algorithm: Algorithm, n: int) -> Iterator[_Round]:
    """Yield the messages of each round.

    Raises UserError if the algorithm does not support the collective.
    """
    if collective in _TO_ROOT:
        return _to_root(algorithm, n, parts=collective == "gather")
    if collective in _FROM_ROOT:
        return _from_root(algorithm, n, parts=collective == "scatter")
    if algorithm == "ring":
        return _ring(collective, n)
    if algorithm == "recursive-doubling":
        return _doubling(collective, n)
    if collective == "all-to-all":
        raise UserError("all-to-all: no tree; expected ring or recursive-doubling")
    return _tree(collective, n)


def _ring(collective: Collective, n: int) -> Iterator[_Round]:
    for step in range(2 * (n - 1) if collective == "all-reduce" else n - 1):
        distance = step + 1 if collective == "all-to-all" else 1
        yield [(i, (i + distance) % n, 1) for i in range(n)]


def _doubling(collective: Collective, n: int) -> Iterator[_Round]:
    if collective == "reduce-scatter":  # the rounds of an all-gather in reverse
        yield from _back(_doubling("all-gather", n))
        return
    taking_part = 1 << (n.bit_length() - 1)
    partners = n - taking_part  # number of ranks (1, 3, 5, ...) that also represent the rank before them
    place = [2 * i + 1 if i < partners else i + partners for i in range(taking_part)]
    ranks = [2 if i < partners else 1 for i in range(taking_part)]  # number of ranks that each participant represents
    before, afterwards = {"all-reduce": (n, n), "all-gather": (1, n - 1)}.get(collective, (n - 1, n - 1))
    if partners:
        yield [(2 * i, 2 * i + 1, before) for i in range(partners)]
    for distance in (1 << bit for bit in range(n.bit_length() - 1)):
        messages = []
        for i in range(taking_part):
            first = i - i % distance
            heard_of = sum(ranks[first : first + distance])
            # Number of ranks whose data takes this way.
            alike = sum(ranks[(i ^ distance) % (2 * distance) :: 2 * distance])
            blocks = {"all-reduce": n, "all-gather": heard_of}.get(collective, heard_of * alike)
            messages.append((place[i], place[i ^ distance], blocks))
        yield messages
    if partners:
        yield [(2 * i + 1, 2 * i, afterwards) for i in range(partners)]


def _tree(collective: Collective, n: int) -> Iterator[_Round]:
    yield from _to_root("tree", n, parts=collective == "all-gather")
    yield from _from_root("tree", n, parts=collective == "reduce-scatter")


def _to_root(algorithm: Algorithm, n: int, parts: bool) -> Iterator[_Round]:
    """Yield rounds towards the root.

    With `parts` each rank sends its own part and those that it received, else a whole vector.
    """
    if algorithm == "ring":
        for i in range(n - 1, 0, -1):
            yield [(i, i - 1, n - i if parts else n)]
        return
    for distance in (1 << bit for bit in range((n - 1).bit_length())):
        yield [(i, i - distance, min(distance, n - i) if parts else n) for i in range(distance, n, 2 * distance)]


def _from_root(algorithm: Algorithm, n: int, parts: bool) -> Iterator[_Round]:
    return _back(_to_root(algorithm, n, parts))


def _back(exchanged: Iterator[_Round]) -> Iterator[_Round]:
    for messages_up in reversed(list(exchanged)):
        yield [(receiver, sender, blocks) for sender, receiver, blocks in messages_up]
