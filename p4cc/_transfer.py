"""RDMA between Linux hosts of a running network: an agent in each host's namespace, and one run.

The results measure the machine: time is wall-clock time, and links are not emulated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from harness.columns.flows import usual
from harness.errors import CheckError
from harness.measure.flow_record import FlowRecord, unknown
from harness.workloads import Flow, Traffic
from harness.worlds.mininet.coordinator import Coordinator
from harness.worlds.mininet.launcher import Launcher
from harness.worlds.mininet.messages import Configure
from harness.worlds.session import Hosts
from host_agents import registry
from host_agents.config import NicConfig
from host_agents.errors import HostError
from p4switch import extensions
from p4switch.errors import UserError, suggest

_LEAD_S = 0.2  # time between the start message and time 0
_LATEST_NS = 1 << 60


class Transfer(NamedTuple):
    """Message from one host to another, by name, `start_ns` after the agents are ready."""

    source: str
    destination: str
    size_bytes: int
    start_ns: int = 0


class Place(NamedTuple):
    """Location of an agent: a host's address, its interface, and a process in its network namespace."""

    address: str
    interface: str
    pid: int


def carry_out(
    transfers: Sequence[Transfer],
    places: Mapping[str, Place],
    *,
    cc: str,
    lb: str,
    cc_parameters: Mapping[str, Any],
    lb_parameters: Mapping[str, Any],
    timeout_s: float,
    **nic: Any,
) -> pd.DataFrame:
    """Make the transfers and return a row for each, in order, with times in ns and queue pair counters.

    `nic` are fields of NicConfig. Raises UserError for contradictory arguments before anything is
    started, and CheckError if a transfer is not done after `timeout_s`.
    """
    _check(transfers, places)
    names = list(dict.fromkeys(name for transfer in transfers for name in transfer[:2]))
    files = [wanted.file for name in (cc, lb) if (wanted := extensions.reference(name, Path.cwd())) is not None]
    cc = extensions.named(registry.KINDS["cc"], cc, Path.cwd())
    lb = extensions.named(registry.KINDS["lb"], lb, Path.cwd())
    nics = _nic_configs([places[name] for name in names], cc, lb, cc_parameters, lb_parameters, nic)
    columns = tuple(usual())
    configurations = {
        name: Configure(
            nic=config,
            extensions=[str(file) for file in files],
            cc=cc,
            cc_parameters=dict(cc_parameters),
            lb=lb,
            lb_parameters=dict(lb_parameters),
            interface=places[name].interface,
            rate_bps=config.line_rate_bps,
            delay_ns=0,
            framing_bytes=0,
            dilation=1,
            rate_interval_ns=0,
            probes=[],
            columns=columns,
            capture=False,
            changes=[],
        )
        for name, config in zip(names, nics, strict=True)
    }
    records = _records(transfers, places, configurations, timeout_s)
    return _table(transfers, records)


def _nic_configs(
    places: Sequence[Place],
    cc: str,
    lb: str,
    cc_parameters: Mapping[str, Any],
    lb_parameters: Mapping[str, Any],
    options: Mapping[str, Any],
) -> list[NicConfig]:
    """Return the hosts' NIC configurations. Raises UserError for options that they cannot have."""
    known = [field.name for field in dataclasses.fields(NicConfig)]
    for name in options:
        if name not in known:
            raise UserError(f"transfer: unknown option {name!r}; {suggest(name, known)}")
    try:
        protocol = registry.resolve(cc, cc_parameters)
        balancer = registry.resolve_load_balancer(lb, lb_parameters)
        selective = protocol.info.selective or balancer.info.per_packet
        nic = {"reliability": "selective-repeat" if selective else "go-back-n", **options}
        protocol.check_reliability(nic["reliability"])
        return [NicConfig(place.address, seed=1 + number, **nic) for number, place in enumerate(places)]
    except HostError as error:
        raise UserError(str(error)) from None


def _records(
    transfers: Sequence[Transfer],
    places: Mapping[str, Place],
    configurations: dict[str, Configure],
    timeout_s: float,
) -> Sequence[FlowRecord]:
    """Make the transfers between configured hosts, and return their records."""
    names, nics = list(configurations), [configured.nic for configured in configurations.values()]

    def addresses(sources: Hosts, destinations: Hosts) -> tuple[str, str]:
        return nics[sources[0]].address, nics[destinations[0]].address

    index_of = {name: index for index, name in enumerate(names)}
    flows = [Flow(index_of[t.source], index_of[t.destination], t.size_bytes, t.start_ns) for t in transfers]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="p4cc-agents-")))
        launcher = stack.enter_context(Launcher(folder))
        launcher.wait_ready()
        coordinator = Coordinator(names, Traffic(flows), addresses, launcher, folder, tuple(usual()))
        stack.callback(coordinator.close)
        for name in names:
            launcher.fork(name, "host", [name, coordinator.address], namespace_pid=places[name].pid)
        coordinator.accept(configurations)
        epoch_ns = time.monotonic_ns() + int(_LEAD_S * 1e9)
        ended = coordinator.run(epoch_ns, 1, _LATEST_NS, timeout_s)
        coordinator.freeze()
        coordinator.session.end([finished.session for finished in coordinator.finish()])
    records = coordinator.session.records
    if ended != "done":
        raise CheckError(_shortfall(transfers, records, coordinator.session.failed, timeout_s))
    return records


def _shortfall(
    transfers: Sequence[Transfer], records: Sequence[FlowRecord], failed: Collection[int], timeout_s: float
) -> str:
    """Return why transfers did not complete: a failed one, by its place, or a slow one."""
    missing = [place for place, r in enumerate(records) if min(r.delivered_ns, r.completed_ns) < 0]
    done = f"{len(records) - len(missing)} of {len(records)} transfers are done"
    if failed:
        lost = transfers[min(failed)]
        return f"{done}; that from {lost.source} to {lost.destination} has failed: its retries are used up"
    slow = transfers[missing[0]]
    return f"{done} after {timeout_s:g} s; that from {slow.source} to {slow.destination} is not"


def _check(transfers: Sequence[Transfer], places: Mapping[str, Place]) -> None:
    if not transfers:
        raise UserError("transfers: none; expected at least one")
    for transfer in transfers:
        for name in (transfer.source, transfer.destination):
            if name not in places:
                raise UserError(f"transfers: no host {name!r}; {suggest(name, list(places))}")
        if transfer.source == transfer.destination:
            raise UserError(f"transfers: {transfer.source!r} sends to itself; expected another host")
        if transfer.size_bytes < 1 or not 0 <= transfer.start_ns < _LATEST_NS:
            raise UserError(f"transfers: {tuple(transfer)}; expected a size of at least a byte, and a start from 0 on")


def _table(transfers: Sequence[Transfer], records: Sequence[FlowRecord]) -> pd.DataFrame:
    table = pd.DataFrame(transfers, columns=Transfer._fields)
    table["fct_ns"] = [record.delivered_ns - record.flow.start_ns for record in records]
    for name in unknown(usual()):
        table[name] = [record.columns[name] for record in records]
    return table
