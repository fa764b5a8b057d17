"""Result folders of others: values are checked before use as a name, a line, a size or code."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.measure import folder_values, results
from harness.plan import resolve, scenario
from harness.worlds.virtual import VirtualWorld
from p4switch import extensions
from p4switch.errors import UserError
from reports import write_report
from reports.replay import recorded, recorded_page
from tests.e2e.runs import MAIN, forked
from topologies import model

SMALL: dict[str, Any] = {
    "cc": ["none"],
    "topology": {"name": "single-switch", "hosts": 2},
    "workload": {"name": "permutation", "size_bytes": 20_000},
}
EVIL = "from pathlib import Path\nPath({marker!r}).touch()\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one run."""
    folder = tmp_path_factory.mktemp("made") / "runs"
    folder.mkdir()
    (run,) = resolve.plan("small", scenario.check(SMALL), Path())
    results.write(folder / run.label, results.files(run, VirtualWorld(run).run()))
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """Return a copy of the run's folder."""
    (folder,) = Path(shutil.copytree(made, tmp_path / "runs")).iterdir()
    return folder


def p4cc(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `p4cc` with a cache that records the user's own runs."""
    return forked(*arguments, cwd=cwd, variables={"P4CC_CACHE": str(cwd / "cache")})


def limited(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `p4cc` with at most 4 GiB of address space."""
    return subprocess.run(
        [*MAIN, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
        env={**os.environ, "P4CC_NATIVE": "0"},
    )  # fmt: skip


def changed(file: Path, change: Callable[[Any], object]) -> None:
    tables = json.loads(file.read_text())
    change(tables)
    file.write_text(json.dumps(tables))


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line with which a command that refuses a folder ends."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    (line,) = done.stderr.splitlines()
    assert line.startswith("p4cc: error: ")
    assert line.isprintable()
    return line


@pytest.fixture
def evil(tmp_path: Path, run: Path) -> tuple[Path, Path]:
    """Return a Python file that the run's folder names, and the file that it would create."""
    marker, file = tmp_path / "marker", tmp_path / "evil.py"
    file.write_text(EVIL.format(marker=str(marker)))
    text = (run / "scenario.toml").read_text()
    (run / "scenario.toml").write_text(text.replace("extensions = []", 'extensions = ["evil.py"]'))
    return marker, file


def test_a_file_that_a_result_folder_names_is_not_run(run: Path, evil: tuple[Path, Path], tmp_path: Path) -> None:
    marker, file = evil
    for command in (["report", "runs"], ["report", "runs", "--format", "svg"], ["replay", "runs"]):
        done = p4cc(tmp_path, *command)
        assert done.returncode == 0, done.stderr
        assert not marker.exists(), command
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
        assert f"figures left out: {file}: only the results name it" in line
    look = [sys.executable, "-W", "error", "-c", "import p4cc; p4cc.load('runs')"]
    environment = {**os.environ, "P4CC_NATIVE": "0", "P4CC_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(look, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "UserWarning: figures left out" in done.stderr
    assert not marker.exists()


def test_a_file_that_the_user_names_is_and_from_then_on_as_it_was(
    run: Path, evil: tuple[Path, Path], tmp_path: Path
) -> None:
    marker, file = evil
    for command in (["report", "runs", "--extension", "evil.py"], ["report", "runs"]):
        marker.unlink(missing_ok=True)
        done = p4cc(tmp_path, *command)
        assert (done.returncode, done.stderr) == (0, "")
        assert marker.exists()
    marker.unlink()
    with file.open("a") as text:
        text.write("# another\n")
    assert "figures left out" in p4cc(tmp_path, "report", "runs").stderr
    assert not marker.exists()
    copy = Path(shutil.copy(file, tmp_path / "else.py"))  # the same text elsewhere may import other modules
    (run / "scenario.toml").write_text((run / "scenario.toml").read_text().replace("evil.py", copy.name))
    assert "figures left out" in p4cc(tmp_path, "report", "runs").stderr
    assert not marker.exists()


def test_a_file_is_run_as_it_was_when_it_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    marker, file = tmp_path / "marker", tmp_path / "figure.py"
    file.write_text("")
    extensions.load(file)
    del extensions._loaded[file]
    monkeypatch.setattr(extensions, "forget", lambda name: file.write_text(EVIL.format(marker=str(marker))))
    extensions.load_known(file)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["../victim/x", "/tmp/x", "x\0y", "x\ny", "..", "", "x" * 300, "\x1b[2J"])
def test_a_scenarios_name_is_a_plain_one(run: Path, tmp_path: Path, name: str) -> None:
    changed(run / "summary.json", lambda summary: summary.update(scenario=name))
    (tmp_path / "victim").mkdir()
    line = refused(forked("report", "runs", "--format", "svg", "--out", "figures", cwd=tmp_path))
    assert "summary.json: scenario: should be the name of a file" in line or "has the character" in line
    assert not list((tmp_path / "victim").iterdir())
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("key", ["title", "variant", "protocol", "ended", "world"])
@pytest.mark.parametrize("command", [["report", "runs"], ["diff", "runs", "others"], ["replay", "runs"]])
def test_nothing_of_a_folder_reaches_a_terminal_as_a_control_character(
    run: Path, made: Path, tmp_path: Path, key: str, command: list[str]
) -> None:
    shutil.copytree(made, tmp_path / "others")
    changed(run / "summary.json", lambda summary: summary.update({key: "\x1b]0;owned\x07"}))
    assert "summary.json: the text" in refused(forked(*command, cwd=tmp_path))


@pytest.mark.parametrize("name", ["b\x1b[2J-seed1", "c\nforged: the same", "d\u061c-seed1"])
def test_nor_does_a_folders_name(run: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(run, run.with_name(name))
    for command in (["diff", "runs", "runs"], ["replay", "runs"], ["report", "runs"], ["report", f"runs/{name}"]):
        assert "expected a name that can be printed" in refused(forked(*command, cwd=tmp_path))


@pytest.mark.parametrize("value", [10**400, -(10**20), "1", None, [], {"a": {}}])
@pytest.mark.parametrize("key", ["seed", "flows", "end_ns", "flows_delivered"])
def test_numbers_are_in_range(run: Path, tmp_path: Path, key: str, value: object) -> None:
    changed(run / "summary.json", lambda summary: summary.update({key: value}))
    with pytest.raises(UserError, match=r"summary.json: .*; expected a folder as p4cc writes it"):
        results.load(run)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"set_up_cpu_s": 1.0, "run_c', "not JSON"),
        ('{"set_up_cpu_s": 1.0}', "run_cpu_s: missing"),
        ('{"set_up_cpu_s": 1.0, "run_cpu_s": "much"}', "run_cpu_s: .*number"),
        ("[]", "expected a JSON object"),
    ],
)
def test_a_damaged_performance_json_is_refused_like_a_missing_one(run: Path, text: str, told: str) -> None:
    (run / "performance.json").write_text(text)
    with pytest.raises(UserError, match=f"performance.json: .*{told}"):
        results.load(run)


def test_json_is_of_a_bounded_size_and_depth(run: Path) -> None:
    file = run / "summary.json"
    text = file.read_text().rstrip().removesuffix("}")
    for more, told in (
        (f'"x": {"[" * 60}{"]" * 60}', "nested over 50 deep"),
        (f'"x": {"[" * 100_000}', "not JSON"),
        (f'"x": [{"1," * 2_000_001}1]', "over 2,000,000 values"),
        (f'"x": "{"x" * (2 << 20)}"', "a text of"),
        (f'"x": {"1" * 5000}', "not JSON"),
        (f'"x": "{"x" * folder_values.MOST_JSON_BYTES}"', "expected at most"),
    ):
        file.write_text(f"{text}, {more}}}")
        with pytest.raises(UserError, match=f"summary.json: .*{told}"):
            results.load(run)


def test_tables_are_of_a_size_that_is_known_before_they_are_read(run: Path, tmp_path: Path) -> None:
    """A column with one value takes some hundred KB for a hundred million rows."""
    names = pq.read_schema(run / "flows.parquet").names
    group = pa.table({name: np.zeros(10_000_000, np.int64) for name in names})
    with pq.ParquetWriter(tmp_path / "large", group.schema, compression="zstd") as writer:
        for _ in range(5):
            writer.write_table(group)
    for file, told in (("queues", "rows of"), ("flows", "rows; expected 2, as summary.json says")):
        shutil.copy(run / f"{file}.parquet", tmp_path / "kept")
        shutil.copy(tmp_path / "large", run / f"{file}.parquet")
        for command in (["report", "runs"], ["replay", "runs"]):
            line = refused(limited(tmp_path, *command))
            assert told in line
            assert "queues" in line or "flows" in line
        shutil.copy(tmp_path / "kept", run / f"{file}.parquet")


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pa.array(["\x1b[2J"] * 2), "the text"),
        (pa.array([[1], [2]]), "of type list"),
        (pa.array([{"a": 1}] * 2), "of type struct"),
        (pa.array([b"x"] * 2), "of type binary"),
    ],
)
def test_tables_have_numbers_and_texts(run: Path, column: pa.Array, told: str) -> None:
    table = pq.read_table(run / "flows.parquet")
    pq.write_table(table.append_column("more", column), run / "flows.parquet")
    with pytest.raises(UserError, match=f"flows.parquet: .*{told}"):
        _ = results.load(run).flows


