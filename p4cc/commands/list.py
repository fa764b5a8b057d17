"""`p4cc list`: everything that can be run or named in a scenario."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click
from pydantic_core import to_jsonable_python

from p4switch.errors import lookup

if TYPE_CHECKING:
    from p4cc.reference.keys import Key


def _scenarios() -> list[dict[str, Any]]:
    from harness.papers import paper_of
    from harness.plan import scenario

    entries = []
    for name, path in scenario.built_in().items():
        checked = scenario.check(scenario.read(path))
        entries.append({"name": name, "summary": checked.title, "paper": paper_of(path), "claims": checked.claims})
    return entries


def _sweeps() -> list[dict[str, Any]]:
    from harness.papers import paper_of
    from p4cc.execution import sweep

    loaded = [(name, path, sweep.load(name)[0]) for name, path in sweep.built_in().items()]
    return [
        {"name": name, "summary": checked.title, "paper": paper_of(path), "claims": checked.claims}
        for name, path, checked in loaded
    ]


def _protocols() -> list[dict[str, Any]]:
    from host_agents import registry
    from p4cc.reference import keys

    return [
        {
            "name": name,
            "summary": info.summary,
            "source": info.source,
            "program": info.program,
            "mechanisms": list(info.mechanisms),
            "parameters": _records(keys.protocol_keys(info)),
        }
        for name, info in registry.protocols().items()
    ]


def _load_balancers() -> list[dict[str, Any]]:
    from host_agents import registry
    from p4cc.reference import keys

    return [
        {
            "name": name,
            "summary": info.summary,
            "source": info.source,
            "parameters": _records(keys.load_balancer_keys(info)),
        }
        for name, info in registry.load_balancers().items()
    ]


def _topologies() -> list[dict[str, Any]]:
    import topologies
    from p4cc.reference import keys

    return [_described(name, topologies.parameters(name), keys.topology_keys(name)) for name in topologies.names()]


def _workloads() -> list[dict[str, Any]]:
    from harness import workloads
    from p4cc.reference import keys

    return [_described(name, workloads.parameters(name), keys.workload_keys(name)) for name in workloads.names()]


def _programs() -> list[dict[str, Any]]:
    from control_plane import programs
    from p4cc.reference import keys

    return [_described(name, programs.program(name).parameters, keys.program_keys(name)) for name in programs.names()]


def _probes() -> list[dict[str, Any]]:
    from harness.plan.probes import REGISTRY
    from p4cc.reference import keys

    return [_described(name, kind, keys.probe_keys(name)) for name, kind in REGISTRY.all().items()]


def _figures() -> list[dict[str, Any]]:
    from reports.figures import REGISTRY

    return [
        {"name": name, "summary": _first_line(inspect.getmodule(kind).__doc__), "needs": list(kind.needs)}
        for name, kind in REGISTRY.all().items()
    ]


def _switch_load_balancers() -> list[dict[str, Any]]:
    from control_plane import load_balancing

    known = [load_balancing.find(name, load_balancing.DIRECTORY) for name in load_balancing.names()]
    return [{"name": one.name, "summary": one.summary.removesuffix("."), "per_packet": one.per_packet} for one in known]


def _described(name: str, model: type[Any], parameters: Iterable[Key]) -> dict[str, Any]:
    """Return the first line of a model's file, and its parameters."""
    summary = _first_line(inspect.getmodule(model).__doc__) or _first_line(model.__doc__)
    return {"name": name, "summary": summary, "parameters": _records(parameters)}


def _records(parameters: Iterable[Key]) -> list[dict[str, Any]]:
    return [key.record() for key in parameters]


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0].removesuffix(".")


def _by_number(entry: Mapping[str, Any]) -> list[str | int]:
    """Return a sort key in which fig3 precedes fig10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", entry["name"])]


KINDS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "scenarios": _scenarios,
    "sweeps": _sweeps,
    "cc": _protocols,
    "lb": _load_balancers,
    "topologies": _topologies,
    "workloads": _workloads,
    "programs": _programs,
    "switch-lb": _switch_load_balancers,
    "probes": _probes,
    "figures": _figures,
}
_ALSO = {"protocols": "cc", "load-balancers": "lb"}  # the names that the documentation uses


def _beginning(context: click.Context, parameter: click.Parameter, so_far: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(so_far)]


@click.command(name="list")
@click.argument("kind", required=False, metavar="[KIND]", shell_complete=_beginning)
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kind: str | None, name: str | None, as_json: bool) -> None:
    """Show everything that can be run or named in a scenario.

    Without arguments, show all kinds. KIND is one of scenarios, sweeps, cc (congestion control), lb
    (load balancers), topologies, workloads, programs, switch-lb (load balancers of the switches),
    probes (additional measurements of a scenario), figures (of a report). With a NAME, show that
    one and its parameters: p4cc list cc hpcc. --json adds the parameters of all, their sources, and
    the claims of papers that they belong to.
    """
    if kind is not None:
        kind = lookup("kind", kind, {**{one: one for one in KINDS}, **_ALSO})
    listed = {each: sorted(KINDS[each](), key=_by_number) for each in ([kind] if kind else KINDS)}
    if kind and name is not None:
        one = lookup(kind, name, {entry["name"]: entry for entry in listed[kind]})
        _tell(one, as_json)
        return
    if as_json:
        click.echo(json.dumps(listed[kind] if kind else listed, indent=2, default=to_jsonable_python))
        return
    from harness.papers import title
    from p4cc.execution.terminal_tables import show_named

    for each, entries in listed.items():
        if not kind:
            click.echo(f"{each}:")
        for paper in sorted({entry.get("paper", "") for entry in entries}):
            if paper:
                click.echo(f"  {title(paper)} (papers/{paper}):")
            show_named((entry["name"], entry["summary"]) for entry in entries if entry.get("paper", "") == paper)


def _tell(one: Mapping[str, Any], as_json: bool) -> None:
    """Print one entry with everything that is known about it."""
    if as_json:
        click.echo(json.dumps(one, indent=2, default=to_jsonable_python))
        return
    click.echo(f"{one['name']}: {one['summary']}")
    for what, value in one.items():
        if what not in ("name", "summary", "parameters") and value not in ("", [], None):
            click.echo(f"  {what}: {', '.join(value) if isinstance(value, list) else value}")
    if one.get("parameters"):
        from rich.table import Table

        from p4cc.execution.terminal_tables import show

        columns = {"key": "name", "default": "default_text", "unit": "unit", "range": "range", "meaning": "meaning"}
        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for key in one["parameters"]:
            table.add_row(*(str(key[name]) for name in columns.values()))
        show(table)
