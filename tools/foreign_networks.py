"""Runs of other simulators' topology and traffic files without changes, with a list of the results.

    python -m tools.foreign_networks SOURCE ... [--seconds 20] [--out FOLDER]

A SOURCE is a simulator as its authors publish it, in a folder or a git repository (also a bare
one): HPCC's, ConWeave's, htsim, Ultra Ethernet's. A topology file is run with a permutation. A
matrix of connections is run with the smallest topology of its source that has enough nodes, and a
flow list with the topology beside it. Runs that are expected to take longer than `--seconds` of CPU
are only planned.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from harness.worlds.native_hosts import use_native_hosts
from p4switch.errors import Doubt, UserError

_STOP_NS = 4_000_000_000  # end of HPCC's simulations
_PACKETS_STOP_NS = 3_010_000_000  # end of its predecessor, whose flow lists count packets
_PACKET_BYTES = 1000  # packet size of that simulator
# Nothing is recorded over time, because it would take most of the memory.
_RECORD = {"queue_interval_ns": 0, "rate_interval_ns": 0}
_LOSSY = {"switch": {"buffer_bytes": "none"}}  # htsim has no PFC, and limits each queue instead of a buffer
_ENDLESS_NS = 100_000  # duration of flows that send until the end
_PERMUTATION = {"name": "permutation", "size_bytes": 10_000}


@dataclass(frozen=True)
class Case:
    """File, and the tables of the scenario that tries it."""

    source: str
    file: str
    tables: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """Outcome for one file; `verdict` is one of: ran, unfinished, planned, refused."""

    source: str
    file: str
    verdict: str
    hosts: int = 0
    flows: int = 0
    cpu_s: float = 0.0  # expected, or measured if it ran
    memory_gb: float = 0.0  # expected
    model_us: float = 0.0
    detail: str = ""


def unpacked(source: Path, folder: Path) -> Path:
    """Return the folder with a source's files; those of a bare repository are extracted into `folder`."""
    if not (source / "HEAD").is_file():
        return source
    listed = _git(source, "ls-tree", "-r", "--name-only", "HEAD").decode().splitlines()
    for name in listed:
        if name.endswith((".cm", ".topo")) or (name.endswith(".txt") and Path(name).parent.name in ("mix", "config")):
            done = subprocess.run(
                ["git", "-C", str(source), "show", f"HEAD:{name}"], capture_output=True, timeout=60, check=False
            )
            if done.returncode:
                click.echo(f"{'absent':10} {name}: not in this copy of the repository")
                continue
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(done.stdout)
    return folder


def _git(source: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(source), *arguments], capture_output=True, timeout=60, check=True).stdout


def cases(name: str, folder: Path) -> Iterator[Case]:
    """Return the cases of a source."""
    networks: dict[Path, int] = {}  # number of hosts by file
    for file in sorted([*folder.rglob("*.topo"), *folder.rglob("*.txt")]):
        kind = "htsim" if file.suffix == ".topo" else "ns3"
        if kind == "ns3" and not _is_ns3(file):
            continue
        topology = {"name": kind, "file": str(file)}
        if kind == "htsim":
            networks[file] = _declared(file)
        own = _LOSSY if kind == "htsim" else {}
        yield Case(name, str(file.relative_to(folder)), {"topology": topology, "workload": _PERMUTATION, **own})
        flows = file.with_name("flow.txt")
        if kind == "ns3" and file.stem == "topology" and flows.is_file():
            workload = {"name": "ns3", "file": str(flows)}
            tables = {"topology": topology, "workload": workload, "cc": "hpcc", "limit_ns": _STOP_NS}
            if _counts_packets(flows):
                packets = {"packet_bytes": _PACKET_BYTES}
                tables |= {"workload": workload | packets, "cc": "dcqcn", "limit_ns": _PACKETS_STOP_NS}
            yield Case(name, str(flows.relative_to(folder)), tables)
    for file in sorted(folder.rglob("*.cm")):
        fitting = sorted((hosts, str(path)) for path, hosts in networks.items() if hosts >= _declared(file))
        network = {"name": "htsim", "file": fitting[0][1]} if fitting else _fat_tree(_declared(file))
        workload = {"name": "htsim", "file": str(file)}
        endless = {"limit_ns": _ENDLESS_NS} if re.search(r"\bsize 0\b", file.read_text(errors="replace")) else {}
        yield Case(
            name, str(file.relative_to(folder)), {"topology": network, "workload": workload, **_LOSSY, **endless}
        )


