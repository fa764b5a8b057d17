"""Program of all MPI ranks in a test: `mpiexec -n N python -m mpi4py ranks_program.py EXAMPLES`.

The first rank draws networks, partitions and delays, and compares the results of all ranks with
those of one worker.
"""

import sys
from typing import Any

import mpi4py.MPI
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.worlds.ranks import Ranks, shared_memory
from tests.p4switch.fabric.test_order import networks
from tests.p4switch.fabric.test_workers import Worker, alone, same, splits, together


def work(ranks: Ranks, plan: Any, split: Any) -> dict[str, Any]:
    worker = Worker(plan, split, ranks.rank, exchange=ranks.exchange)
    worker.run()
    parts = ranks.ask_all(worker.part())
    return together(worker, parts) if ranks.first else {}


def compare(ranks: Ranks, examples: int) -> None:
    @settings(deadline=None, max_examples=examples, database=None)
    @given(st.data())
    def drawn(data: st.DataObject) -> None:
        plan = data.draw(networks())
        split = data.draw(splits(plan, ranks.count))
        ranks.ask_all((plan, split))
        same(work(ranks, plan, split), alone(plan))

    drawn()
    ranks.ask_all(None)


if __name__ == "__main__":
    ranks = Ranks(mpi4py.MPI)
    if ranks.first:
        compare(ranks, int(sys.argv[1]))
    else:
        while (task := ranks.ask_all(None)[0]) is not None:
            work(ranks, *task)
    assert not shared_memory(), "a rank that is killed leaves it behind"
