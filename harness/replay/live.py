"""The page of a run that goes on: a server on loopback, whose address has a token, and what switches tell meanwhile."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any

import numpy as np

from harness.measure.flow_record import FlowRecord
from harness.plan.experiment import Run
from harness.replay.network import Network
from harness.replay.pack import Array, packed
from harness.replay.page import shell

MOST_SAMPLES = 512
_LOOPBACK = "127.0.0.1"
_GROWING = ("tx_bytes", "busy_ns", "paused_ns", "dropped")
Counters = Mapping[str, Mapping[str, Any]]  # `Live.stats` by switch


class Watch:
    """Serves the page while the block lasts; nothing of it is left afterwards, however the process ends."""

    def __init__(self) -> None:
        token = secrets.token_urlsafe(24)
        self._files: dict[str, tuple[str, bytes]] = {f"/{token}/": ("text/html; charset=utf-8", shell(b"", "a run"))}
        self._data = f"/{token}/data"
        self._server = ThreadingHTTPServer((_LOOPBACK, 0), _handler(self._files))
        self._server.daemon_threads = True
        self.url = f"http://{_LOOPBACK}:{self._server.server_port}/{token}/"
        self._thread = Thread(target=self._server.serve_forever, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def begin(self, run: Run) -> None:
        """Another run is shown from here on."""
        self._run, self._network = run, Network(run.topology)
        self._times_ns: list[int] = []
        self._counted: list[Array] = []
        self._show([], 0)

    def look(self, now_ns: int, counters: Counters, dilation: int, records: Sequence[FlowRecord]) -> None:
        """What switches have counted, and how far flows are, at a model time."""
        if self._times_ns and now_ns <= self._times_ns[-1]:
            return
        self._times_ns.append(now_ns)
        self._counted.append(self._directions(counters, dilation))
        if len(self._times_ns) > MOST_SAMPLES:
            self._times_ns, self._counted = self._times_ns[::2], self._counted[::2]
        self._show(records, now_ns)

    def _directions(self, counters: Counters, dilation: int) -> Array:
        """A row a direction: the counters, then what waits. Hosts tell nothing: switches count what they receive."""
        topology = self._network.topology
        found = np.zeros((2 * len(topology.links), len(_GROWING) + 1), np.int64)
        for name, switch in counters.items():
            for port in switch["ports"]:
                out = self._network.direction(name, port["port"])
                paused_ns = sum(row["paused_ns"] for row in port["pfc"]) // dilation
                dropped = sum(count for key, count in port.items() if key.startswith("drop_") and key != "drop_bytes")
                found[out] = port["tx_bytes"], port["busy_ns"] // dilation, paused_ns, dropped, port["depth_bytes"]
                there = topology.ports[name][port["port"]]
                if there.node in topology.host_by_name:
                    found[out ^ 1, :2] = port["rx_bytes"], port["rx_bytes"] * 8_000_000_000 // there.rate_bps
        return found

    def _show(self, records: Sequence[FlowRecord], now_ns: int) -> None:
        """The first sample is what was before the run."""
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
            "left_out": 0,
            "end_ns": now_ns,
            "network": self._network.drawn(),
            "changes": [[each.time_ns, each.link, each.up, each.rate_bps] for each in run.link_changes()],
            "texts": [],
        }
        self._files[self._data] = ("application/octet-stream", packed(head, {**self._links(), **_flows(records)}))

    def _links(self) -> dict[str, Array]:
        times = np.array(self._times_ns, np.int64)
        if len(times) < 2:
            return {}
        counted = np.stack(self._counted)
        steps = np.diff(counted, axis=0)
        found: dict[str, Array] = {
            "link": np.arange(counted.shape[1]),
            "link_time": times[1:],
            "link_interval": np.diff(times),
            "link_depth_bytes": counted[1:, :, -1].T,
        }
        return {**found, **{f"link_{name}": steps[:, :, i].T for i, name in enumerate(_GROWING)}}


def _flows(records: Sequence[FlowRecord]) -> dict[str, Array]:
    known = [record for record in records if record.flow.start_ns >= 0]
    columns: dict[str, list[float]] = {
        "flow": [record.flow.number for record in known],
        "source": [record.flow.source for record in known],
        "destination": [record.flow.destinations[0] if len(record.flow.destinations) == 1 else -1 for record in known],
        "size_bytes": [record.flow.size_bytes for record in known],
        "start_ns": [record.flow.start_ns for record in known],
    }
    for name in ("qp", "first_sent_ns", "delivered_ns", "completed_ns", "packets_sent", "retransmitted", "timeouts",
                 "cnps", "marked"):  # fmt: skip
        columns[name] = [getattr(record, name) for record in known]
    whole: dict[str, Array] = {name: np.array(values, np.int64) for name, values in columns.items()}
    over = whole["delivered_ns"] >= 0
    fct_ns = np.where(over, whole["delivered_ns"] - whole["start_ns"], np.nan)
    return {**whole, "fct_ns": fct_ns, "slowdown": np.full(len(known), np.nan)}


def _handler(files: Mapping[str, tuple[str, bytes]]) -> type[BaseHTTPRequestHandler]:
    """Answers for these paths alone. They have the token in them, so that others on the machine see nothing."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = next((file for path, file in files.items() if secrets.compare_digest(path, self.path)), None)
            if found is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            kind, content = found
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
            """The terminal has the run's progress."""

    return Handler
