"""Coordinator of a run's hosts: set-up, messages between hosts and session, and the end."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TypeVar

from harness.columns.column import Column
from harness.errors import CheckError, CodeError
from harness.measure.recording import Progress
from harness.workloads import Traffic
from harness.worlds.host_session import Connect, Event, Post
from harness.worlds.mininet.launcher import Launcher
from harness.worlds.mininet.messages import (
    Advanced,
    Configure,
    Done,
    Finished,
    Freeze,
    Report,
    Start,
    Verified,
    Verify,
)
from harness.worlds.progress import DoneShare
from harness.worlds.session import Addresses, Session, outcome
from host_agents.assignments import Assignment
from host_agents.timers import NEVER
from topologies import Topology
from topologies.routing import joins

_POLL_S = 0.5
_ANSWER_S = 30.0
_Answer = TypeVar("_Answer")


class Coordinator:
    """Coordinator of the agents of all hosts with these names, through a Unix socket in `folder`."""

    def __init__(
        self,
        hosts: Sequence[str],
        traffic: Traffic,
        addresses: Addresses,
        launcher: Launcher,
        folder: Path,
        columns: Sequence[Column],
        os_overhead_ns: int = 0,
    ) -> None:
        """Prepare the run.

        `columns` are those of flows.
        """
        self._hosts = hosts
        self._launcher = launcher
        self.address = str(folder / "hosts")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.address)
        self._listener.listen(len(hosts))
        self._agents: list[Connection] = []
        self._index_of: dict[object, int] = {}
        self._advanced_bytes = [0] * len(hosts)
        self.session = Session(traffic, addresses, self._carry, columns, os_overhead_ns)

    def close(self) -> None:
        for agent in self._agents:
            agent.close()
        self._listener.close()

    # Set-up

    def accept(self, configurations: dict[str, Configure]) -> None:
        """Wait until the agents of all hosts have connected, and send each its configuration.

        Configurations are by host.
        """
        arrived: dict[str, Connection] = {}
        while len(arrived) < len(configurations):
            if self._listener in wait([self._listener, self._launcher.connection], _POLL_S):
                connection = Connection(self._listener.accept()[0].detach())
                name = connection.recv()
                connection.send(configurations[name])
                arrived[name] = connection
            self._launcher.check()
        self._agents = [arrived[host] for host in self._hosts]
        self._index_of = {agent: index for index, agent in enumerate(self._agents)}
        self._answers(Done)

    def verify(self, topology: Topology, timeout_s: float) -> None:
        """Make every host send a frame to every other host with a path to it.

        Raises CheckError for frames that do not arrive.
        """
        addresses = [str(host.address) for host in topology.hosts]
        for agent, host in zip(self._agents, topology.hosts, strict=True):
            others = [other for other in topology.hosts if other is not host and joins(topology, host, other)]
            agent.send(Verify([str(other.address) for other in others], timeout_s))
        lost = [
            f"{missing} to {address}"
            for address, answer in zip(addresses, self._answers(Verified, timeout_s + _ANSWER_S), strict=True)
            for missing in answer.missing
        ]
        if lost:
            more = f" and {len(lost) - 1} other pairs of hosts" if len(lost) > 1 else ""
            raise CheckError(f"the network does not work: within {timeout_s:.0f} s no frame came from {lost[0]}{more}")

    def _answers(self, kind: type[_Answer], timeout_s: float = _ANSWER_S) -> list[_Answer]:
        """Return one answer of each agent, in order, and process their other messages."""
        answers: dict[int, _Answer] = {}
        end = time.monotonic() + timeout_s
        while len(answers) < len(self._agents):
            for index, message in self._receive(_POLL_S):
                if isinstance(message, kind):
                    answers[index] = message
                else:
                    self._note(index, message)
            self._launcher.check()
            if time.monotonic() > end:
                silent = next(i for i in range(len(self._agents)) if i not in answers)
                raise CheckError(f"host {self._hosts[silent]} does not answer")
        return [answers[index] for index in range(len(self._agents))]

    def _receive(self, timeout_s: float) -> list[tuple[int, object]]:
        """Return messages of agents.

        Raises CodeError if a protocol raised an exception at an agent, and ProcessDiedError if one
        of the run's processes has ended.
        """
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
                    message = self._agents[index].recv()
                    if isinstance(message, CodeError):
                        raise message
                    messages.append((index, message))
            except (EOFError, OSError):
                time.sleep(0.1)  # the launcher will soon report the reason
                self._launcher.check()
                raise CheckError(f"host {self._hosts[index]} ended") from None
        return messages

    # The run

    def run(
        self, epoch_wall_ns: int, dilation: int, limit_ns: int, wall_limit_s: float, progress: Progress | None = None
    ) -> str:
        """Run until all flows have ended, or until a limit.

        Returns the reason of the end: "done", "failed", "limit" or "wall limit".
        """
        end = time.monotonic() + wall_limit_s
        share = DoneShare(self.session.traffic, limit_ns)
        for agent in self._agents:
            agent.send(Start(epoch_wall_ns))
        self.session.begin()
        self.session.start_due(NEVER)
        while not self.session.finished:
            for index, message in self._receive(_POLL_S):
                self._note(index, message)
            self._launcher.check()
            now_ns = max(0, (time.monotonic_ns() - epoch_wall_ns) // dilation)
            if progress is not None:
                done, known = self.session.progress
                progress(share.at(now_ns, sum(self._advanced_bytes), done, known), done, known, now_ns)
            if now_ns >= limit_ns:
                return "limit"
            if time.monotonic() > end:
                return "wall limit"
        return outcome(self.session.failures)

    def _carry(self, host: int, request: Connect | Post | Assignment) -> None:
        self._agents[host].send(request)

    def _note(self, index: int, message: object) -> None:
        if isinstance(message, Advanced):
            self._advanced_bytes[index] = message.bytes
        elif isinstance(message, Event):
            self.session.note(index, message)
            self.session.start_due(NEVER)  # agents have clocks of their own, so all starts are sent at once

    # The end

    def freeze(self) -> None:
        """Silence all hosts."""
        self._tell_all(Freeze())
        self._answers(Done)

    def finish(self) -> list[Finished]:
        """End the agents and return their reports."""
        self._tell_all(Report())
        return self._answers(Finished)

    def _tell_all(self, message: object) -> None:
        for agent in self._agents:
            agent.send(message)
