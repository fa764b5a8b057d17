"""Dependencies between packages: imports go one way, with those for types."""

import ast
import csv
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]


def files(package: str) -> Iterator[Path]:
    for suffix in ("py", "pyi"):
        yield from sorted((ROOT / package).rglob(f"*.{suffix}"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[str]:
    """Return the names that a file imports anywhere: modules, and names from them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def graph(package: str) -> "nx.DiGraph[str]":
    modules = {name_of(path): path for path in files(package)}
    found: nx.DiGraph[str] = nx.DiGraph()
    for name, path in modules.items():
        found.add_edges_from((name, other) for other in imported(path) if other in modules and other != name)
    return found


def test_the_graph_sees_imports_for_types_and_in_functions() -> None:
    found = graph("host_agents")
    assert found.has_edge("host_agents.nic", "host_agents.qp")
    assert found.has_edge("host_agents.qp", "host_agents.nic")  # for types only
    assert found.has_edge("host_agents", "host_agents.native")  # in a function


def test_no_circle_of_imports_over_more_than_two_files_in_the_hosts() -> None:
    circles = [sorted(c) for c in nx.strongly_connected_components(graph("host_agents")) if len(c) > 2]
    assert circles == []


def test_congestion_control_and_load_balancers_know_no_nic_queue_pair_or_sender() -> None:
    transport = {f"host_agents.{name}" for name in ("nic", "qp", "sender", "receiver", "limiter", "port", "outlet")}
    for folder in ("cc", "lb"):
        for path in files(f"host_agents/{folder}"):
            assert transport.isdisjoint(imported(path)), path


@pytest.mark.parametrize(
    ("package", "known"),
    [
        # How users' mistakes and extensions are known, how tables of a scenario are checked, and how commands are run
        # that no signal leaves behind.
        ("host_agents", ("p4switch.errors", "p4switch.registry", "p4switch.processes", "p4switch.tables")),
        ("p4switch", ("nothing",)),
        ("topologies", ("p4switch",)),
        ("control_plane", ("host_agents", "p4switch", "topologies")),
    ],
)
def test_what_is_below_the_harness_knows_nothing_of_it_nor_hosts_and_switches_of_each_other(
    package: str, known: tuple[str, ...]
) -> None:
    others = {"control_plane", "harness", "host_agents", "p4cc", "p4switch", "reports", "topologies"} - {package}
    for path in files(package):
        wrong = [name for name in imported(path) if name.split(".")[0] in others and not name.startswith(known)]
        assert wrong == [], path


# Layers in the order in which a scenario passes them; a layer may import those before it. Files beside the harness'
# layers (`errors`, `papers`) are below all of them, and the command line is above.
LAYERS = (
    "control_plane", "harness.columns", "harness.workloads", "harness.plan", "harness.measure", "harness.worlds",
    "reports.replay", "reports", "p4cc.execution", "p4cc.bench", "p4cc.reference", "p4cc.commands", "p4cc.cli",
)  # fmt: skip


def layer_of(name: str) -> str | None:
    """Return the layer of a module or of a name in it: the one with the longest prefix of it."""
    layers = [layer for layer in LAYERS if f"{name}.".startswith(f"{layer}.")]
    return max(layers, key=len) if layers else None


def test_each_layer_knows_only_those_before_it() -> None:
    folders = {name_of(path.parent / "__init__.py") for path in (ROOT / "harness").glob("*/__init__.py")}
    assert folders == {layer for layer in LAYERS if layer.startswith("harness.")}
    back = []
    for package in ("control_plane", "harness", "reports", "p4cc"):
        for path in files(package):
            layer = layer_of(name_of(path))
            if layer is None and package == "p4cc":
                continue  # The library uses all layers.
            known = set(LAYERS[: LAYERS.index(layer) + 1]) if layer else set()
            names = {name for name in imported(path) if layer_of(name) not in {None, *known}}
            back += [f"{name_of(path)} imports {name}" for name in sorted(names)]
    assert back == []


def in_functions() -> dict[str, set[str]]:
    """Return the modules that each file outside the tests imports in functions, except those of commands."""
    found: dict[str, set[str]] = {}
    for folder in (
        "control_plane", "harness", "host_agents", "p4cc", "p4switch", "reports", "topologies", "wireformats", "papers",
        "tools",
    ):  # fmt: skip
        for path in files(folder):
            functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
            inside = [node for function in functions for node in ast.walk(function)]
            modules = {alias.name for node in inside if isinstance(node, ast.Import) for alias in node.names}
            modules |= {node.module or "" for node in inside if isinstance(node, ast.ImportFrom)}
            file = path.relative_to(ROOT).as_posix()
            if modules and not re.fullmatch(r"p4cc/commands/[a-z]\w*\.py", file):
                found[file] = modules
    return found


def test_imports_in_functions_are_those_that_the_decision_record_gives_reasons_for() -> None:
    record = next((ROOT / "docs" / "decisions").glob("0004-*.md")).read_text()
    reasons = set(re.findall(r"^(\d)\. \*\*", record, re.MULTILINE))
    found = in_functions()
    told: dict[str, set[str] | None] = {}
    for row in csv.DictReader((ROOT / "docs" / "decisions" / "0004-imports.csv").read_text().splitlines()):
        file, reason = row["file"], row["reason"]
        modules = found.get(file) if reason == "1" else {*(told.get(file) or ()), *row["imports in functions"].split()}
        told[file] = modules
        assert reason in reasons, file
    assert found == told
