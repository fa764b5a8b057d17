"""Process of one host: its NIC on a raw socket, driven by the kernel's clock.

The run's coordinator controls it.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from functools import partial
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import click

from harness.columns import nics
from harness.errors import CodeError
from harness.plan.probes.base import HostProbe, Values
from harness.worlds.host_session import Connect, HostSession, Post, RateSample
from harness.worlds.mininet import isolation
from harness.worlds.mininet.driver import Driver
from harness.worlds.mininet.messages import (
    Advanced,
    Configure,
    Done,
    Finished,
    Freeze,
    PortChange,
    Report,
    Start,
    Verified,
    Verify,
)
from harness.worlds.mininet.port import RawPort
from harness.worlds.raised import NamedErrors
from host_agents import registry, wire
from host_agents.assignments import Assignment
from host_agents.nic import Nic
from host_agents.timers import NEVER
from p4switch import extensions

_PROBED_QPN = 1  # InfiniBand reserves it for management, so no NIC has it here
_PROBE_DSCP = 48  # priority 6, that of control packets
_FOREVER_S = 3600.0
_TELL_EVERY_NS = 1_000_000_000  # wall-clock time between two progress reports


@click.command()
@click.argument("name")
@click.argument("address")
def command(name: str, address: str) -> None:
    """Run host NAME, at the coordinator's Unix socket ADDRESS, until the coordinator ends."""
    isolation.exact_timers()
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(Client(address, family="AF_UNIX"))
        connection.send(name)
        configuration = connection.recv()
        port = RawPort(configuration.interface)
        stack.enter_context(_taken_from_the_kernel())
        agent = Agent(configuration, port, connection)
        connection.send(Done())
        request = connection.recv()
        if isinstance(request, Verify):
            connection.send(Verified(_verify(port, configuration.nic.address, request)))
            request = connection.recv()
        assert isinstance(request, Start)
        try:
            with NamedErrors(
                configuration.cc, configuration.lb, lambda: [(name, agent.host)], lambda: agent.driver.now_ns
            ):
                agent.run(request.epoch_wall_ns)
        except CodeError as error:
            with contextlib.suppress(EOFError, OSError):
                connection.send(error)
                connection.recv()  # returns nothing: the coordinator ends the run


