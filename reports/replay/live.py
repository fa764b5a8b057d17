"""Page of a run in progress: a server on loopback, whose address has a token, and counters of switches."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import attrgetter
from threading import Lock, Thread
from types import TracebackType
from typing import Any

import numpy as np

from harness.columns.column import Column, PortCounter
from harness.columns.flows import of_session, replayed
from harness.columns.links import counted
from harness.measure.flow_record import FlowRecord
from harness.plan.run import Run
from reports.replay.network import Network
from reports.replay.pack import Array, packed
from reports.replay.page import shell

MOST_SAMPLES = 512
_LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 16  # limit of connections at a time; a browser uses six
_REQUEST_S = 5.0  # time for a whole request, from the connection to the last byte of the answer
_LOOK_S = 0.25  # interval at which time-outs of connections are checked
Counters = Mapping[str, Mapping[str, Any]]  # `Live.stats` by switch
Files = dict[str, tuple[str, bytes]]  # type and content by path; empty content means that there is none yet


# Columns of `links` that a switch process reports: functions of `Live.stats` and the dilation.
_OF_PORTS: dict[str, Callable[[Mapping[str, Any], int], int]] = {
    "tx_bytes": lambda port, _: port["tx_bytes"],
    "busy_ns": lambda port, dilation: port["busy_ns"] // dilation,
    "paused_ns": lambda port, dilation: sum(row["paused_ns"] for row in port["pfc"]) // dilation,
    "dropped": lambda port, _: sum(n for key, n in port.items() if key.startswith("drop_") and key != "drop_bytes"),
    "depth_bytes": lambda port, _: port["depth_bytes"],
}


def _read_columns() -> list[tuple[Column, PortCounter]]:
    """Return the columns of `links` that switch processes report."""
    return [(column, source) for column, source in counted() if source.name in _OF_PORTS]


class Watch:
    """Server of the page during the block; it leaves nothing behind, however the process ends."""

    def __init__(self) -> None:
        token = secrets.token_urlsafe(24)
        self._data = f"/{token}/data"
        self._files: Files = {f"/{token}/": ("text/html; charset=utf-8", shell(b"", "a run")), self._data: ("", b"")}
        self._server = _Server((_LOOPBACK, 0), _handler(self._files))
        self.url = f"http://{_LOOPBACK}:{self._server.server_port}/{token}/"
        self._thread = Thread(target=self._server.serve_forever, args=(_LOOK_S,), name="watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def begin(self, run: Run) -> None:
        """Show another run from now on."""
        self._run, self._network = run, Network(run.topology)
        self._times_ns: list[int] = []
        self._counted: list[Array] = []
        directions = 2 * len(run.topology.links)
        self._read_ns = np.zeros(directions, np.int64)
        self._read = np.zeros((directions, len(_read_columns())), np.int64)
        self._show([], 0)

    def look(
        self, times_ns: Mapping[str, int], counters: Counters, dilation: int, records: Sequence[FlowRecord]
    ) -> None:
        """Show the counters of each switch at its own model time, and the progress of flows.

        All times are later than those of the previous call. The counters are shown for the earliest
        of these times, by linear interpolation since a switch's previous report.
        """
        now_ns = min(times_ns.values())
        if self._times_ns and now_ns <= self._times_ns[-1]:
            return
        read_ns, read = self._directions(times_ns, counters, dilation)
        step_ns = read_ns - self._read_ns
        share = np.where(step_ns > 0, (now_ns - self._read_ns) / np.maximum(step_ns, 1), 1)
        grown = self._read + np.rint((read - self._read) * share[:, None]).astype(np.int64)
        values = np.where([source.grows for _, source in _read_columns()], grown, read)
        self._read_ns, self._read = read_ns, read
        self._times_ns.append(now_ns)
        self._counted.append(values)
        if len(self._times_ns) > MOST_SAMPLES:
            self._times_ns, self._counted = self._times_ns[::2], self._counted[::2]
        self._show(records, now_ns)

    def _directions(self, times_ns: Mapping[str, int], counters: Counters, dilation: int) -> tuple[Array, Array]:
        """Return the times, and a row of `_read_columns` for each direction.

        Hosts report nothing, so the switches' counters are used for their links.
        """
        topology = self._network.topology
        columns = _read_columns()
        values = np.zeros((2 * len(topology.links), len(columns)), np.int64)
        when_ns = np.full(len(values), min(times_ns.values()), np.int64)
        for name, switch in counters.items():
            for port in switch["ports"]:
                out = self._network.direction(name, port["port"])
                own = {key: read(port, dilation) for key, read in _OF_PORTS.items()}
                when_ns[out] = times_ns[name]
                values[out] = [own[source.name] for _, source in columns]
                there = topology.ports[name][port["port"]]
                if there.node in topology.host_by_name:
                    busy_ns = port["rx_bytes"] * 8_000_000_000 // there.rate_bps
                    sent = {"tx_bytes": port["rx_bytes"], "busy_ns": busy_ns}
                    when_ns[out ^ 1] = times_ns[name]
                    values[out ^ 1] = [sent.get(source.name, 0) for _, source in columns]
        return when_ns, values

    def _show(self, records: Sequence[FlowRecord], now_ns: int) -> None:
        """Show the samples so far; the first is the state before the run."""
        run = self._run
        head = {
            "title": run.scenario.title or run.name,
            "scenario": run.name,
            "variant": run.variant,
            "seed": run.seed,
            "world": "mininet",
            "ended": "under way",
            "live": True,
            "joined": 1,
            "joined_rates": 1,
            "left_out": 0,
            "end_ns": now_ns,
            "network": self._network.drawn(),
            "changes": [astuple(each) for each in run.link_changes()],
            "texts": [],
            "counts": [[column.name, column.replayed] for column in replayed()],
        }
        self._files[self._data] = ("application/octet-stream", packed(head, {**self._links(), **_flows(records)}))

    def _links(self) -> dict[str, Array]:
        times = np.array(self._times_ns, np.int64)
        if len(times) < 2:
            return {}
        values = np.stack(self._counted)
        steps = np.diff(values, axis=0)
        return {
            "link": np.arange(values.shape[1]),
            "link_time": times[1:],
            "link_interval": np.diff(times),
            **{
                f"link_{column.name}": (steps if source.grows else values[1:])[:, :, i].T
                for i, (column, source) in enumerate(_read_columns())
            },
        }


def _flows(records: Sequence[FlowRecord]) -> dict[str, Array]:
    known = [record for record in records if record.flow.start_ns >= 0]
    columns: dict[str, list[float]] = {
        **{column.name: list(map(attrgetter(source.attribute), known)) for column, source in of_session()},
        "source": [record.flow.source for record in known],
        "destination": [record.flow.destinations[0] if len(record.flow.destinations) == 1 else -1 for record in known],
        **{column.name: [record.columns[column.name] for record in known] for column in replayed()},
    }
    whole: dict[str, Array] = {name: np.array(values, np.int64) for name, values in columns.items()}
    over = whole["delivered_ns"] >= 0
    fct_ns = np.where(over, whole["delivered_ns"] - whole["start_ns"], np.nan)
    return {**whole, "fct_ns": fct_ns, "slowdown": np.full(len(known), np.nan)}


class _Server(ThreadingHTTPServer):
    """Server with few and short connections, since anybody on the machine can connect.

    Each connection has a thread and a file descriptor, which the run also needs.
    """

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[socket.socket, float] = {}  # deadline by connection
        self._lock = Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Refuse a connection beyond the limit by closing it at once."""
        with self._lock:
            refused = len(self._open) >= MOST_CONNECTIONS
            if not refused:
                self._open[request] = time.monotonic() + _REQUEST_S
        if refused:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().close_request(request)

    def service_actions(self) -> None:
        """End connections whose time is over; their threads then find them closed."""
        now_s = time.monotonic()
        with self._lock:
            for request in [request for request, until_s in self._open.items() if until_s < now_s]:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors, because the terminal shows the run's progress and anybody can send requests."""


def _handler(files: Files) -> type[BaseHTTPRequestHandler]:
    """Return a handler that serves only these paths, which contain the token."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_S

        def do_GET(self) -> None:
            with suppress(OSError):  # the client has disconnected
                self._answer()

        def _answer(self) -> None:
            asked = self.path.encode()
            matching = (file for path, file in files.items() if secrets.compare_digest(path.encode(), asked))
            kind, content = next(matching, ("", b""))
            if not content:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(content))),
                ("Cache-Control", "no-store"),
                ("Referrer-Policy", "no-referrer"),
                ("X-Content-Type-Options", "nosniff"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, because the terminal shows the run's progress."""

    return Handler
