"""The run's side of the conversation with its hosts: set-up, flows, and what became of them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TypeVar

from harness.errors import CheckError
from harness.measure.flow_record import FlowRecord
from harness.measure.recording import Progress
from harness.plan.experiment import Run
from harness.workloads import Flow, Traffic
from harness.worlds.mininet.launcher import Launcher
from harness.worlds.mininet.messages import (
    Completed,
    Configure,
    Connect,
    Delivered,
    Done,
    Finished,
    Freeze,
    Post,
    Report,
    Start,
    Verified,
    Verify,
)

FIRST_NUMBER = 2  # queue pairs 0 and 1 are InfiniBand's own, for management
_POLL_S = 0.5
_ANSWER_S = 30.0
_Answer = TypeVar("_Answer")


@dataclass
class Pair:
    """A connection and the flows on it, in order."""

    number: int
    source: int  # hosts, by index
    destination: int
    flows: list[FlowRecord] = field(default_factory=list)


class Coordinator:
    """Talks to the agents of all hosts, through a Unix socket in `folder`."""

    def __init__(self, run: Run, launcher: Launcher, folder: Path) -> None:
        self._run = run
        self._launcher = launcher
        self.address = str(folder / "hosts")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.address)
        self._listener.listen(len(run.topology.hosts))
        self._agents: list[Connection] = []
        self._index_of: dict[object, int] = {}
        self._traffic: Traffic = run.traffic()
        self.workload = self._traffic.summary
        self.records: list[FlowRecord] = []  # by flow index
        self.pairs: list[Pair] = []
        self._shared: dict[tuple[int, int, str], Pair] = {}
        self._done = 0

    def close(self) -> None:
        for agent in self._agents:
            agent.close()
        self._listener.close()

    # Setting up

    def accept(self, configurations: dict[str, Configure]) -> None:
        """Until the agents of all hosts are there and have their configuration, which is given by host."""
        arrived: dict[str, Connection] = {}
        while len(arrived) < len(configurations):
            if self._listener in wait([self._listener, self._launcher.connection], _POLL_S):
                connection = Connection(self._listener.accept()[0].detach())
                name = connection.recv()
                connection.send(configurations[name])
                arrived[name] = connection
            self._launcher.check()
        self._agents = [arrived[host.name] for host in self._run.topology.hosts]
        self._index_of = {agent: index for index, agent in enumerate(self._agents)}
        self._answers(Done)

    def verify(self, timeout_s: float) -> None:
        """Every host sends a frame to every other. Raises CheckError for what does not arrive."""
        hosts = self._run.topology.hosts
        for agent, host in zip(self._agents, hosts, strict=True):
            agent.send(Verify([str(other.address) for other in hosts if other is not host], timeout_s))
        lost = [
            f"{missing} to {host.address}"
            for host, answer in zip(hosts, self._answers(Verified, timeout_s + _ANSWER_S), strict=True)
            for missing in answer.missing
        ]
        if lost:
            more = f" and {len(lost) - 1} other pairs of hosts" if len(lost) > 1 else ""
            raise CheckError(f"the network does not work: within {timeout_s:.0f} s no frame came from {lost[0]}{more}")

    def _answers(self, kind: type[_Answer], timeout_s: float = _ANSWER_S) -> list[_Answer]:
        """One answer of each agent, in order; what else they tell is dealt with."""
        answers: dict[int, _Answer] = {}
        end = time.monotonic() + timeout_s
        while len(answers) < len(self._agents):
            for index, message in self._receive(_POLL_S):
                if isinstance(message, kind):
                    answers[index] = message
                else:
                    self._note(message)
            if time.monotonic() > end:
                silent = next(i for i in range(len(self._agents)) if i not in answers)
                raise CheckError(f"host {self._run.topology.hosts[silent].name} does not answer")
        return [answers[index] for index in range(len(self._agents))]

    def _receive(self, timeout_s: float) -> list[tuple[int, object]]:
        """What agents said. Raises ProcessDiedError if one of the run's processes has ended."""
        ready = wait([*self._agents, self._launcher.connection], timeout_s)
        if self._launcher.connection in ready:
            self._launcher.check()
        messages: list[tuple[int, object]] = []
        for agent in ready:
            index = self._index_of.get(agent)
            if index is None:
                continue
            try:
                while self._agents[index].poll():
                    messages.append((index, self._agents[index].recv()))
            except (EOFError, OSError):
                time.sleep(0.1)  # the launcher is about to know why
                self._launcher.check()
                raise CheckError(f"host {self._run.topology.hosts[index].name} ended") from None
        return messages

    # Running

    def run(self, epoch_wall_ns: int, dilation: int, wall_limit_s: float, progress: Progress | None) -> str:
        """Until all flows are done, or a limit; says which: "done", "limit", "wall limit"."""
        limit_ns = self._run.limit_ns
        end = time.monotonic() + wall_limit_s
        for agent in self._agents:
            agent.send(Start(epoch_wall_ns))
        self._add(self._traffic.flows)
        while self._done < len(self.records):
            for _, message in self._receive(_POLL_S):
                self._note(message)
            self._launcher.check()
            now_ns = max(0, (time.monotonic_ns() - epoch_wall_ns) // dilation)
            if progress is not None:
                progress(self._done, len(self.records), now_ns)
            if now_ns >= limit_ns:
                return "limit"
            if time.monotonic() > end:
                return "wall limit"
        return "done"

    def _add(self, flows: Iterable[Flow]) -> None:
        """New flows, in the order in which the virtual world starts them."""
        new = list(flows)
        for flow in new:
            flow.index = len(self.records)
            self.records.append(FlowRecord(flow, -1))
        for flow in sorted(new, key=lambda flow: (flow.start_ns, flow.index)):
            self._start(flow)

    def _start(self, flow: Flow) -> None:
        pair = self._pair(flow)
        record = self.records[flow.index]
        record.qp = pair.number
        pair.flows.append(record)
        self._agents[flow.source].send(
            Post(pair.number, flow.index, flow.size_bytes, flow.start_ns, flow.stop_ns)
        )

    def _pair(self, flow: Flow) -> Pair:
        """Flows have a connection of their own unless they name one."""
        key = (flow.source, flow.destination, flow.qp or "")
        if flow.qp is not None and key in self._shared:
            return self._shared[key]
        pair = Pair(FIRST_NUMBER + len(self.pairs), flow.source, flow.destination)
        self.pairs.append(pair)
        if flow.qp is not None:
            self._shared[key] = pair
        hosts = self._run.topology.hosts
        # The receiver first: its end is there before a frame can be.
        for here, there in ((flow.destination, flow.source), (flow.source, flow.destination)):
            self._agents[here].send(Connect(pair.number, str(hosts[there].address), flow.start_ns))
        return pair

    def _note(self, message: object) -> None:
        if isinstance(message, Delivered):
            record = self.pairs[message.number - FIRST_NUMBER].flows[message.sequence]
            record.note_delivered(message.time_ns, message.marked)
            self._add(self._traffic.on_delivered(record.flow, message.time_ns))
        elif isinstance(message, Completed):
            record = self.records[message.flow]
            record.note_sent(message.sent)
            self._done += 1
            self._add(self._traffic.on_completed(record.flow, record.completed_ns))

    # Ending

    def freeze(self) -> None:
        """No host says anything any more."""
        self._tell_all(Freeze())
        self._answers(Done)

    def finish(self) -> list[Finished]:
        """What each host knows; the agents end."""
        self._tell_all(Report())
        reports = self._answers(Finished)
        for report in reports:
            for flow, sent in report.unfinished.items():
                self.records[flow].note_sent(sent)
        for pair in self.pairs:
            report = reports[pair.destination]
            for record in pair.flows:
                record.note_end(report.marked.get(pair.number, 0), report.delivered_bytes.get(pair.number, 0))
        return reports

    def _tell_all(self, message: object) -> None:
        for agent in self._agents:
            agent.send(message)