def test_text_is_not_spelt_out_before_its_size_is_known(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated text of 1 MB takes one byte in each row of the file."""
    rows = 300
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * (1 << 20)]))
    pq.write_table(pa.table({"time_ns": np.arange(rows), "more": long.cast(pa.string())}), run / "queues.parquet")
    monkeypatch.setattr(folder_values, "most_bytes", lambda: 1 << 27)
    with pytest.raises(UserError, match=r"queues.parquet: its texts take 0.29 GiB"):
        _ = results.load(run).queues


def test_metadata_of_pandas_are_not_heeded(run: Path) -> None:
    """They determine types of columns; p4cc does not write any."""
    table = pq.read_table(run / "queues.parquet")
    told = {"index_columns": ["time_ns"], "columns": [], "column_indexes": [], "pandas_version": "3"}
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(told)}), run / "queues.parquet")
    assert list(results.load(run).queues.columns) == table.column_names


@pytest.mark.parametrize("name", ["flows.parquet", "links.parquet", "more.parquet", "summary.json", "scenario.toml"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "link to one of these"])
def test_files_are_regular(run: Path, made: Path, tmp_path: Path, name: str, kind: str) -> None:
    path = run / name
    if kind == "link to one of these":  # of others, with this name for what this user alone may read
        shutil.copy(path if path.exists() else run / "flows.parquet", tmp_path / "readable")
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path.name if kind == "link" else tmp_path / "readable")
    shutil.copytree(made, tmp_path / "others")
    for command in (["diff", "runs", "others"], ["diff", "others", "runs"], ["report", "runs"], ["replay", "runs"]):
        assert "expected a" in refused(forked(*command, cwd=tmp_path)), command


def test_a_table_without_permission_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    table = tmp_path / "flows.parquet"
    table.touch()
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UserError, match=r"flows\.parquet: Permission denied$"):
        folder_values.read_table(table, [])


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to nothing", "link"])
def test_a_trace_is_regular(run: Path, tmp_path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(run / "trace.jsonl")
    elif kind == "folder":
        (run / "trace.jsonl").mkdir()
    else:
        (run / "trace.jsonl").symlink_to("nothing" if kind == "link to nothing" else run / "summary.json")
    assert "trace.jsonl: " in refused(forked("replay", "runs", cwd=tmp_path))


def test_a_link_in_the_place_of_a_run_is_not_followed(run: Path, tmp_path: Path) -> None:
    run.rename(tmp_path / "elsewhere")
    run.symlink_to(tmp_path / "elsewhere")
    for command in (["report", "runs"], ["replay", "runs"], ["diff", "runs", "runs"]):
        assert f"'runs/{run.name}' is a link" in refused(forked(*command, cwd=tmp_path))
    assert forked("report", f"runs/{run.name}", cwd=tmp_path).returncode == 0  # the user names it


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of others")
def test_what_another_user_has_run_is_not_run(run: Path, tmp_path: Path, evil: tuple[Path, Path]) -> None:
    """Users may share a cache."""
    marker, _ = evil
    assert p4cc(tmp_path, "report", "runs", "--extension", "evil.py").returncode == 0
    marker.unlink()
    (note,) = (path for path in tmp_path.glob("cache/extensions/*/*"))
    os.chown(note, 65534, 65534)
    assert "figures left out" in p4cc(tmp_path, "report", "runs").stderr
    assert not marker.exists()


def test_a_scenario_is_toml(run: Path, tmp_path: Path) -> None:
    for text, told in (("= 3", "not a TOML file"), (f"x = {'1' * 5000}", "not a TOML file"), ("x = 1", "record")):
        (run / "scenario.toml").write_text(text)
        for command in (["replay", "runs"], ["report", "runs"]):
            line = refused(forked(*command, cwd=tmp_path))
            assert "scenario.toml: " in line
            assert told in line


def test_the_keys_of_a_scenario_are_short(run: Path, tmp_path: Path) -> None:
    """A dotted key of 40 kB took 1.7 GB."""
    file = run / "scenario.toml"
    text = file.read_text()
    for key in (".".join(["a"] * 200_000), "' ' . " * 200_000 + "b", '"."' + '.""' * 200_000):
        for written in (f"{key} = 1\n{text}", f"{text}\n[{key}]\n", f"x = {{ {key} = 1 }}\n{text}"):
            file.write_text(written)
            done = forked("report", "runs", cwd=tmp_path)
            assert "scenario.toml: not a TOML file: tables and lists are nested too deeply" in refused(done)
    assert scenario.parse(f"{'.'.join(['a'] * 30)} = '{'a-' * 1_000_000}'")


def test_the_extensions_of_a_folder_are_few_and_their_names_short(run: Path, tmp_path: Path) -> None:
    text = (run / "scenario.toml").read_text()
    for files in (["a" * 100_000], [f"{i}.py" for i in range(20_000)]):
        (run / "scenario.toml").write_text(text.replace("extensions = []", f"extensions = {json.dumps(files)}"))
        assert "scenario.toml: extensions" in refused(forked("report", "runs", cwd=tmp_path))


def test_a_number_of_thousands_of_digits_in_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f"limit_ns = {'1' * 5000}\n")
    assert "own.toml: not a TOML file" in refused(forked("run", "own.toml", cwd=tmp_path))


def test_figures_go_to_a_folder_that_can_be_made(made: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in ("file/figures", "/proc/figures"):
        line = refused(forked("report", str(made), "--format", "svg", "--out", out, cwd=tmp_path))
        assert out.split("/")[1] in line


def test_a_title_with_control_characters_is_written_without_them(tmp_path: Path) -> None:
    tables = {**SMALL, "title": "a \x1b[1mbold\x1b[0m title"}
    (run,) = resolve.plan("small", scenario.check(tables), Path())
    kept = results.write(tmp_path / "run", results.files(run, VirtualWorld(run).run()))
    assert kept.summary["title"] == "a \\x1b[1mbold\\x1b[0m title"


def test_the_network_of_a_folder_is_of_a_bounded_size(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four small numbers make a network of fifteen million hosts."""
    text = (run / "scenario.toml").read_text()
    begin, end = text.index("[topology]"), text.index("[workload]")
    counts = "".join(f"{key} = 250\n" for key in ("pods", "tors_per_pod", "hosts_per_tor"))
    (run / "scenario.toml").write_text(f'{text[:begin]}[topology]\nname = "clos"\n{counts}\n{text[end:]}')
    assert "topology 'clos': over 1,000,000 links" in refused(limited(tmp_path, "replay", "runs"))
    monkeypatch.setattr(model, "MAX_LINKS", 1_000)  # a million take seconds to make
    write_report([results.load(run)], tmp_path / "report.html", tmp_path / "plots")
    assert "over 1,000 links" in (tmp_path / "report.html").read_text()


def test_so_is_what_is_drawn_over_time(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "most_bytes", lambda: 7)
    with pytest.raises(UserError, match=r"ports at [0-9,]+ times take 0.00 GiB"):
        recorded_page(results.load(run))
