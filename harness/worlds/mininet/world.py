"""Mininet world: a run on real frames, from the network to the recording."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import click

from control_plane import controller, pipelines
from control_plane.program_ledger import Kind
from control_plane.rerouting import Rerouting
from harness.measure.metrics import rates_table
from harness.measure.recording import Progress, Recording, Writing
from harness.plan.probes import HostProbe, QueueProbe, probes_of
from harness.plan.probes.readings import Readings
from harness.plan.run import Run
from harness.plan.switch_programs import Pipe
from harness.workloads.collective_record import collective_tables
from harness.worlds.mininet import fidelity, ledger, probing
from harness.worlds.mininet.agreement import agreement, flows_of, least_share
from harness.worlds.mininet.coordinator import Coordinator
from harness.worlds.mininet.dilation import choose, measure
from harness.worlds.mininet.isolation import private_network
from harness.worlds.mininet.launcher import Launcher
from harness.worlds.mininet.messages import Configure, Finished
from harness.worlds.mininet.network import Network, network, port_changes, switch_plans, trimming
from harness.worlds.mininet.prompt import Prompt, while_running
from harness.worlds.mininet.reroutes import Rerouter
from harness.worlds.mininet.state import RunFolder
from harness.worlds.mininet.switch_kinds import switch_class
from harness.worlds.mininet.switches import PlannedSwitch, SwitchPlan
from harness.worlds.mininet.watching import Watcher, watched
from harness.worlds.session import Session
from harness.worlds.switch_pipelines import pipelines_of, setups_of
from p4switch import interruption
from p4switch.errors import UserError
from p4switch.p4runtime.client import GrpcClient
from topologies import Switch

_CONTROLLERS = 4  # number of switches that are programmed at a time
_START_S = 60.0  # time for all switch processes to listen
_LEAD_S = 0.5  # time between the start message and model time 0
_DRAIN_RTTS = 2  # time in which frames may still arrive when all flows are done
_END_RTTS = 100  # time in which hosts may still report the ends of their flows to switches
_VERIFY_S = 10.0
_ATTEMPTS = 2
_SIGNALS = (*interruption.ENDING, interruption.AGAIN)


class MininetWorld:
    """Mininet world of one run, which is built and then `run` once.

    Raises UserError for features that this world does not have.
    """

    def __init__(
        self,
        run: Run,
        *,
        capture: bool = False,
        switch: str = "builtin",
        dilation: int | None = None,
        compiler: str = "builtin",
        wall_limit_s: float = 600.0,
        watcher: Watcher | None = None,
        prompt: Prompt | None = None,
    ) -> None:
        """Prepare the world.

        `dilation` is the wall-clock time of a unit of model time. None chooses one that suits the
        machine, and a larger one if the machine did not keep up. `prompt` is the moment at which
        Mininet's own prompt opens: before model time begins, at a time of it, or after it has
        ended.
        """
        if run.scenario.switch.pfc.enabled and run.scenario.switch.pfc.reaction_ns:
            raise UserError("switch.pfc.reaction_ns: the Mininet world has no such delay; expected 0")
        probing.require(probes_of(run))
        self.run_plan = run
        self._attempts = _ATTEMPTS if dilation is None and prompt is None else 1
        self._prompt = prompt
        self._switch, self._compiler = switch, compiler
        self._class: type[PlannedSwitch] = switch_class(switch)
        self._check_architecture()
        self._check_loops()
        self._changes = port_changes(run)
        if self._changes and not self._class.changes_links:
            raise UserError(
                f"events: switch {switch!r} neither changes its links nor loses packets; expected --switch builtin, or "
                "neither events nor links with loss"
            )
        if not self._class.changes_links and any(link.framing_bytes is not None for link in run.topology.links):
            raise UserError(
                f"topology.links: switch {switch!r} has no framing_bytes of single links; expected --switch builtin"
            )
        if not self._class.trims and any(trimming(run).values()):
            raise UserError(f"--switch {switch}: its traffic manager does not trim; expected --switch builtin")
        settings = run.scenario.switch
        if not self._class.knows_colors and (settings.yellow_bytes, settings.red_bytes) != (None, None):
            raise UserError(
                f"switch.yellow_bytes, switch.red_bytes: packets have no colour in switch {switch!r}; expected none of "
                "them, or --switch builtin"
            )
        self.dilation = choose(run, measure(), self._class.packets_per_s_of_link) if dilation is None else dilation
        if watcher is not None and not self._class.counts_meanwhile:
            raise UserError(f"--watch: switch {switch!r} has no counts before a run ends; expected --switch builtin")
        self._watcher = watcher
        self._capture = capture
        self._wall_limit_s = wall_limit_s
        self._reports: list[Finished] = []
        self._counted: Mapping[Kind, int] = {}  # counts of the program, by name
        self._residue: dict[str, int] | None = None
        self._ended_ns = 0  # CLOCK_MONOTONIC

    def _check_architecture(self) -> None:
        wanted, run = self._class.architecture, self.run_plan
        for each in run.switch_programs if wanted is not None else ():
            declared = pipelines.architecture(run.build(each))
            if declared is not None and declared.name != wanted:
                raise UserError(
                    f"--switch {self._switch}: it runs programs for {wanted}, and {each.program.source.name} is for "
                    f"{declared.name}; expected --switch builtin"
                )

    def _check_loops(self) -> None:
        for each in self.run_plan.switch_programs:
            if each.loopback.ports and not self._class.has_loops:
                key = each.key_of("loopback.ports")
                raise UserError(f"{key}: switch {self._switch!r} has no such ports; expected --switch builtin, or none")

    def run(self, progress: Progress | None = None) -> Recording:
        """Build the network, run, and remove it; repeat more slowly if the machine did not keep up.

        The run is compared with that of the virtual world, unless the times of its switches are not
        meaningful. Raises CheckError (also ProcessDiedError) if that fails.
        """
        given_up: list[int] = []
        while True:
            recording = self._once(progress)
            figures = recording.fidelity
            assert figures is not None
            figures["given_up"] = given_up
            # If there are caveats, a larger dilation does not help.
            enough = figures["kept_up"] or figures["caveats"] or recording.ended == "wall limit"
            if enough or len(given_up) + 1 == self._attempts:
                break
            given_up.append(self.dilation)
            self.dilation = figures["dilation_to_use"]
        if not figures["caveats"]:
            recording.agreement = agreement(self.run_plan, recording, self._compiler)
        return recording

    def _once(self, progress: Progress | None) -> Recording:
        with contextlib.ExitStack() as stack:
            began = time.monotonic()
            folder = stack.enter_context(RunFolder(self.run_plan.name))
            stack.enter_context(_signals_restored())
            stack.enter_context(private_network())
            launcher = stack.enter_context(Launcher(folder.path))
            stack.callback(_ignore_signals)  # first action at the end, for whatever reason
            return self._inside(folder, launcher, began, progress, stack)

    def _inside(
        self,
        folder: RunFolder,
        launcher: Launcher,
        began: float,
        progress: Progress | None,
        stack: contextlib.ExitStack,
    ) -> Recording:
        run = self.run_plan
        # This puts the programs that the switches will load into the cache.
        setups = setups_of(run, pipelines_of(run, self._compiler))
        plans = switch_plans(run, self.dilation, folder)
        net = stack.enter_context(network(run, plans, self._class, launcher))
        launcher.wait_ready()
        net.start_switches()
        coordinator = self._start_hosts(net, launcher, folder, stack)
        self._program(net, launcher, setups)
        coordinator.accept(self._configurations(net))
        addresses = {name: net.switches[pipe.switch].pipe_address(pipe.number) for name, pipe in run.pipes.items()}
        pids = [launcher.pid, *_watched_shells(net, launcher), *launcher.pids()]
        folder.record(pids, addresses)
        rtt_s = run.base_rtt_ns() * self.dilation * 1e-9
        if not run.scenario.switch.loss:  # with random losses a missing frame proves nothing
            coordinator.verify(run.topology, _VERIFY_S + 2 * rtt_s)
        set_up_s = time.monotonic() - began
        if self._prompt == "start":
            net.prompt()
        before = _counted(net.switches, launcher)  # frames for the verification do not belong to the run

        self._readings = Readings()
        reader = probing.SwitchReader(run, addresses, self._readings, setups, self._class.has_registers)
        stack.callback(reader.close)
        settings = self._controller_settings(next(iter(plans.values())))
        rerouter = Rerouter(run, addresses, Rerouting(run.topology, setups, settings))
        stack.callback(rerouter.close)
        meter = fidelity.Meter([os.getpid(), *pids])
        epoch_ns = self._epoch_ns(plans)
        for name, switch in net.switches.items():
            if changes := self._changes.get(name):
                switch.schedule(changes, epoch_ns)
        rerouter.start(epoch_ns, self.dilation)
        reader.start(epoch_ns, self.dilation)
        if self._watcher is not None:
            self._watcher.begin(run)
            records = coordinator.session.records
            progress = watched(self._watcher, net.switches, epoch_ns, self.dilation, records, progress)
        ended = self._go(
            partial(coordinator.run, epoch_ns, self.dilation, run.limit_ns, self._wall_limit_s, progress), net, epoch_ns
        )
        rerouter.stop()
        reader.stop()
        self._residue = reader.residue(rtt_s, _END_RTTS * rtt_s) if ended == "done" else None
        coordinator.freeze()
        _sleep(_DRAIN_RTTS * rtt_s + 0.1, launcher)
        meter.stop()
        self._ended_ns = time.monotonic_ns()
        if self._prompt == "end":
            net.prompt()
        reader.read_last((self._ended_ns - epoch_ns) // self.dilation)
        self._counted = reader.count()
        launcher.stop(net.switches)
        counters = {name: switch.counters() for name, switch in net.switches.items()}
        caveats = dict.fromkeys(caveat for switch in net.switches.values() for caveat in switch.caveats())
        self._reports = coordinator.finish()
        return self._recording(coordinator, counters, before, list(caveats), ended, epoch_ns, meter, set_up_s)

    def _start_hosts(
        self, net: Network, launcher: Launcher, folder: RunFolder, stack: contextlib.ExitStack
    ) -> Coordinator:
        """Start a process for each host, and return the coordinator to which they will connect."""
        run = self.run_plan
        names = [host.name for host in run.topology.hosts]
        overhead_ns = run.scenario.nic.os_overhead_ns
        coordinator = Coordinator(
            names, run.traffic(), run.addresses, launcher, folder.path, run.flow_columns, overhead_ns
        )
        stack.callback(coordinator.close)
        for name in names:
            launcher.fork(name, "host", [name, coordinator.address], namespace_pid=net.hosts[name].pid)
        return coordinator

    def _go(self, coordinate: Callable[[], str], net: Network, epoch_ns: int) -> str:
        """Return how the run has ended; model time continues while a prompt is open during the run."""
        if not isinstance(self._prompt, int):
            return coordinate()

        def open_prompt(over: bool) -> None:
            now_us = (time.monotonic_ns() - epoch_ns) / self.dilation / 1e3
            goes_on = f"goes on, {self.dilation} times slower than the clock"
            click.echo(f"--cli: {now_us:,.1f} us of model time, which {'is over' if over else goes_on}", err=True)
            net.prompt()

        wait_s = (epoch_ns + self._prompt * self.dilation - time.monotonic_ns()) / 1e9
        return while_running(coordinate, wait_s, open_prompt)

    # Set-up

    def _epoch_ns(self, plans: dict[str, SwitchPlan]) -> int:
        """Return model time 0: in the near future, at a multiple of the programs' common period.

        The period is that of the switches' clock. BMv2 has no such clock: it counts from the start
        of its process.
        """
        soon_ns = time.monotonic_ns() + int(_LEAD_S * 1e9)
        step_ns = self.run_plan.common_period_ns * self.dilation
        origin_ns = next(iter(plans.values())).origin_ns
        return soon_ns + (origin_ns - soon_ns) % step_ns if step_ns else soon_ns

    def _configurations(self, net: Network) -> dict[str, Configure]:
        run, scenario = self.run_plan, self.run_plan.scenario
        cc, lb = scenario.cc[0], scenario.lb[0]
        requests = {}
        senders = [
            (name, protocol.name, protocol.resolved(), balancing.name, scenario.load_balancers.get(balancing.name, {}))
            for name, (protocol, balancing) in run.group_senders.items()
        ]
        for host, nic in zip(run.topology.hosts, run.nic_configs(), strict=True):
            link = run.topology.uplink(host)
            requests[host.name] = Configure(
                nic=nic,
                extensions=scenario.extensions,
                cc=cc,
                cc_parameters=scenario.protocols.get(cc, {}),
                lb=lb,
                lb_parameters=scenario.load_balancers.get(lb, {}),
                interface=net.host_interface(host.name),
                rate_bps=link.rate_bps,
                delay_ns=link.delay_ns + scenario.switch.latency_ns,
                framing_bytes=scenario.framing_bytes + link.extra_bytes,
                dilation=self.dilation,
                rate_interval_ns=scenario.record.rate_interval_ns,
                probes=[probe for probe in run.probes if isinstance(probe, HostProbe) and probe.covers(host.name)],
                columns=tuple(run.flow_columns),
                capture=self._capture,
                changes=self._changes.get(host.name, []),
                senders=senders,
            )
        return requests

    def _controller_settings(self, plan: SwitchPlan) -> controller.Settings:
        tick_ns = Fraction(self._class.tick_ns(self.dilation))
        return self.run_plan.controller_settings(self._class.cell_bytes(plan), tick_ns)

    def _program(self, net: Network, launcher: Launcher, setups: Mapping[str, controller.SwitchSetup]) -> None:
        """Install every switch's pipelines and entries over P4Runtime; `setups` are by pipe."""
        run = self.run_plan
        pipes: dict[str, list[Pipe]] = {}
        for pipe in run.pipes.values():
            pipes.setdefault(pipe.switch, []).append(pipe)

        def one(switch: Switch, sessions: Mapping[str, GrpcClient]) -> None:
            node = net.switches[switch.name]
            for name, client in sessions.items():
                setup = setups[name]
                view = setup.view(run.topology, switch, self._controller_settings(node.plan))
                with client:
                    controller.install(client, setup.program, setup.parameters, view)
            node.configure()

        pool = ThreadPoolExecutor(_CONTROLLERS, "controller")
        clients: list[GrpcClient] = []
        try:
            end = time.monotonic() + _START_S
            futures = []
            for switch in run.topology.switches:
                node = net.switches[switch.name]
                path = Path(node.address.removeprefix("unix:"))
                while not path.exists():
                    launcher.check()
                    if time.monotonic() > end:
                        raise UserError(f"switch {switch.name} does not listen within {_START_S:.0f} s")
                    time.sleep(0.01)
                sessions = {
                    pipe.name: GrpcClient(*node.pipe_address(pipe.number), timeout_s=_START_S)
                    for pipe in pipes[switch.name]
                }
                clients += sessions.values()
                futures.append(pool.submit(one, switch, sessions))
            for future in futures:
                while not future.done():
                    launcher.check()
                    time.sleep(0.01)
                future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            # A client may be waiting for a switch that does not answer, and would keep Python from
            # ending.
            for client in clients:
                client.close()

    # After the run

    def captured(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield (time_ns, "from to", frame) of the frames on hosts' links, in order of their first bits."""
        topology = self.run_plan.topology
        frames = []
        for host, report in zip(topology.hosts, self._reports, strict=True):
            there = topology.uplink(host).node
            names = {True: f"{host.name} to {there}", False: f"{there} to {host.name}"}
            frames += [(time_ns, names[sent], frame) for time_ns, sent, frame in report.captured]
        frames.sort(key=lambda row: row[0])
        yield from frames

    def write_more(self, folder: Path, writing: Writing | None = None) -> None:
        """Write hosts.pcapng, if requested."""
        if self._capture:
            from harness.measure.pcap import write_pcap  # imported here, because only captures need scapy

            write_pcap(folder / "hosts.pcapng", self.captured())

    def _add_readings(self, probe: HostProbe, end_ns: int) -> None:
        """Add the hosts' readings, by time and host."""
        rows = sorted(
            (time_ns, host.name, row)
            for host, report in zip(self.run_plan.topology.hosts, self._reports, strict=True)
            for time_ns, row in report.readings.get(probe.name, [])
            if time_ns <= end_ns
        )
        for time_ns, host_name, row in rows:
            self._readings.add(probe, time_ns, host_name, [row])

    def _recording(
        self,
        coordinator: Coordinator,
        counters: ledger.Counters,
        before: ledger.Counters,
        caveats: list[str],
        ended: str,
        epoch_ns: int,
        meter: fidelity.Meter,
        set_up_s: float,
    ) -> Recording:
        run, reports, session = self.run_plan, self._reports, coordinator.session
        record = run.scenario.record
        nodes = [host.name for host in run.topology.hosts] + [switch.name for switch in run.topology.switches]
        collectives = [report.session.collectives for report in reports]
        over = [flow.completed_ns for flow in session.records]
        over += [report.ended_ns for report in collectives if report is not None]
        end_ns = max(over) if ended == "done" else (self._ended_ns - epoch_ns) // self.dilation
        session.end([report.session for report in reports])
        _add_rates(session, reports, end_ns)
        clock = {"end_ns": end_ns, "epoch_ns": epoch_ns, "dilation": self.dilation}
        queues = ledger.queue_samples(
            ledger.sampled_ports(run, counters), counters, interval_ns=record.queue_interval_ns, **clock
        )
        for probe in run.probes:
            if isinstance(probe, QueueProbe):
                ledger.read_queues(probe, run, counters, self._readings, **clock)
            elif isinstance(probe, HostProbe):
                self._add_readings(probe, end_ns)
        totals = {name: sum(report.nic[name] for report in reports) for name in reports[0].nic}
        totals["malformed"] += sum(report.bad_icrc for report in reports)
        totals["misdelivered"] += session.forged
        recording = Recording(
            ended=ended,
            end_ns=end_ns,
            events=sum(port["rx_packets"] for switch in counters.values() for port in switch["ports"]),
            flows=session.records,
            series={"queues": queues},
            tables={
                "rates": rates_table(session.rates, record.rate_interval_ns),
                **collective_tables(session.collectives, [host.name for host in run.topology.hosts]),
                **self._readings.tables(run),
            },
            port_stats=ledger.port_stats(counters, nodes, self.dilation),
            queue_stats={},
            pfc_stats=ledger.pfc_stats(counters, nodes, self.dilation),
            node_names=nodes,
            conservation=ledger.conservation(counters, reports, self._counted),
            pfc_events=[],
            nic_totals=totals,
            workload=session.traffic.summary(),
            failed_asserts=ledger.failed_asserts(counters),
            residue=self._residue,
            cpu_s=meter.cpu_s,
            set_up_s=set_up_s,
            peak_memory_bytes=meter.memory_bytes,
            world="mininet",
            switch=self._switch,
            compiler=self._compiler,
        )
        recording.fidelity = fidelity.judge(
            dilation=self.dilation,
            base_rtt_ns=run.base_rtt_ns(),
            least_share=least_share(flows_of(run, recording)),
            lateness=_lateness(run, counters, before, reports),
            lost=ledger.lost_by_kernel(counters, reports),
            meter=meter,
            set_up_s=set_up_s,
            caveats=caveats,
        )
        return recording


def _watched_shells(net: Network, launcher: Launcher) -> list[int]:
    """Let the launcher watch Mininet's shells, and return their process ids."""
    shells = net.shells()
    for name, shell in shells.items():
        launcher.watch(f"Mininet's shell of {name}", shell)
    return [shell.pid for shell in shells.values()]


def _counted(switches: Mapping[str, PlannedSwitch], launcher: Launcher) -> ledger.Counters:
    """Return the current counts of the switches that report them."""
    asked_ns = time.monotonic_ns()
    telling = {name: switch for name, switch in switches.items() if switch.counts_meanwhile}
    for switch in telling.values():
        switch.count()
    by_switch: dict[str, Mapping[str, Any]] = {}
    while len(by_switch) < len(telling):
        launcher.check()
        for name, switch in telling.items():
            counted = switch.counted_so_far()
            if counted is not None and counted["monotonic_ns"] >= asked_ns:
                by_switch[name] = counted
        time.sleep(0.01)
    return by_switch


def _lateness(
    run: Run, counters: ledger.Counters, before: ledger.Counters, reports: list[Finished]
) -> list[fidelity.Lateness]:
    """Return the lateness of all hosts' frames, and of switches' frames since the counts `before`."""
    switches = len(run.base_rtts_ns) - 1  # number of switches on the longest path
    hosts = [(report.lag_log2_ns, report.lag_sum_ns) for report in reports]
    of_hosts = fidelity.total(lags for lags, _ in hosts), sum(lag_ns for _, lag_ns in hosts)
    lateness = [fidelity.Lateness("hosts", 2, *of_hosts)]
    if before:
        (all_of_them, then), (late_ns, late_then_ns) = (
            (fidelity.total(counted["lag_log2_ns"] for counted in each.values()) for each in (counters, before)),
            (sum(counted["lag_sum_ns"] for counted in each.values()) for each in (counters, before)),
        )
        lags = [now - earlier for now, earlier in zip(all_of_them, then, strict=True)]
        lateness.append(fidelity.Lateness("switches", 2 * switches, lags, late_ns - late_then_ns))
    return lateness


def _add_rates(session: Session, reports: list[Finished], end_ns: int) -> None:
    """Add the senders' samples, with the receivers' arrivals in the same intervals."""
    ends = {(host, connection.number) for connection in session.connections for host in connection.destinations}
    arrivals = sorted(
        (time_ns, number, host, total)
        for host, report in enumerate(reports)
        for time_ns, number, total in report.arrivals
        if (host, number) in ends
    )
    latest: dict[tuple[int, int], int] = {}  # by host and connection; connections without arrivals report nothing
    together: dict[int, int] = {}  # by connection
    arrived: dict[tuple[int, int], int] = {}
    for time_ns, number, host, total in arrivals:
        together[number] = together.get(number, 0) + total - latest.get((host, number), 0)
        latest[host, number] = total
        arrived[time_ns, number] = together[number]
    samples = sorted(sample for report in reports for sample in report.rates if sample.time_ns <= end_ns)
    session.note_rates(samples, lambda sample: arrived.get((sample.time_ns, sample.number)))


def _sleep(seconds: float, launcher: Launcher) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        launcher.check()
        time.sleep(min(left, 0.1))


@contextlib.contextmanager
def _signals_restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_signals() -> None:
    """Ignore signals at the end of a run, which takes seconds and cleans everything up."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
