"""The server of a run in progress: clients with the token see the switches' reports."""

from __future__ import annotations

import contextlib
import socket
import threading
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from harness.plan import resolve, scenario
from harness.plan.run import Run
from reports.replay import live
from reports.replay.live import Watch
from reports.replay.pack import unpacked
from tests.p4cc.commands.test_commands import call
from tests.reports.replay.runs import SCENARIO

DILATION = 10


@pytest.fixture
def run() -> Run:
    (made,) = resolve.plan("watched", scenario.check(SCENARIO), Path())
    return made


def counters(run: Run, sent: int) -> dict[str, dict[str, Any]]:
    """Return counts in which each port of each switch has sent this number, received twice and has a third waiting."""
    port = {"tx_bytes": sent, "rx_bytes": 2 * sent, "busy_ns": sent, "depth_bytes": sent // 3}
    more = {"pfc": [{"paused_ns": sent}], "drop_buffer": sent // 100, "drop_bytes": sent}
    return {
        switch.name: {"ports": [{**port, **more, "port": number} for number in run.topology.ports[switch.name]]}
        for switch in run.topology.switches
    }


def at(run: Run, time_ns: int) -> dict[str, int]:
    """Return reports of all switches at one time."""
    return {switch.name: time_ns for switch in run.topology.switches}


def test_the_page_and_its_numbers_are_there_for_who_has_the_token(run: Run) -> None:
    with Watch() as watch:
        assert b"class Recording" in urlopen(watch.url).read()
        for url in (watch.url.rsplit("/", 2)[0] + "/", watch.url[:-2] + "/", watch.url + "data"):
            with pytest.raises(HTTPError, match="404"):  # no run has begun
                urlopen(url)
        watch.begin(run)
        for time_ns, sent in ((0, 300), (1000, 900), (1000, 5000), (3000, 1500)):  # time stands still once
            watch.look(at(run, time_ns), counters(run, sent), DILATION, [])
        answer = urlopen(watch.url + "data")
        assert answer.headers["Cache-Control"] == "no-store"
        head, arrays = unpacked(answer.read())
    assert head["live"]
    assert head["end_ns"] == 3000
    assert arrays["link_time"].tolist() == [1000, 3000]
    assert arrays["link_interval"].tolist() == [1000, 2000]
    names = ("tx_bytes", "busy_ns", "paused_ns", "dropped", "depth_bytes")
    row = {name: arrays[f"link_{name}"].reshape(-1, 2) for name in names}
    between = next(2 * i for i, link in enumerate(run.topology.links) if {link.a, link.b} == {"s0", "s1"})
    assert row["tx_bytes"][between].tolist() == [600, 600]
    assert row["busy_ns"][between].tolist() == row["paused_ns"][between].tolist() == [60, 60]
    assert row["dropped"][between].tolist() == [6, 6]
    assert row["depth_bytes"][between].tolist() == [300, 500]
    host = next(2 * i + (link.a == "s0") for i, link in enumerate(run.topology.links) if "h0-0-2" in (link.a, link.b))
    assert row["tx_bytes"][host].tolist() == [1200, 1200]
    assert row["depth_bytes"][host].tolist() == [0, 0]


def test_a_long_run_has_fewer_samples_and_loses_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_SAMPLES", 8)
    with Watch() as watch:
        watch.begin(run)
        for i in range(31):
            watch.look(at(run, 1000 * i), counters(run, 100 * i), DILATION, [])
        _, arrays = unpacked(urlopen(watch.url + "data").read())
    assert len(arrays["link_time"]) < 8
    assert arrays["link_interval"].sum() == arrays["link_time"][-1] == 30_000
    assert arrays["link_tx_bytes"].reshape(len(arrays["link"]), -1)[0].sum() == 3000


def test_a_switch_that_answers_late_has_the_rates_of_its_own_times(run: Run) -> None:
    """Both send evenly; s1's second answer is half an interval late."""
    with Watch() as watch:
        watch.begin(run)
        for s0_ns, s1_ns in ((1000, 1000), (2000, 2500), (3000, 3000)):
            told = {**counters(run, s0_ns), "s1": counters(run, s1_ns)["s1"]}
            watch.look({"s0": s0_ns, "s1": s1_ns}, told, 1, [])
        _, arrays = unpacked(urlopen(watch.url + "data").read())
    assert arrays["link_time"].tolist() == [2000, 3000]
    between = next(2 * i for i, link in enumerate(run.topology.links) if {link.a, link.b} == {"s0", "s1"})
    assert arrays["link_busy_ns"].reshape(-1, 2)[between : between + 2].tolist() == [[1000, 1000], [1000, 1000]]


def test_what_others_on_the_machine_send_is_answered_and_said_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    with Watch() as watch:
        where = urlsplit(watch.url)
        assert where.hostname is not None
        for path in ("/é", "/\udcff\udcfe", "//"):
            with socket.create_connection((where.hostname, where.port or 0), 60) as asking:
                asking.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode("utf-8", "surrogateescape"))
                assert b" 404 " in asking.makefile("rb").readline()
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            watch._server.handle_error(None, (where.hostname, 0))
    assert capsys.readouterr() == ("", "")


def closed(connection: socket.socket) -> bool:
    """Return whether the other end closes the connection instead of leaving it open."""
    connection.settimeout(60)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_connections_beyond_sixteen_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_REQUEST_S", 1e6)
    with Watch() as watch, contextlib.ExitStack() as stack:
        where = urlsplit(watch.url)
        address = (where.hostname or "", where.port or 0)
        before = threading.active_count()
        opened = [stack.enter_context(socket.create_connection(address, 60)) for _ in range(200)]
        for connection in opened[live.MOST_CONNECTIONS :]:
            assert closed(connection)
        assert threading.active_count() <= before + live.MOST_CONNECTIONS
        opened[0].close()  # there is room for one again, once that is noticed
        for _ in range(1000):
            with contextlib.suppress(OSError, HTTPException):
                assert urlopen(watch.url).status == 200
                break
        else:
            pytest.fail("no room for another")


def test_a_request_has_a_deadline_however_lively_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte arrives soon after the one before it, so that no single wait is long."""
    monkeypatch.setattr(live, "_REQUEST_S", 1.0)
    with Watch() as watch:
        where = urlsplit(watch.url)
        with socket.create_connection((where.hostname or "", where.port or 0), 60) as connection:
            connection.settimeout(0.1)
            for _ in range(1000):  # ten minutes
                try:
                    connection.sendall(b"G")
                    if connection.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            else:
                pytest.fail("a request has no end")


def test_nothing_is_left_of_it() -> None:
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt), Watch() as watch:
        raise KeyboardInterrupt
    with pytest.raises(URLError):
        urlopen(watch.url)
    assert threading.active_count() == before


def test_the_virtual_world_is_watched_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "run", "incast", "--watch")
    assert (status, err.count("\n")) == (2, 1)
    assert "--watch: the virtual world has no such option; expected --world mininet" in err
