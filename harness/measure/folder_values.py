"""Validation of everything that is read from a run's folder.

A folder may come from somebody else. Its contents become names of files, text and attributes of
pages, lines of a terminal, numbers of rows and sizes of arrays. All of it is read in this module
and validated before any other use. Files have to be regular and of bounded size, and links are not
followed. Names are plain, text has no control characters, and numbers are in range. The size of a
table is known from its metadata before its data are read.

Each function raises UserError that names the file and the mistake.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from harness.plan import scenario
from p4switch import regular_file
from p4switch.errors import UserError, validate
from p4switch.printable import hidden
from p4switch.regular_file import open_regular, read_regular

TABLE = ".parquet"
MOST_JSON_BYTES = 64 << 20
MOST_TEXT_BYTES = 16 << 20  # largest length of a scenario
_MOST_TABLE_BYTES = 4 << 30  # largest size of a table in memory
_MOST_OF_MEMORY = 0.5  # share of the free memory
_MOST_VALUES = 2_000_000  # largest number of values in a JSON file
_MOST_DEPTH = 50
_MOST_CHARACTERS = 1 << 20  # longest text
_MOST_NAME_BYTES = 200
_MOST_EXTENSIONS = 1000
# Types of columns without text.
_KINDS = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
_AS_WRITTEN = "expected a folder as p4cc writes it"


def _shown(text: str) -> str:
    """Return a text that may be displayed. Raises ValueError for hidden characters."""
    if (character := hidden(text)) is not None:
        raise ValueError(f"has the character {character!r}")
    return text


def _plain(text: str) -> str:
    """Return a text that can be a file's name. Raises ValueError for others."""
    if not text.isprintable() or "/" in text or text in ("", ".", "..") or len(text.encode()) > _MOST_NAME_BYTES:
        raise ValueError(f"should be the name of a file: printable, without '/', of at most {_MOST_NAME_BYTES} bytes")
    return text


