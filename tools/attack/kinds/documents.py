"""Malformed BMv2 JSON: the loader must refuse it with a reason, or generate C that compiles and handles any packet."""

from __future__ import annotations

import copy
import json
import os
import random
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from p4switch import engine
from p4switch.bmv2 import read
from p4switch.compiler import Compiled, compile_program
from p4switch.engine import ProgramError, fuzz
from p4switch.p4runtime import pipeline
from p4switch.p4runtime.errors import P4RuntimeError
from tools.attack.attack import P4SRC, ROOT, Attack, Finding

Json = Any
_DOCUMENTS = 20  # an attempt
_PACKETS = 2_000
_BUILT = 0.2  # share of the attempts that are built, because sanitizers are slow
_WORDS: list[Json] = [
    None, "", "nowhere", -1, 0, 1, 2, 255, 4096, 2**31, 2**64, 10**30, 3.5, True, [], {}, ["h"], ["h", "nothing"],
    "0xzz", "0x0", "0xffffffff", "*", {"type": "field", "value": ["h", "a"]}, {"op": "+"}, "h", "s", "m", "v", "start",
    'x"y\\z */', "é",
]  # fmt: skip


def places(document: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a document."""
    paths = [path] if path else []
    if isinstance(document, list):
        document = dict(enumerate(document))
    for key, value in document.items() if isinstance(document, dict) else ():
        paths += places(value, (*path, key))
    return paths


def _at(document: Json, path: tuple[Any, ...]) -> Json:
    for key in path:
        document = document[key]
    return document


def mutate(document: Json, rng: random.Random) -> Json:
    """Return a copy in which one or two values are omitted, or replaced by odd values or by others of the document."""
    changed = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2])):
        every = places(changed)
        path = rng.choice(every)
        parent = _at(changed, path[:-1])
        choice = rng.random()
        if choice < 0.3 and isinstance(parent, (dict, list)):
            del parent[path[-1]]
        else:
            value = rng.choice(_WORDS) if choice < 0.7 else _at(changed, rng.choice(every))
            parent[path[-1]] = copy.deepcopy(value)
    return changed


class Documents(Attack):
    units = "documents"
    short_turns = 20
    memory_bytes = None
    patience_s = 600

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        own = [*P4SRC.glob("*.p4"), ROOT / "tests" / "p4switch" / "p4runtime" / "everything.p4"]
        self._programs = sorted(own)
        self._compiled: dict[Path, Compiled] = {}
        self._cache = folder / "cache"

    def attempt(self, rng: random.Random) -> int:
        accepted = []
        path = rng.choice(self._programs)
        if path not in self._compiled:
            self._compiled[path] = compile_program(path, [path.parent])
        program = self._compiled[path]
        for _ in range(_DOCUMENTS):
            document = mutate(program.json, rng)
            data = json.dumps(document).encode()
            try:
                pipeline.load(program.p4info, data)
            except P4RuntimeError:
                pass
            except Exception:
                raise Finding(traceback.format_exc(), {"p4runtime.json": data}) from None
            try:
                engine.generated(read(document))
                accepted.append(document)
            except ProgramError as error:
                if "\n" in str(error) or len(str(error)) > 400:
                    raise Finding(f"not one line: {str(error)[:1000]}", {"document.json": data}) from None
            except Exception:
                raise Finding(traceback.format_exc(), {"document.json": data}) from None
        if accepted and rng.random() < _BUILT:
            self._run(rng.choice(accepted), rng)
        return _DOCUMENTS

    def _run(self, document: Json, rng: random.Random) -> None:
        before = os.environ.get("P4CC_CACHE")
        os.environ["P4CC_CACHE"] = str(self._cache)  # files that are built from mutated documents are not used again
        try:
            fuzz.run(document, seed=rng.randrange(1 << 30), packets=_PACKETS)
        except Exception as error:
            files = {"document.json": json.dumps(document).encode()}
            raise Finding(f"{type(error).__name__}: {error}", files) from None
        finally:
            if before is None:
                del os.environ["P4CC_CACHE"]
            else:
                os.environ["P4CC_CACHE"] = before
