"""The generated pages of the documentation, in Markdown: every key, column, command, variable and public name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator, Sequence

import click

import p4cc
import topologies
import wireformats
from control_plane import programs
from harness import workloads
from harness.columns.tables import NAMES
from harness.plan.probes import REGISTRY as PROBES
from host_agents import registry
from p4cc.cli import cli
from p4cc.reference import keys
from p4cc.reference.comments import summary
from p4cc.reference.glossary import glossary, of_reports
from p4cc.reference.keys import Key
from p4cc.reference.recorded import FILES, recorded
from p4cc.reference.sentences import sentence
from reports.claims import claims
from wireformats import docs

_KEY_COLUMNS = ("key", "type", "default", "meaning")


def pages() -> dict[str, str]:
    """Return the generated pages by path below the documentation's folder."""
    return {
        "reference/scenario.md": _page("Keys of a scenario", _SCENARIO, [("", keys.scenario_keys())]),
        "reference/sweep.md": _page("Keys of a sweep", _SWEEP, [("", keys.sweep_keys())]),
        "reference/topologies.md": _page(
            "Topologies",
            "`topology.name` selects one. The tables list the keys of `[topology]`.",
            [(_named(n, summary(topologies.parameters(n))), keys.topology_keys(n)) for n in topologies.names()],
        ),
        "reference/workloads.md": _page(
            "Workloads",
            "`workload.name` selects one. The tables list the keys of `[workload]`.",
            [(_named(n, summary(workloads.parameters(n))), keys.workload_keys(n)) for n in workloads.names()],
        ),
        "reference/protocols.md": _page(
            "Congestion control",
            '`cc` selects one; `cc = "hpcc+vai"` adds a mechanism.',
            [
                (
                    f"{_named(n, one.summary)}\n\nSource: {one.source}. P4 program: `{one.program}`.",
                    keys.protocol_keys(one),
                )
                for n, one in registry.protocols().items()
            ],
        ),
        "reference/load-balancers.md": _page(
            "Load balancers",
            "`lb` selects one. `switch.load_balancing` selects one of the switches (`p4cc list switch-lb`).",
            [
                (_named(n, one.summary) + (f"\n\nSource: {one.source}." if one.source else ""),
                 keys.load_balancer_keys(one))
                for n, one in registry.load_balancers().items()
            ],
        ),
        "reference/programs.md": _page(
            "P4 programs",
            "`program` selects one; without it a run has the one that its protocol needs.",
            [(_named(n, summary(programs.program(n).parameters)), keys.program_keys(n)) for n in programs.names()],
        ),
        "reference/packets.md": docs.page(wireformats.opcodes()),
        "reference/probes.md": _page(
            "Probes",
            "Keys of `[[record.probes]]`: further tables of a run. [Measurements](../measurements.md) has examples.",
            [(_named(n, summary(kind)), keys.probe_keys(n)) for n, kind in PROBES.all().items()],
        ),
        "reference/recorded.md": _recorded(),
        "reference/commands.md": _commands(cli),
        "reference/environment.md": _environment(),
        "reference/api.md": _api(),
        "reference/glossary.md": _glossary(),
        "reference/claims.md": _claims(),
    }


_SCENARIO = (
    "Topologies, workloads, protocols and probes have pages with their keys. `none` is the default of a key\n"
    "that may be left out. `p4cc explain KEY` prints the same."
)
_SWEEP = "A sweep runs a scenario with every combination of its axes' values. [An example](../formats.md#sweeps)."


def _named(name: str, text: str) -> str:
    return f"## {name}\n\n{text}."


def _page(title: str, text: str, parts: Iterable[tuple[str, Sequence[Key]]]) -> str:
    lines = [f"# {title}", "", text, ""]
    for heading, of_it in parts:
        if heading:
            lines += [heading, ""]
        if of_it:
            lines += [*_table(_KEY_COLUMNS, map(_row, of_it)), "", *_declared(of_it), ""]
        else:
            lines += ["It has no parameters.", ""]
    return "\n".join(lines)


