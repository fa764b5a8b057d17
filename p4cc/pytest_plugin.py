"""Packet tests with pytest: the fixture `p4_switch`, the choice of the switch, and coverage of P4 programs.

    def test_it_forwards(p4_switch):
        switch = p4_switch("my.p4")
        switch.table("ipv4_lpm").add(dst="10.0.0.0/24", action="forward", port=1)
        switch.send(0, packet).expect((1, packet))

    pytest --p4-switch bmv2 --p4-coverage coverage/

`docs/validating.md` has all options.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from p4cc.switch import Switch
    from p4switch.coverage import Coverage

__all__ = ["p4_switch"]

_KINDS = ("builtin", "process", "bmv2")
_OUTPUT = "p4_coverage"  # key of the coverage in a pytest-xdist worker's output


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("p4", "P4 programs")
    group.addoption("--p4-switch", choices=_KINDS, default="builtin", help="switch that the fixture p4_switch makes")
    group.addoption("--p4-coverage", metavar="FOLDER", help="write the coverage of P4 programs by tests (HTML, lcov)")
    group.addoption("--p4-source", metavar="FOLDER", help="folder whose programs alone count, with --p4-coverage")
    group.addoption(
        "--p4-fail-under", type=float, metavar="PERCENT", help="fail where they reach less, with --p4-coverage"
    )


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("--p4-coverage"):
        from p4switch.errors import UserError
        from p4switch.output_file import check_folder

        try:
            check_folder(Path(folder), "--p4-coverage")
        except UserError as error:
            raise pytest.UsageError(str(error)) from None
        config.pluginmanager.register(_Collector(config), "p4cc-coverage")


@pytest.fixture
def p4_switch(request: pytest.FixtureRequest) -> Iterator[Callable[..., Switch]]:
    """Yield a factory of switches of the kind that `--p4-switch` names, which end with the test.

    The factory has the arguments of `p4cc.Switch`.

    Parameters
    ----------
    request
        The test.

    Yields
    ------
    Callable[..., Switch]
        Factory of `p4cc.Switch`.

    Raises
    ------
    UserError
        For a program or entries that do not fit; a test is skipped if the kind of switch is missing.
    """
    from p4cc.switch import Switch
    from p4switch.errors import UserError

    kind = request.config.getoption("--p4-switch")
    with contextlib.ExitStack() as stack:

        def make(program: Any, entries: Any = (), **more: Any) -> Switch:
            try:
                return stack.enter_context(Switch(program, entries, **{"switch": kind, **more}))
            except UserError as error:
                if kind != "builtin" and getattr(error, "missing", False):
                    pytest.skip(str(error))
                raise

        yield make


class _Collector:
    """Collector of the coverage of all tests, over the processes of pytest-xdist."""

    def __init__(self, config: pytest.Config) -> None:
        from p4switch.coverage import Coverage, collector

        self._config = config
        self._take = collector.take
        self._total = Coverage()
        collector.start()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._total.merge(self._take())
        if (output := getattr(self._config, "workeroutput", None)) is not None:
            output[_OUTPUT] = [[*item, count] for item, count in self._total.counts.items()]
            return
        least = self._config.getoption("--p4-fail-under")
        if least is not None and self._counted().summary().percent < least and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        from p4switch.coverage import Item

        for *item, count in getattr(node, "workeroutput", {}).get(_OUTPUT, ()):
            self._total.counts[Item(*item)] += count

    def _counted(self) -> Coverage:
        folder = self._config.getoption("--p4-source")
        return self._total if folder is None else self._total.within(Path(folder))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        folder = Path(self._config.getoption("--p4-coverage"))
        counted = self._counted()
        _report(counted, folder, terminalreporter.write_line)
        least = self._config.getoption("--p4-fail-under")
        share = counted.summary()
        if least is not None and share.percent < least:
            terminalreporter.write_line(f"P4 coverage {share.percent:.1f}%: expected {least:g}% or more", red=True)


def _report(coverage: Coverage, folder: Path, write_line: Callable[[str], object]) -> None:
    from rich.console import Console

    from p4switch.coverage import missed_lines, table, write

    console = Console(width=100)
    with console.capture() as written:
        console.print(table(coverage))
    for line in [*written.get().splitlines(), *(f"not reached: {line}" for line in missed_lines(coverage))]:
        write_line(line)
    write(coverage, folder)
    write_line(f"{folder / 'index.html'}, {folder / 'coverage.info'}")
