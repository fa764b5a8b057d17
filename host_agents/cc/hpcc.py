"""HPCC (Li et al., SIGCOMM 2019, algorithm 1): the window follows the utilization that in-band telemetry shows.

Windows are in wire bytes, as the host sends them. Every link on the path reports its queue and its count of
transmitted bytes; the most loaded one decides. Variable AI (`hpcc+vai`) and sampling frequency (`hpcc+sf`) come from
"Fast Convergence to Fairness" (Snyder and Lebeck), V.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from librt.strings import read_i64_be
from librt.vecs import vec
from mypy_extensions import i64

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.cc.sf import SamplingFrequency, SfParameters
from host_agents.cc.vai import VaiParameters, VariableAi
from host_agents.headers import LINK_RATES_BPS
from host_agents.ranges import POSITIVE, SHARE
from host_agents.registry import ProtocolInfo, register
from host_agents.wire import INT_RECORD_BYTES

TX_UNIT_BYTES: Final = 128.0
TX_WRAP_BYTES: Final = 128 << 20
TIME_WRAP_NS: Final = 1 << 24
TIME_MASK: Final = 0xFFFFFF
HALF_TIME_WRAP_NS: Final = 1 << 23
_RATES_BPS: Final = vec[float](LINK_RATES_BPS)  # in compiled code the floats of a list are objects


@dataclass(frozen=True)
class HpccParameters:
    eta: float = field(default=0.95, metadata=SHARE)  # target utilization
    max_stage: int = 5  # additive increases before a multiplicative one
    additive_increase_bps: float = 50e6  # W_AI = this rate times T
    min_rate_bps: float = field(default=100e6, metadata=POSITIVE)  # the smallest rate
    # Baseline "random feedback" of the VAI paper: a decrease of W_c is omitted with probability 1 -
    # W_c / BDP.
    random_feedback: bool = False


# Row of a path: its id and number of hops, which is never 0; the time until which another report
# can be compared with this one, since a counter may wrap in a longer gap; and the report of each
# hop.
_KEY: Final = 0
_UNTIL_NS: Final = 1
_REPORT: Final = 2
_NO_PATH: Final = 0
_FEWEST_ROWS: Final = 2
_NARROWEST_ROW: Final = 8  # numbers of a row with up to 6 hops
_SPREAD: Final = 0x9E3779B1  # odd, so that consecutive keys are spread


class TelemetryPoint(ReactionPoint):
    """Reaction point that keeps the latest INT report of the links of each path.

    The rows of all paths form one hash table of numbers. Sprayed packets take so many paths that a
    path's report is not in the cache when its next report comes, and an object for each would take
    several cache lines.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rows = vec[i64]([0] * (_FEWEST_ROWS * _NARROWEST_ROW))
        self._width: i64 = _NARROWEST_ROW  # width of a row, a power of two like the number of rows
        self._paths = 0

    def row_of(self, path_id: i64, hops: i64) -> i64:
        """Return the start of the path's row in `_rows`, valid until the next call.

        A new row cannot be compared with any report.
        """
        key = path_id << 4 | hops
        while _REPORT + hops > self._width:
            self._rebuild(len(self._rows) * 2, self._width * 2)
        row = self._place(key)
        if self._rows[row + _KEY] == key:
            return row
        self._paths += 1
        if 2 * self._paths * self._width > len(self._rows):
            self._rebuild(len(self._rows) * 2, self._width)
            row = self._place(key)
        self._rows[row + _KEY] = key
        return row

    def _place(self, key: i64) -> i64:
        """Return the start of the path's row, existing or new."""
        rows = self._rows
        mask = len(rows) - 1
        row = (key * _SPREAD >> 16) * self._width & mask
        while rows[row + _KEY] != key and rows[row + _KEY] != _NO_PATH:
            row = (row + self._width) & mask
        return row

    def _rebuild(self, numbers: i64, width: i64) -> None:
        old, old_width = self._rows, self._width
        self._rows = vec[i64]([0] * numbers)
        self._width = width
        for before in range(0, len(old), old_width):
            if old[before + _KEY] != _NO_PATH:
                after = self._place(old[before + _KEY])
                for i in range(old_width):
                    self._rows[after + i] = old[before + i]