def _taken_from_the_kernel() -> socket.socket:
    """Return a socket that keeps the kernel from answering each frame with "port unreachable"."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the smallest buffer
    taken.bind(("", wire.ROCE_PORT))
    return taken


def _verify(port: RawPort, address: str, request: Verify) -> list[str]:
    """Send a frame to each host, and return the addresses of hosts whose frame did not arrive in time."""
    own = wire.parse_address(address)
    missing = {wire.parse_address(other): other for other in request.addresses}
    for other in missing:
        header = wire.header(own, other, 0xC000, wire.ACKNOWLEDGE, _PROBED_QPN, after_bth_bytes=4, dscp=_PROBE_DSCP)
        port.send(wire.materialize(header))
    end = time.monotonic() + request.timeout_s
    while missing and (left := end - time.monotonic()) > 0:
        select.select([port], [], [], left)
        for _, frame in port.receive():
            if wire.is_roce(frame) and wire.dest_qpn(frame) == _PROBED_QPN:
                missing.pop(int.from_bytes(frame[wire.SOURCE : wire.SOURCE + 4], "big"), None)
    return sorted(missing.values())


class Agent:
    """NIC and everything that the coordinator can request from it."""

    def __init__(self, configuration: Configure, port: RawPort, connection: Connection) -> None:
        c = configuration
        for file in c.extensions:
            extensions.load(Path(file))
        self.nic = Nic(
            c.nic, registry.resolve(c.cc, c.cc_parameters), registry.resolve_load_balancer(c.lb, c.lb_parameters)
        )
        senders = {
            name: (registry.resolve(cc, parameters), registry.resolve_load_balancer(lb, lb_parameters))
            for name, cc, parameters, lb, lb_parameters in c.senders
        }
        self.host = HostSession(self.nic, connection.send, c.columns, senders=senders)
        self.driver = Driver(
            self.nic, port, rate_bps=c.rate_bps, delay_ns=c.delay_ns, framing_bytes=c.framing_bytes,
            dilation=c.dilation,
        )  # fmt: skip
        self.driver.captured = [] if c.capture else None
        for change in c.changes:
            self.driver.at(change.time_ns, partial(self._change_link, change))
        self._port = port
        self._connection = connection
        self._rates: list[RateSample] = []
        self._arrivals: list[tuple[int, int, int]] = []
        self._arrived: dict[int, int] = {}
        self._interval_ns = c.rate_interval_ns
        self._frozen = False
        self._reported = False
        if self._interval_ns:
            self.driver.at(self._interval_ns, self._sample)
        self._readings: dict[str, list[tuple[int, Values]]] = {}
        self._tell_every_ns = _TELL_EVERY_NS // c.dilation
        self.driver.at(self._tell_every_ns, self._tell)
        for probe in c.probes:
            self.driver.at(0, partial(self._read, probe))

    def run(self, epoch_wall_ns: int) -> None:
        """Run from model time 0 until the coordinator has the report."""
        self.driver.epoch_ns = epoch_wall_ns
        readable: list[Any] = [self._port, self._connection]
        while not self._reported:
            due = self.driver.next_due_ns()
            wait_s = min(max(due - time.monotonic_ns(), 0) * 1e-9, _FOREVER_S) if due < NEVER else _FOREVER_S
            ready, _, _ = select.select(readable, [], [], wait_s)
            # First the coordinator's messages, since it announces connections before their frames
            # can arrive.
            while self._connection in ready and not self._reported and self._connection.poll():
                self._carry_out(self._connection.recv())
            if self._frozen:
                for _ in self._port.receive():
                    pass
            else:
                self.driver.run(time.monotonic_ns())
            self.driver.flush(time.monotonic_ns)

    def _change_link(self, change: PortChange, _now_ns: int) -> None:
        self.driver.change_link(change.up, change.rate_bps, change.delay_ns, change.loss, change.seed)

    # Requests of the coordinator

    def _carry_out(self, request: object) -> None:
        if isinstance(request, Connect):
            self.driver.at(request.time_ns, lambda _: self.host.connect(request))
        elif isinstance(request, Post):
            self.driver.at(request.start_ns, lambda now_ns: self._post(request, now_ns))
        elif isinstance(request, Assignment):
            self.host.assign(request)
        elif isinstance(request, Freeze):
            self._frozen = True
            self.driver.freeze()
            self._connection.send(Done())
        elif isinstance(request, Report):
            for _ in self._port.receive():
                pass
            self._connection.send(self._finished())
            self._reported = True
            with contextlib.suppress(EOFError, OSError):
                # Returns nothing: ending before the coordinator would look like an accident.
                self._connection.recv()

    def _post(self, request: Post, now_ns: int) -> None:
        self.host.post(request, now_ns)
        if request.stop_ns is not None:
            self.driver.at(request.stop_ns, lambda _: self.host.stop(request))

    def _sample(self, now_ns: int) -> None:
        self._rates += self.host.sample(now_ns)
        for number, delivered in self.driver.delivered_bytes.items():
            if delivered != self._arrived.get(number):
                self._arrived[number] = delivered
                self._arrivals.append((now_ns, number, delivered))
        self.driver.at(now_ns + self._interval_ns, self._sample)

    def _tell(self, now_ns: int) -> None:
        self._connection.send(Advanced(self.host.advanced_bytes()))
        self.driver.at(now_ns + self._tell_every_ns, self._tell)

    def _read(self, probe: HostProbe, now_ns: int) -> None:
        self._readings.setdefault(probe.name, []).extend((now_ns, row) for row in probe.read(self.host))
        self.driver.at(now_ns + probe.interval_ns, partial(self._read, probe))

    def _finished(self) -> Finished:
        driver, port = self.driver, self._port
        return Finished(
            session=self.host.report(driver.delivered_bytes),
            rates=self._rates,
            arrivals=self._arrivals,
            readings=self._readings,
            nic=nics.counts((self.nic.stats,)),
            frames_sent=port.frames_sent + driver.unsent + driver.lost + driver.lost_at_random,
            frames_unsent=driver.unsent,
            frames_lost=driver.lost,
            frames_lost_at_random=driver.lost_at_random,
            frames_received=port.frames_received,
            pauses_received=port.pauses_received,
            send_failed=port.send_failed,
            socket_full=port.dropped(),
            bad_icrc=driver.bad_icrc,
            lag_log2_ns=driver.lag_log2_ns,
            lag_sum_ns=driver.lag_sum_ns,
            captured=driver.captured or [],
        )
