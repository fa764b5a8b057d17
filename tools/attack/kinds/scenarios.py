"""Scenarios with random and extreme values: they are refused in one line, or their counts balance."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.plan.scenario import Scenario, built_in, read
from harness.worlds.native_hosts import prefer_native_hosts
from tools.attack.attack import Attack, Finding
from tools.attack.calling import call

# Scenarios have few packets, so that an attempt takes about a second.
_SMALL = {
    "topology.k": 4, "workload.size_bytes": 20_000, "workload.senders": 4, "limit_ns": 100_000,
    "memory_bytes": 1_500_000_000, "workload.duration_ns": 20_000, "workload.hosts": 8,
}  # fmt: skip
_EXTREME: list[Any] = [
    0, 1, 2, 3, 7, 8, 64, 1000, 9000, 65535, 65536, 10**6, 10**9, 10**12, 2**31, 2**32, 2**53, 2**61, 2**63, 2**64,
    10**30, -1, -(10**9), 0.0, 1e-9, 0.1, 0.5, 0.999, 1.0, 1.5, 1e6, 1e12, 1e300, -0.5, float("inf"), float("nan"),
    True, False, "", "x", "ecmp", "hpcc", "é", "\0", [], [1], [[]], {}, {"x": 1},
]  # fmt: skip
_FAILURES = ("memory", "retries used up")  # failures that are legitimate and reported as such
_KEYS_OF_TABLES = {
    "topology": ("name", "k", "hosts", "link_rate_bps", "link_delay_ns", "oversubscription", "spines", "leaves", "x"),
    "workload": (
        "name", "size_bytes", "senders", "parallel", "duration_ns", "load", "start_ns", "interval_ns", "stop_ns", "x",
    ),
}  # fmt: skip


def _keys(model: Any, where: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        below = field.annotation
        if name in _KEYS_OF_TABLES:
            yield from (f"{name}.{key}" for key in _KEYS_OF_TABLES[name])
        elif hasattr(below, "model_fields"):
            yield from _keys(below, f"{where}{name}.")
        else:
            yield where + name


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(below)}" for key, below in value.items()) + "}"
    return repr(value)


class Scenarios(Attack):
    units = "scenarios"
    short_turns = 160
    # A process makes many runs and keeps caches, so its limit is twice that of a single run.
    memory_bytes = 8 << 30

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        prefer_native_hosts()
        from host_agents import registry

        self._protocols, self._balancers = sorted(registry.protocols()), sorted(registry.load_balancers())
        self._parameters = [
            f"protocols.{name}.{key}"
            for name, info in registry.protocols().items()
            for key in getattr(info.parameters, "__dataclass_fields__", ())
        ]
        self._keys = sorted(_keys(Scenario))
        self._names = sorted(built_in())
        os.chdir(folder)

    def attempt(self, rng: random.Random) -> int:
        name = rng.choice(self._names)
        tables = read(built_in()[name])
        settings: dict[str, Any] = {key: value for key, value in _SMALL.items() if self._has(tables, key)}
        settings["limit_ns"] = _SMALL["limit_ns"]
        settings["memory_bytes"] = _SMALL["memory_bytes"]
        settings["variants"] = []
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            key = rng.choice(self._parameters if rng.random() < 0.25 else self._keys)
            settings[key] = rng.choice(_EXTREME)
        arguments = ["run", name, "--out", "out", "--seed", str(rng.randrange(100))]
        arguments += ["--cc", rng.choice(self._protocols), "--lb", rng.choice(self._balancers)]
        for key, value in settings.items():
            arguments += ["--set", f"{key}={_toml(value)}"]
        shutil.rmtree("out", ignore_errors=True)
        self._run(arguments)
        return 1

    @staticmethod
    def _has(tables: Mapping[str, Any], key: str) -> bool:
        """Return whether the file has a key; topologies and workloads accept only their own keys."""
        table, dot, below = key.partition(".")
        return bool(dot) and below in tables.get(table, {})

    def _run(self, arguments: list[str]) -> None:
        called = call(arguments)
        command, status = called.command, called.status
        said = [line for line in called.err.splitlines() if "warning: " not in line and line[0:1] != "["]
        if status == 2 and len(said) != 1:
            raise Finding(f"{command}: not one line: {said}")
        if status not in (0, 2) and not any(reason in line for line in said for reason in _FAILURES):
            raise Finding(f"{command}: exit status {status}: {said[-1:]}")
        left = sorted(path.name for path in Path().iterdir())
        if left != (["out"] if Path("out").exists() else []):
            raise Finding(f"{command}: left {left}")