class Hpcc(TelemetryPoint):
    def __init__(
        self,
        parameters: HpccParameters,
        path: Path,
        variable_ai: VariableAi | None = None,
        sampling: SamplingFrequency | None = None,
    ) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.variable_ai = variable_ai
        self.sampling = sampling
        self.max_window_bytes = path.bdp_bytes
        self.min_window_bytes = parameters.min_rate_bps * path.base_rtt_ns / 8e9
        self.increase_bytes = parameters.additive_increase_bps * path.base_rtt_ns / 8e9
        self.window_bytes = self.max_window_bytes
        self.reference_bytes = self.max_window_bytes  # W_c
        self.utilization = 1.0  # U, the EWMA of the inflight bytes of the most loaded link over its BDP
        self.stage = 0
        self.update_order = 0  # an ACK of a packet sent from here on ends the RTT
        self.eta = parameters.eta
        self.max_stage = parameters.max_stage
        self.queue_bytes = 0.0  # the longest queue that the last ACK reported
        self._base_rtt_ns = float(path.base_rtt_ns)
        self._cell_bytes = float(path.cell_bytes)

    def on_ack(self, feedback: Feedback) -> None:
        if feedback.int_hops == 0:
            return
        rtt_over = feedback.order >= self.update_order
        if self.measure_inflight(feedback):
            vai = self.variable_ai
            if vai is not None:
                vai.observe(self.queue_bytes, self.utilization >= self.eta)
                if rtt_over:
                    vai.end_rtt()
            self._compute_window(rtt_over)
        if rtt_over:
            self.update_order = self.traffic.sent_packets

    def measure_inflight(self, feedback: Feedback) -> bool:
        """Update U from the INT records (lines 1-10).

        Returns False if they are no sample, because there is nothing to compare them with.
        """
        now_ns: i64 = feedback.now_ns
        hops: i64 = feedback.int_hops
        row = self.row_of(feedback.path_id, hops)
        rows = self._rows
        comparable = now_ns < rows[row + _UNTIL_NS]
        frame = feedback.frame
        offset: i64 = feedback.int_offset
        rates_bps = _RATES_BPS
        base_rtt_ns = self._base_rtt_ns
        highest = 0.0
        tau_ns = 0.0
        longest_cells: i64 = 0
        fastest_bps = 0.0
        for hop in range(hops):
            word: i64 = read_i64_be(frame, offset + INT_RECORD_BYTES * hop)
            last = rows[row + _REPORT + hop] if comparable else word
            code: i64 = (word >> 60) & 0xF
            rate_bps = rates_bps[code] if code > 0 else self.path.line_rate_bps
            if rate_bps > fastest_bps:
                fastest_bps = rate_bps
            queue_cells: i64 = word & 0xFFFF
            if queue_cells > longest_cells:
                longest_cells = queue_cells
            elapsed_ns: i64 = ((word >> 36) - (last >> 36)) & TIME_MASK
            if elapsed_ns >= HALF_TIME_WRAP_NS:
                return False  # an ACK that was overtaken by a later one
            if elapsed_ns > 0:
                sent_units: i64 = ((word >> 16) - (last >> 16)) & 0xFFFFF
                if last & 0xFFFF < queue_cells:
                    queue_cells = last & 0xFFFF
                bytes_per_ns = rate_bps / 8e9
                load = (
                    float(queue_cells) * self._cell_bytes / base_rtt_ns
                    + float(sent_units) * TX_UNIT_BYTES / float(elapsed_ns)
                ) / bytes_per_ns
                if load > highest:
                    highest = load
                    tau_ns = float(elapsed_ns)
        self.queue_bytes = float(longest_cells) * self._cell_bytes
        for hop in range(hops):
            rows[row + _REPORT + hop] = read_i64_be(frame, offset + INT_RECORD_BYTES * hop)
        rows[row + _UNTIL_NS] = now_ns + int(min(float(TIME_WRAP_NS), TX_WRAP_BYTES * 8e9 / fastest_bps) / 2.0)
        if not comparable:
            return False
        tau_ns = min(tau_ns, base_rtt_ns)
        self.utilization = (1.0 - tau_ns / base_rtt_ns) * self.utilization + tau_ns / base_rtt_ns * highest
        return True

    def _compute_window(self, rtt_over: bool) -> None:
        """Compute the window from W_c and U; W_c becomes the window at the end of an RTT (lines 11-20)."""
        normalized = self.utilization / self.eta
        decreasing = normalized >= 1.0
        update = rtt_over
        if self.sampling is not None:
            update = self.sampling.may_update(decreasing, rtt_over)
        if update and decreasing and self.parameters.random_feedback and self._ignores():
            update = False
        increase = self.increase_bytes
        if self.variable_ai is not None:
            increase *= self.variable_ai.multiplier(update)
        if decreasing or self.stage >= self.max_stage:
            window = self.reference_bytes / normalized + increase
            stage = 0
        else:
            window = self.reference_bytes + increase
            stage = self.stage + 1
        window = min(max(window, self.min_window_bytes), self.max_window_bytes)
        if update:
            self.stage = stage
            self.reference_bytes = window
        self.window_bytes = window
        self.set_rate(self.path.charged_bps(window * 8e9 / self._base_rtt_ns))

    def _ignores(self) -> bool:
        return self.reference_bytes < self.host.random.random() * self.max_window_bytes


def reaction_point(parameters: HpccParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    vai = mechanisms.get("vai")
    sf = mechanisms.get("sf")
    variable_ai = None
    if isinstance(vai, VaiParameters):
        variable_ai = VariableAi(vai, vai.token_threshold_bytes, vai.bytes_per_token)
    return Hpcc(parameters, path, variable_ai, SamplingFrequency(sf) if isinstance(sf, SfParameters) else None)


register(
    ProtocolInfo(
        name="hpcc",
        summary="window from in-band telemetry, per ACK and per RTT",
        source="Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019",
        program="int",
        parameters=HpccParameters,
        reaction_point=reaction_point,
        telemetry=True,
        mechanisms=("vai", "sf"),
    )
)