def _declared(of_it: Sequence[Key]) -> Iterator[str]:
    """Yield the place at which each key is declared."""
    by_class: dict[str, list[str]] = {}
    for key in of_it:
        by_class.setdefault(key.source, []).append(key.name)
    if len(by_class) == 1:
        yield f"Declared in `{of_it[0].source}`."
        return
    yield "Declared in:"
    yield ""
    for source, names in by_class.items():
        yield f"- `{source}`: {', '.join(f'`{name}`' for name in names)}"


def _row(key: Key) -> tuple[str, ...]:
    kind = key.type + (f", {key.unit}" if key.unit else "") + (f", {key.range}" if key.range else "")
    return f"`{key.name}`", kind, f"`{key.default_text}`", sentence(key.meaning)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _recorded() -> str:
    lines = [
        "# What a run writes",
        "",
        "`*` stands for any name, `[]` for each of a list. Times are ns of model time.",
        "",
    ]
    for sections, suffix in ((NAMES, ".parquet"), (FILES, ".json")):
        for section in sections:
            words = ((f"`{name}`", sentence(said)) for name, said in recorded()[section].items())
            lines += [f"## {section}{suffix}", "", *_table(("name", "meaning"), words), ""]
    return "\n".join(lines)


def _environment() -> str:
    lines = ["# Environment and exit statuses", ""]
    for section, column in (("environment", "variable"), ("exit-status", "status")):
        words = ((f"`{name}`", sentence(said)) for name, said in recorded()[section].items())
        lines += [*_table((column, "meaning"), words), ""]
    return "\n".join(lines)


def _glossary() -> str:
    lines = ["# Glossary", ""]
    for heading, meanings in (("", glossary()), ("## Words of reports", of_reports())):
        lines += [heading, ""] if heading else []
        lines += [*_table(("word", "meaning"), ((name, sentence(said)) for name, said in meanings.items())), ""]
    return "\n".join(lines)


def _claims() -> str:
    rows = ((name, claim.text, claim.source) for name, claim in claims().items())
    introduction = "[Reproduction of the papers](../papers/README.md) says which of them hold in p4cc."
    return "\n".join(["# What the papers claim", "", introduction, "", *_table(("id", "claim", "source"), rows), ""])


def _commands(group: click.Group) -> str:
    lines = ["# Commands", ""]
    with click.Context(group, info_name="p4cc") as root:
        for name in group.list_commands(root):
            command = group.get_command(root, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=root, max_content_width=100) as context:
                lines += [f"## p4cc {name}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)


def _api() -> str:
    """Return the page of `p4cc` and its modules: every name in `__all__`."""
    introduction = "These names keep their meaning within a major version. [How to use them](../python-api.md)."
    lines = ["# Public interface", "", introduction, ""]
    modules = [p4cc, *(importlib.import_module(f"p4cc.{one.name}") for one in pkgutil.iter_modules(p4cc.__path__))]
    for module in modules:
        names = getattr(module, "__all__", ())
        if not names or module.__name__.rpartition(".")[2].startswith("_"):
            continue
        summary = (inspect.getdoc(module) or "").partition("\n")[0]
        rows = (row for name in names for row in _described(name, getattr(module, name)))
        lines += [f"## {module.__name__}", "", summary, "", *_table(("name", "description"), rows), ""]
    return "\n".join(lines)


def _described(name: str, thing: object) -> Iterator[tuple[str, str]]:
    """Yield (name, first line of the docstring) of an object, and of a class's own public methods."""
    yield f"`{name}`", _first_line(thing)
    for method, member in vars(thing).items() if inspect.isclass(thing) else ():
        if method.startswith("_") or not inspect.getdoc(member):
            continue
        if callable(member):
            parameters = [parameter for parameter in inspect.signature(member).parameters if parameter != "self"]
            yield f"`{name}.{method}({', '.join(parameters)})`", _first_line(member)
        elif isinstance(member, property):
            yield f"`{name}.{method}`", (inspect.getdoc(member) or "").partition("\n")[0]


def _first_line(thing: object) -> str:
    if not callable(thing) and not inspect.ismodule(thing):
        return "a value"
    return (inspect.getdoc(thing) or "").partition("\n")[0]
