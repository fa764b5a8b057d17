"""World with a local world in each of several workers, whose values are combined.

See docs/decisions/0005-workers.md. All workers make the same calls, in the same order. The results
are valid at the leading worker. At the others they are only valid if the method says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from harness.measure.recording import Integers
from harness.plan.probes import Probe, QueueProbe
from harness.plan.probes.base import Values
from harness.worlds.host_session import HostReport, RateSample
from harness.worlds.local import Counts, LocalWorld, by_switch, most_resident_bytes
from harness.worlds.memory import MemoryLimit, private_bytes, resident_bytes
from harness.worlds.parallel import Crew
from host_agents.timers import NEVER

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class PartitionedWorld:
    """World in several processes, each of which has a local world and runs a part of the nodes."""

    def __init__(self, local: LocalWorld, crew: Crew, rank_of: Mapping[str, int]) -> None:
        """Prepare the world, whose workers exist in `at_work`.

        `rank_of` has the rank of each node's worker, by name.
        """
        self._local = local
        self._crew = crew
        self._rank_of = rank_of

    @property
    def leads(self) -> bool:
        """True in the process that writes and prints."""
        return self._crew.first

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the workers during the block."""
        with self._crew.at_work():
            network = self._local.network
            network.restrict([self._crew.has(node) for node in range(len(network.names))])
            yield

    def decided(self, value: _Value) -> _Value:
        """Return the decision of the first worker, at all workers."""
        return self._crew.agree(value)

    # State of flows, at all workers. If hosts take turns, each session has that of its own hosts.

    def finished(self) -> bool:
        """Return whether all flows and collectives are done."""
        return not self._crew.either(not self._local.finished())

    def progress(self) -> tuple[int, int]:
        """Return the progress of the run, as `Session.progress` does."""
        session = self._local.session
        if not session.divided:
            return session.progress
        parts = self._crew.gather(session.progress)
        return sum(done for done, _ in parts), sum(known for _, known in parts)

    def failures(self) -> int:
        """Return the number of flows that hosts have given up, at all workers."""
        own = self._local.session.failures
        if not self._local.session.divided:
            return own
        return self._crew.agree(sum(self._crew.gather(own)))

    def all_started(self, now_ns: int) -> bool:
        """Return whether every known flow has started, at all workers."""
        return not self._crew.either(not self._local.all_started(now_ns))

    def next_start_ns(self) -> int:
        """Return the start of the next flow; NEVER if there is none."""
        return self._crew.agree(min(self._crew.gather(self._local.next_start_ns()), default=NEVER))

    def under_way(self) -> bool:
        """Return whether a host has a flow to send or to receive, or a collective to continue."""
        return self._crew.either(self._local.under_way())

    # Activity of hosts

    def is_busy(self) -> bool:
        """Return, at all workers, whether an event that may cause progress exists anywhere."""
        return self._crew.either(self._local.is_busy())

    def moved(self) -> int:
        """Return the sum of `HostSession.moved` over all hosts."""
        return sum(self._crew.gather(self._local.moved()))

    def advanced_bytes(self) -> int:
        """Return the sum of `HostSession.advanced_bytes` over all hosts."""
        return sum(self._crew.gather(self._local.advanced_bytes()))

    def rate_samples(self, now_ns: int) -> list[RateSample]:
        """Return the samples of all connections that had something to send since the last call, in order."""
        return sorted(sample for part in self._crew.gather(self._local.rate_samples(now_ns)) for sample in part)

    def host_reports(self) -> dict[int, HostReport]:
        """Return the hosts' reports at the end, by host, without the bytes on their links.

        A session keeps the flows of its hosts' reports; `collect_details` passes them on.
        """
        own = self._local.host_reports()
        for host, report in own.items():
            self._local.session.note_incomplete(host, report.unfinished)
        hosts = range(len(self._local.network.hosts))
        passed = {host: replace(report, unfinished={}) for host, report in own.items()}
        return _merged(self._crew.gather(passed), hosts)

    def collect_details(self) -> None:
        """Pass all flows, and all details of flows, that the workers have to the first session.

        The first worker takes over the flows while the others prepare the details.
        """
        session = self._local.session
        if session.divided:
            started = self._crew.gather(None if self.leads else session.started())
            if self.leads:
                session.take_over(part for part in started if part is not None)
        for details in self._crew.gather(None if self.leads else session.details()):
            if details is not None:
                session.join(details)

    # Counters

    def readings(self, probe: Probe) -> dict[str, list[Values]]:
        """Return a probe's rows, by host or by pipe of a switch."""
        if isinstance(probe, QueueProbe):
            values = self._sums(self._local.queue_values(probe))
            return by_switch(probe.ports(self._local.run_plan), values) if self.leads else {}
        network = self._local.network
        hosts_first = (*network.names[: len(network.hosts)], *network.pipes)
        return _merged(self._crew.gather(self._local.readings(probe)), hosts_first)

    def link_counters(self) -> dict[str, Integers]:
        """Return the counters of all directions of links, in the order of `ports_of`."""
        own = self._local.link_counters()
        parts = self._crew.gather(own)
        return {name: np.sum([part[name] for part in parts], axis=0) for name in own} if parts else {}

    def delivered_bytes(self, numbers: Sequence[int]) -> list[int]:
        """Return these connections' bytes on the receivers' links, framing included."""
        return self._sums(self._local.delivered_bytes(numbers))

    def _sums(self, own: list[int]) -> list[int]:
        """Return the sums of all workers' counts; at workers other than the first, their own counts."""
        parts = self._crew.gather(own)
        return [sum(counts) for counts in zip(*parts, strict=True)] if parts else own

    # End of the run

    def counts(self) -> list[Counts]:
        """Return the counts of each process; `sampled_by` assigns queue samples to them."""
        return [counts for part in self._crew.gather(self._local.counts()) for counts in part]

    def sampled_by(self, switches: Sequence[str]) -> Integers:
        """Return the index in `counts` of the process that sampled each of these switches."""
        return np.array([self._rank_of[switch] for switch in switches], np.int64)

    def flow_state(self) -> dict[str, dict[str, int]]:
        """Return the state of flows that is left in registers of switches and at hosts, by node."""
        names = self._local.network.names
        switches_first = (*self._local.network.pipes, *names[: len(self._local.network.hosts)])
        return _merged(self._crew.gather(self._local.flow_state()), switches_first)

    def passed_points(self) -> dict[str, Sequence[int]]:
        """Return how often packets have passed each point of the program, by pipe."""
        return _merged(self._crew.gather(self._local.passed_points()), self._local.network.pipes)

    def collect_trace(self) -> None:
        """Collect all traced hops and captured frames in the first worker's fabric."""
        fabric = self._local.network.fabric
        for records in self._crew.gather(fabric.take_records()):
            fabric.add_records(records)

    # Cost

    def look_at_memory(self, limit: MemoryLimit, now_ns: int, queue_samples: int) -> None:
        """Raise UserError if memory does not suffice for the current state and the tables of the samples.

        With a limit of the run the first worker checks it for all workers; otherwise one worker of
        each machine checks it.
        """
        crew = self._crew
        if limit.is_given:
            held_bytes = crew.gather(self._own_bytes(resident_bytes()))
            if crew.first:
                limit.look(now_ns, queue_samples, sum(held_bytes))
        elif crew.first or crew.own_memory:
            limit.look(now_ns, queue_samples if crew.first else 0, resident_bytes())

    def cost(self, cpu_s: float) -> tuple[float, int]:
        """Return CPU time and memory of all workers together."""
        costs = self._crew.gather((cpu_s, self._own_bytes(most_resident_bytes())))
        return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)

    def _own_bytes(self, resident: int) -> int:
        """Return this process's memory without the pages shared with the process that it was forked from."""
        return resident if self._crew.first or self._crew.own_memory else private_bytes()


def _merged(parts: Sequence[Mapping[_Key, _Value]], order: Iterable[_Key]) -> dict[_Key, _Value]:
    """Return the union of several workers' mappings, in the given order."""
    whole = {name: value for part in parts for name, value in part.items()}
    return {name: whole[name] for name in order if name in whole}
