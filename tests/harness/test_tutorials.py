"""Each page of docs/tutorials is followed from its first line to its last, and its output is compared with the page.

A file has its name in the line above its block, `` `name`: ``. A command begins with `$` in a block of the language
console; what is below it is its output, where `...` stands for anything, and line breaks do not matter. A command ends
with status 0 unless a comment says `exit status N`, and with `&` at its end it goes on until the page is over.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from p4switch.processes import end_with_parent
from p4switch.tcp_ports import free_port
from tests.e2e.runs import forked
from tests.mininet.networks import alone, needs_mininet

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NEEDS = {
    "mininet": needs_mininet,
    "capture": pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
    "cluster": pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
}
PAGES = [pytest.param(path, id=path.stem, marks=NEEDS.get(path.stem, ())) for path in sorted(FOLDER.glob("*.md"))]

_BLOCK = re.compile(r"(?:^`(?P<name>[\w.-]+)`[^\n]*:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
_COMMAND = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.M)
_STATUS = re.compile(r"#.*exit status (\d+)")
# `list` tells what sources say, which compiled hosts do not have; local jobs are processes of a first process.
_TO_FORK = re.compile(r"(?:sudo )?p4cc (?!list|sweep .*--jobs)")
_OF_A_SHELL = re.compile(r"[|<>&;*]")
_PORT = "8786"  # that pages have for Dask's scheduler
_PATIENCE_S = 120.0
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def shown(output: str, told: str) -> bool:
    """Return the lines of output; `...` at the beginning may stand for no line."""
    return any(
        doctest.OutputChecker().check_output(each, told, _OPTIONS) for each in {output, output.removeprefix("...\n")}
    )


class Reader:
    """Reader who follows a page in a folder of its own."""

    def __init__(self, folder: Path, processes: ExitStack) -> None:
        self._folder = folder
        self._processes = processes
        self._environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self._environment.pop("PYTEST_ADDOPTS", None)  # these tests' own
        self._environment["P4CC"] = str(FOLDER.parents[1])
        self._logs = 0

    def follow(self, page: str) -> int:
        """Run the commands of a page and return their number."""
        commands = 0
        for block in _BLOCK.finditer(page):
            if block["name"] is not None:
                (self._folder / block["name"]).write_text(block["text"])
            elif block["language"] == "console":
                for found in _COMMAND.finditer(block["text"]):
                    commands += 1
                    self._type(found["command"].replace("\\\n", ""), found["output"])
        return commands

    def _type(self, command: str, output: str) -> None:
        if command.endswith("&"):
            told = self._processes.enter_context(self._background(command, output))
            status = 0
        elif _TO_FORK.match(command) and not _OF_A_SHELL.search(command):
            words = shlex.split(command, comments=True)
            done = forked(*words[words.index("p4cc") + 1 :], cwd=self._folder)
            status, told = done.returncode, done.stderr + done.stdout
        else:
            done = subprocess.run(
                ["bash", "-c", command], cwd=self._folder, env=self._environment, capture_output=True, text=True,
                timeout=_PATIENCE_S, check=False,
            )  # fmt: skip
            is_told = command.startswith("p4cc") or done.returncode != 0  # others' warnings are not for the page
            status, told = done.returncode, done.stderr * is_told + done.stdout
        expected = _STATUS.search(command)
        assert status == (int(expected[1]) if expected else 0), f"{command}\n{told}"
        assert shown(output, told), f"{command}\nexpected:\n{output}\ngot:\n{told}"

    @contextmanager
    def _background(self, command: str, output: str) -> Iterator[str]:
        """Yield once the output is that of the page."""
        self._logs += 1
        log = self._folder / f"background-{self._logs}.log"
        with log.open("w") as target:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command[:-1]}"], cwd=self._folder, env=self._environment,
                stdin=subprocess.DEVNULL, stdout=target, stderr=target, start_new_session=True,
                preexec_fn=lambda: end_with_parent(signal.SIGTERM),
            )  # fmt: skip
        try:
            end = time.monotonic() + _PATIENCE_S
            while not shown(output, log.read_text()) and process.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            yield log.read_text()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_comes_out(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8").replace(_PORT, str(free_port()))
    with ExitStack() as processes:
        processes.enter_context(alone() if page.stem == "mininet" else nullcontext())
        assert Reader(tmp_path, processes).follow(text) >= 3


def test_what_a_page_shows_wrongly_is_noticed(tmp_path: Path) -> None:
    page = "`a.txt`, a file:\n\n```text\n1 2\n```\n\n```console\n$ cat a.txt\n{}\n$ test -e b  # exit status {}\n```\n"
    reader = Reader(tmp_path, ExitStack())
    assert reader.follow(page.format("1 ...", 1)) == 2
    for output, status in (("1 3", 1), ("1 2", 0)):
        with pytest.raises(AssertionError, match=r"cat a\.txt|test -e b"):
            reader.follow(page.format(output, status))
