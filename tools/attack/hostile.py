"""Invalid values, and result files that contain them, as others may pass them to p4cc."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MARK = "zq7"  # part of each text, which pages must show as text only
TEXTS = (
    f"<script>{MARK}()</script>", f'"><img src={MARK} onerror={MARK}()>', f"' onload='{MARK}()", f"</script><{MARK}>",
    f"</title><{MARK}>", f"</style><{MARK}>", f"</pre><{MARK} x=y>", f"javascript:{MARK}()", f"{{{{ {MARK} }}}}",
    f"{{% {MARK} %}}", f"${{{MARK}}}", f"$\\frac{{{MARK}}}$", f"]]><{MARK}/>", f"<!--{MARK}", f"&{MARK};",
    f"--><{MARK}>",
    f"{MARK}\n{MARK}", f"{MARK} é ü 漢", f"=cmd|'{MARK}'!A1",
)  # fmt: skip
NAMES = (
    "../victim/x", "/tmp/x", "..", ".", "", "a/b", "x\0y", "\x1b[2J", "\x1b]0;x\x07", "x\ny", "x\ry", "\u202ex",
    "\ud800",
    "x" * 300, "x" * 2_000_000, "CON", "-x", "~", "$HOME", "%s%n", "{0}", "'; rm -rf x", "\u2028", "\x7f", "\x9b31m",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, -(2**63), 0.5, -0.5, 1e308, float("inf"),
    float("nan"), True, False,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (None, [], {}, [[]], [None] * 1000, {"x": {}}, [1, "x"])


def value(rng: random.Random) -> Any:
    return rng.choice(rng.choice((TEXTS, NAMES, NUMBERS, OTHERS)))


def places(tables: Any, collected: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value of tables and lists."""
    collected = [] if collected is None else collected
    keys = list(tables) if isinstance(tables, dict) else range(len(tables)) if isinstance(tables, list) else ()
    for key in keys:
        collected.append((tables, key))
        places(tables[key], collected)
    return collected


def change_json(file: Path, rng: random.Random, new: Callable[[random.Random], Any] = value) -> str:
    """Change one value or one key; return what was done."""
    tables = json.loads(file.read_text())
    container, key = rng.choice(places(tables))
    replacement = new(rng)
    if isinstance(container, dict) and rng.random() < 0.1:
        del container[key]
    else:
        container[key] = replacement
    file.write_text(json.dumps(tables))
    return f"{file.name}: {key}: {replacement!r:.60}"


def change_toml(file: Path, rng: random.Random, new: Callable[[random.Random], Any] = value) -> str:
    """Change the value of one key as text; the result need not be TOML."""
    lines = file.read_text().splitlines()
    i = rng.choice([number for number, line in enumerate(lines) if re.match(r"\w+ = ", line)])
    replacement = new(rng)
    lines[i] = f"{lines[i].partition(' = ')[0]} = {replacement if rng.random() < 0.1 else json.dumps(replacement)}"
    file.write_text("\n".join(lines), errors="replace")
    return f"{file.name}: {lines[i]!r:.80}"


def change_table(file: Path, rng: random.Random, texts: Sequence[str] = (*TEXTS, *NAMES)) -> str:
    """Change a column or the number of rows."""
    table = pq.read_table(file)
    rows, name = table.num_rows, rng.choice(table.column_names)
    at = table.column_names.index(name)
    what = rng.choice(("type", "text", "name", "gone", "rows", "none", "numbers", "more", "nested", "empty"))
    text = rng.choice(texts).replace("\ud800", "?")
    if what == "type":
        table = table.set_column(at, name, pa.array([text] * rows, pa.string()))
    elif what == "text":
        for i, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                table = table.set_column(i, field.name, pa.array([text] * rows, pa.string()))
    elif what == "name":
        table = table.rename_columns([text if n == name else n for n in table.column_names])
    elif what == "gone":
        table = table.drop_columns([name])
    elif what == "rows":
        taken = rng.choice((0, 1, 1000, 3_000_000)) if rows else 0
        table = table.take(pa.array(np.zeros(taken, np.int64)))
    elif what == "none":
        table = table.set_column(at, name, pa.nulls(rows, table.schema.field(at).type))
    elif what == "numbers":
        values = [rng.choice([n for n in NUMBERS if isinstance(n, float)]) for _ in range(rows)]
        table = table.set_column(at, name, pa.array(values, pa.float64()))
    elif what == "more":
        table = table.append_column(text, pa.array([text] * rows, pa.string()))
    elif what == "nested":
        table = table.set_column(at, name, pa.array([[text]] * rows, pa.list_(pa.string())))
    else:
        table = table.slice(0, 0)
    pq.write_table(table, file, compression="zstd")
    return f"{file.name}: {what} {name!r:.40} {text!r:.40}"


def change_file(folder: Path, rng: random.Random, secret: Path) -> str:
    """Replace a file, or add one beside it.

    Links may lead to `secret`, which must not be disclosed.
    """
    path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    what = rng.choice((*_SPECIAL, *_SPECIAL, "gone", "beside", "mode", "runs", "deep"))
    if what == "beside":
        name = rng.choice(("x\x1b[2J", "x\ny", "..x", " ", "-x", "<b>", "links", ".p4cc")) + ".parquet"
        if path.name != name:
            shutil.copy(path, path.with_name(name))
        return f"beside {name!r}"
    if what == "mode":
        path.chmod(rng.choice((0o6777, 0o4755, 0o000, 0o222)))
        return f"mode of {path.name}"
    if what == "runs":
        (folder / "runs.json").write_text(json.dumps(rng.choice((value(rng), [value(rng)]))))
        return "runs.json"
    if what == "deep":
        (folder / "d" / "/".join("d" * rng.choice((10, 900)))).mkdir(parents=True, exist_ok=True)
        return "deep folders"
    if what != "gone" and rng.random() < 0.4:  # unexpected files are copied, too
        path = path.with_name(rng.choice(("more", "coverage.json", "hosts.pcapng", ".p4cc", "report-error.txt")))
    path.unlink(missing_ok=True)
    if what != "gone":
        _SPECIAL[what](path, secret)
    return f"{what} {path.name}"


def _socket(path: Path, secret: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o666)


def _device(path: Path, secret: Path) -> None:
    """Create a device if this process is root; other users get no file."""
    if os.geteuid() == 0:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero


_SPECIAL: dict[str, Callable[[Path, Path], object]] = {
    "pipe": lambda path, secret: os.mkfifo(path),
    "socket": _socket,
    "device": _device,
    "folder": lambda path, secret: path.mkdir(),
    "link to itself": lambda path, secret: path.symlink_to(path.name),
    "link to nothing": lambda path, secret: path.symlink_to("nothing"),
    "link to a device": lambda path, secret: path.symlink_to("/dev/zero"),
    "link to a folder": lambda path, secret: path.symlink_to(secret.parent),
    "link to a secret": lambda path, secret: path.symlink_to(secret),
    "relative link to a secret": lambda path, secret: path.symlink_to(os.path.relpath(secret, path.parent)),
}


def change_coverage(file: Path, rng: random.Random, secret: Path) -> str:
    """Make the coverage of a run name `secret`, or have other invalid contents."""
    items = [[str(secret), 1, 1, "statement", "x", "", 1], [value(rng) for _ in range(7)]]
    file.write_text(json.dumps(rng.choice((items[:1], items, items[1:], value(rng)))), errors="replace")
    return file.name