def _fat_tree(hosts: int) -> dict[str, Any]:
    """Return the smallest fat-tree with that many hosts, like htsim's default topology."""
    return {"name": "fat-tree", "k": next(k for k in range(4, 66, 2) if k**3 // 4 >= hosts or k == 64)}


def _is_ns3(file: Path) -> bool:
    """Return whether a text begins like a topology: three numbers in the first line."""
    words = file.open(encoding="utf-8", errors="replace").readline().split()
    return len(words) == 3 and all(word.isdecimal() for word in words)


def _counts_packets(flows: Path) -> bool:
    """Return whether a flow list has packet counts, followed by start and stop times."""
    lines = flows.read_text(encoding="utf-8", errors="replace").splitlines()
    return any("." in line.split()[4] for line in lines[1:] if len(line.split()) > 4)


def _declared(file: Path) -> int:
    """Return the number of nodes that a file of htsim declares."""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if len(words) > 1 and words[0].lower() == "nodes":
            return int(words[1])
    return 0


def tried(case: Case, most_cpu_s: float) -> Outcome:
    """Return the outcome of a case."""
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", Doubt)
        outcome = _tried(case, most_cpu_s)
    details = [outcome.detail, *(str(doubt.message) for doubt in doubts if issubclass(doubt.category, Doubt))]
    return replace(outcome, detail="; ".join(filter(None, details)))


def _tried(case: Case, most_cpu_s: float) -> Outcome:
    # Imported here, because the compiled hosts have to be in place before.
    from harness.plan.how import How
    from harness.plan.resolve import plan
    from harness.plan.scenario import check
    from harness.worlds.expected import expected
    from p4cc.execution.make_world import maker

    try:
        (run,) = plan("foreign", check({"cc": "dcqcn", "record": _RECORD, **case.tables}), Path())
        foreseen = expected(run)
        measured = {
            "hosts": len(run.topology.hosts),
            "flows": foreseen.flows,
            "cpu_s": round(foreseen.run_s + foreseen.set_up_s, 1),
            "memory_gb": round(foreseen.memory_bytes / 1e9, 2),
        }
        if measured["cpu_s"] > most_cpu_s:
            return Outcome(case.source, case.file, "planned", **measured)
        began = time.process_time()
        recording = maker(How())(run).run()
    except UserError as error:
        return Outcome(case.source, case.file, "refused", detail=str(error).replace(case.source, ""))
    done = sum(flow.completed_ns >= 0 for flow in recording.flows)
    measured |= {"cpu_s": round(time.process_time() - began, 1), "model_us": recording.end_ns / 1e3}
    detail = "" if done == len(recording.flows) else f"{done} of {len(recording.flows)} flows done"
    return Outcome(case.source, case.file, "unfinished" if detail else "ran", detail=detail, **measured)


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--seconds", default=20.0, show_default=True, help="CPU time up to which a case is run.")
@click.option("--only", multiple=True, help="Files whose name contains this text.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the outcomes as JSON, too.")
def main(sources: tuple[Path, ...], seconds: float, only: tuple[str, ...], json_file: Path | None) -> None:
    """Try every file of these sources."""
    use_native_hosts()
    outcomes = []
    for source in sources:
        with tempfile.TemporaryDirectory(prefix="p4cc-foreign-") as scratch:
            for case in cases(source.name, unpacked(source, Path(scratch))):
                if only and not any(text in case.file for text in only):
                    continue
                outcome = tried(case, seconds)
                outcomes.append(outcome)
                costs = f"{outcome.hosts:6,} hosts {outcome.flows:7,} flows {outcome.cpu_s:8.1f} s"
                costs += f" {outcome.memory_gb:6.2f} GB {outcome.model_us:12,.0f} us"
                click.echo(f"{outcome.verdict:10} {costs}  {outcome.file}  {outcome.detail:.200}")
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=2) + "\n")
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in Counter(o.verdict for o in outcomes).items()))


if __name__ == "__main__":
    main()
