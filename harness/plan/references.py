"""Files that a scenario names instead of parts of p4cc: `cc = "./aimd.py:aimd"`.

A path is relative to the scenario's or the sweep's file, or on a command line to the working
directory. A planned scenario has only names, and `extensions` has the absolute paths of their
files, so that it can be run in another process and another folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.plan.scenario import Scenario, p4_file
from harness.workloads.base import REGISTRY as WORKLOADS
from host_agents import registry
from p4switch import extensions
from p4switch.registry import Registry
from topologies.registry import REGISTRY as TOPOLOGIES

_LISTS: dict[str, Registry[Any]] = dict(registry.KINDS)
_TABLES: dict[str, Registry[Any]] = {"topology": TOPOLOGIES, "workload": WORKLOADS}


def _absolute(file: str, folder: Path) -> str:
    """Return the absolute path of a network's file.

    A path with a NUL byte is returned unchanged; the reader of the file reports it.
    """
    return file if "\0" in file else str(folder.resolve() / Path(file).expanduser())


def loaded(scenario: Scenario, folder: Path) -> Scenario:
    """Return a scenario whose references are names, with their files loaded and listed in `extensions`.

    Paths of P4 files become absolute. Raises UserError if a file cannot be loaded or does not have the name.
    """
    files: dict[str, None] = {}

    def named(kind: Registry[Any], text: str) -> str:
        wanted = extensions.reference(text, folder)
        if wanted is None:
            return text
        files[str(wanted.file)] = None
        return extensions.name_of(kind, wanted)

    for text in scenario.extensions:
        file = (folder / text).resolve()
        extensions.load(file)
        files[str(file)] = None
    changes: dict[str, Any] = {
        key: [named(kind, text) for text in getattr(scenario, key)] for key, kind in _LISTS.items()
    }
    for key, kind in _TABLES.items():
        table = getattr(scenario, key)
        if isinstance(table.get("name"), str):
            changes[key] = {**table, "name": named(kind, table["name"])}
    network = scenario.topology.get("file")
    if isinstance(network, str):
        changes["topology"] = {**changes.get("topology", scenario.topology), "file": _absolute(network, folder)}
    changes["groups"] = [
        group.model_copy(
            update={
                "cc": group.cc and named(_LISTS["cc"], group.cc),
                "lb": group.lb and named(_LISTS["lb"], group.lb),
            }
        )
        for group in scenario.groups
    ]
    if scenario.program is not None:
        changes["program"] = p4_file(scenario.program, folder)
    changes["switches"] = [
        group.model_copy(
            update={
                key: p4_file(getattr(group, key), folder)
                for key in ("program", "load_balancing")
                if getattr(group, key) is not None
            }
        )
        for group in scenario.switches
    ]
    if "load_balancing" in scenario.switch.model_fields_set:  # a key that is not written stays unset
        balancing = p4_file(scenario.switch.load_balancing, folder)
        changes["switch"] = scenario.switch.model_copy(update={"load_balancing": balancing})
    return scenario.model_copy(update={**changes, "extensions": list(files)})