Text = Annotated[str, AfterValidator(_shown), Field(max_length=_MOST_CHARACTERS)]
PathText = Annotated[str, AfterValidator(_shown), Field(max_length=4096)]  # Linux's PATH_MAX
Name = Annotated[str, AfterValidator(_plain)]
Count = Annotated[int, Field(ge=0, lt=2**62)]
Time = Annotated[int, Field(ge=0, lt=2**62)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Kept(BaseModel):
    """Required keys of a file in a run's folder.

    `_sound` has checked all other keys.
    """

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class Check(_Kept):
    """Check of a run."""

    name: Text
    holds: bool
    detail: Text


class Fidelity(_Kept):
    """Keys of a run in real time that show whether its times can be trusted."""

    kept_up: bool
    reasons: list[Text]
    dilation_to_use: Count | None = None
    caveats: list[Text] = []


class Summary(_Kept):
    """Keys that `summary.json` has in every run."""

    scenario: Name  # names of files are made from it
    variant: Text
    seed: Annotated[int, Field(ge=0, lt=2**32)]
    ended: Text
    end_ns: Time
    flows: Count
    flows_delivered: Count
    flows_acknowledged: Count | None = None  # older results do not have it
    workload: dict[str, Any]
    checks: list[Check]
    title: Text = ""
    protocol: Text = ""
    load_balancer: Text = ""
    world: Text = ""
    switch: Text = ""
    compiler: Text = ""
    program: Text = ""
    framing_bytes: Annotated[int, Field(ge=-1000, le=1000)] = 0
    base_rtt_ns: Time = 0
    drops: dict[Text, Count] = {}
    residue: dict[Text, Count] | None = None
    fidelity: Fidelity | None = None


class Performance(_Kept):
    """Keys of `performance.json` that are shown on the terminal and in tables."""

    set_up_cpu_s: Seconds
    run_cpu_s: Seconds


class Machine(_Kept):
    """Machine that executed a run."""

    system: Text = ""
    processor: Text = ""


class Provenance(_Kept):
    """Keys of `provenance.json` that reports show."""

    command: Text = ""
    version: Text = ""
    commit: Text | None = None
    sources: Text = ""
    scenario: Text = ""
    date: Text = ""
    python: Text = ""
    compiler: Text | None = None
    machine: Machine = Machine()


class _Recorded(_Kept):
    rate_interval_ns: Time
    probes: list[dict[str, Any]] = []


class _Nic(_Kept):
    cc_scope: Text = ""


class Scenario(_Kept):
    """Keys of `scenario.toml` that reports need.

    Runs read the file like any scenario (`harness/plan/scenario.py`).
    """

    record: _Recorded
    topology: dict[str, Any]
    nic: _Nic = _Nic()
    claims: list[Text] = []
    extensions: Annotated[list[PathText], Field(max_length=_MOST_EXTENSIONS)] = []


def expect_regular(path: Path) -> None:
    """Raise UserError unless there is a regular file at `path`; links are refused."""
    try:
        regular_file.expect_regular(path, path.lstat())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def read_text(path: Path, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """Return the content of a text file."""
    try:
        return io.TextIOWrapper(io.BytesIO(read_regular(path, most_bytes)), encoding="utf-8").read()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file") from None


def read_summary(path: Path) -> dict[str, Any]:
    """Return the figures of a run."""
    return _checked(path, Summary, read_object(path))


def read_performance(path: Path) -> dict[str, Any]:
    """Return the cost of a run."""
    return _checked(path, Performance, read_object(path))


def read_provenance(path: Path) -> dict[str, Any]:
    """Return the provenance of a run."""
    return _checked(path, Provenance, read_object(path))


def read_scenario(path: Path) -> tuple[str, Scenario, dict[str, Any]]:
    """Return the text of a run's scenario, the keys that reports need, and all keys as TOML tables."""
    text = read_text(path)
    try:
        tables = scenario.parse(text)
    except ValueError as error:  # TOMLDecodeError
        raise UserError(f"{path}: not a TOML file: {error}") from None
    _expect_sound(path, tables)
    return text, _model(path, Scenario, tables), tables


def read_names(path: Path) -> list[str]:
    """Return the names of folders from a JSON file with an array of them."""
    names = _read_json(path)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{path}: expected a JSON array of names")
    return names


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    document = _read_json(path)
    if not isinstance(document, dict):
        raise UserError(f"{path}: expected a JSON object")
    return document


def _read_json(path: Path) -> Any:
    text = read_text(path, MOST_JSON_BYTES)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError is also raised for a number of 5,000 digits
        raise UserError(f"{path}: not JSON: {error}") from None
    _expect_sound(path, document)
    return document


def _checked(path: Path, model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    _model(path, model, values)
    return values


def _model(path: Path, model: type[Any], values: Mapping[str, Any]) -> Any:
    try:
        return validate(model, values, "")
    except UserError as error:
        raise UserError(f"{path}: {error}; {_AS_WRITTEN}") from None


def _expect_sound(path: Path, values: object) -> None:
    """Raise UserError for deep nesting, too many values, hidden characters, and numbers out of range."""
    level: list[Any] = [values]
    count = 0
    for _ in range(_MOST_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, str):
                _expect_text(path, value)
            elif isinstance(value, int) and not -(2**64) < value < 2**64:
                raise UserError(f"{path}: a number of {value.bit_length()} bits; {_AS_WRITTEN}")
            elif isinstance(value, Mapping):
                below += [*value, *value.values()]
            elif isinstance(value, list):
                below += value
        level = below
        count += len(level)
        if count > _MOST_VALUES:
            raise UserError(f"{path}: over {_MOST_VALUES:,} values; {_AS_WRITTEN}")
        if not level:
            return
    raise UserError(f"{path}: nested over {_MOST_DEPTH} deep; {_AS_WRITTEN}")


def _expect_text(path: Path, text: str) -> None:
    if len(text) > _MOST_CHARACTERS:
        raise UserError(f"{path}: a text of {len(text):,} characters; {_AS_WRITTEN}")
    if (character := hidden(text)) is not None:
        raise UserError(f"{path}: the text {text!r:.60} has the character {character!r}; {_AS_WRITTEN}")


def table_names(folder: Path) -> frozenset[str]:
    """Return the names of the tables in a run's folder."""
    names = []
    for path in folder.glob(f"*{TABLE}"):
        expect_regular(path)
        try:
            names.append(_plain(path.stem))
        except ValueError as error:
            raise UserError(f"{str(folder)!r}: the table {path.name!r} {error}") from None
    return frozenset(names)


def read_table(path: Path, categories: Sequence[str], rows: int | None = None) -> pd.DataFrame:
    """Return a table, with text in the columns `categories` as categories.

    `rows` is the required number of rows.
    """
    expect_regular(path)
    try:
        with open_regular(path) as content:
            with pq.ParquetFile(content) as file:
                _expect_size(path, file, rows)
                texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
            # All text is read as categories, because their size is known however often a text is
            # repeated.
            with pq.ParquetFile(content, read_dictionary=texts) as file:
                table = file.read().replace_schema_metadata(None)
        _expect_texts(path, table, [name for name in texts if name not in categories])
        for i, name in enumerate(table.column_names):
            if name in texts and name not in categories:
                table = table.set_column(i, name, table.column(i).cast(pa.large_string()))
        frame: pd.DataFrame = table.to_pandas()
    except (pa.ArrowException, OSError, MemoryError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{path}: damaged: {reason:.200}; {_AS_WRITTEN}") from None
    return frame


def most_bytes() -> int:
    """Return the largest size of a table in memory."""
    return min(_MOST_TABLE_BYTES, int(psutil.virtual_memory().available * _MOST_OF_MEMORY))


def _expect_size(path: Path, file: pq.ParquetFile, rows: int | None) -> None:
    """Raise UserError for a table with unknown columns, or one that takes too much memory."""
    metadata = file.metadata
    if rows is not None and metadata.num_rows != rows:
        raise UserError(f"{path}: {metadata.num_rows:,} rows; expected {rows:,}, as summary.json says; {_AS_WRITTEN}")
    row_bytes = 0
    names = file.schema_arrow.names
    for field in file.schema_arrow:
        if hidden(field.name) is not None or "\n" in field.name or names.count(field.name) > 1:
            raise UserError(f"{path}: a column {field.name!r:.60}; {_AS_WRITTEN}")
        if not (_is_text(field.type) or any(is_kind(field.type) for is_kind in _KINDS)):
            raise UserError(f"{path}: column {field.name!r} of type {field.type}; {_AS_WRITTEN}")
        row_bytes += 8
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    written_bytes = sum(max(group.total_byte_size, 0) for group in groups)
    if (size_bytes := max(row_bytes * metadata.num_rows, written_bytes)) > (most := most_bytes()):
        raise UserError(
            f"{path}: {metadata.num_rows:,} rows of {len(names)} columns take some {size_bytes / 2**30:.2f} GiB; "
            f"expected at most {most / 2**30:.2f} GiB"
        )


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _expect_texts(path: Path, table: pa.Table, spelt_out: Sequence[str]) -> None:
    """Raise UserError for hidden characters in a table's texts, and for texts that take too much memory.

    Only the columns in `spelt_out`, which will be converted from categories to text, count as
    memory.
    """
    size_bytes = 0
    for name in table.column_names:
        column = table.column(name)
        if not pa.types.is_dictionary(column.type):
            continue
        for chunk in column.chunks:
            for text in chunk.dictionary.to_pylist():
                if text is not None and hidden(text) is not None:
                    raise UserError(f"{path}: column {name!r}: the text {text!r:.60}; {_AS_WRITTEN}")
            if name in spelt_out:
                each = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
                size_bytes += pc.sum(pc.take(each, chunk.indices)).as_py() or 0
    if size_bytes > (most := most_bytes()):
        raise UserError(f"{path}: its texts take {size_bytes / 2**30:.2f} GiB; expected at most {most / 2**30:.2f} GiB")
