"""GOAL schedules of LogGOPSim and ATLAHS as text: operations of ranks, and their dependencies.

    num_ranks 2
    rank 0 {
    l1: calc 1500
    l2: send 4096b to 1 tag 7
    l2 requires l1
    }
    rank 1 {
    l1: recv 4096b from 0 tag 7 cpu 1
    }

Computing times are in ns. `requires` waits for the end of the other operation, `irequires` for its
start. `recv 64b from -1 tag -1` takes the first message that arrives, from any source and with any
tag. Ranks are hosts, in the order of addresses or at random. `cpu` says on which of a rank's
processors an operation computes; `nic` is read and not used. Source: Hoefler, Siebert, Lumsdaine,
"Group Operation Assembly Language", ICPP 2009.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from harness.workloads.base import MAX_TIME_NS, Setting, Traffic, WorkloadParameters, expect_hosts, register
from harness.workloads.files import read_text, whole
from harness.workloads.schedule import ANY, Schedule, ScheduleTraffic
from p4switch.errors import UserError

# An unterminated comment extends to the end of the file. Otherwise, each of many would be searched
# up to the end.
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*|#[^\n]*", re.DOTALL)
_RANKS = re.compile(r"num_ranks\s+([0-9]+)")
_RANK = re.compile(r"rank\s+([0-9]+)\s*\{")
_OPERATION = re.compile(
    r"(?:(?P<label>\w+)\s*:\s*)?(?:calc\s+(?P<ns>[0-9]+)"
    r"|(?:(?P<what>send)\s+(?P<bytes>[0-9]+)\s*b\s+to|recv\s+[0-9]+\s*b\s+from)\s+(?P<peer>-1|[0-9]+))"
    r"(?P<more>(?:\s*(?:tag\s+(?:-1|[0-9]+)|(?:cpu|nic)\s+[0-9]+))*)"
)
_NEED = re.compile(r"(?P<label>\w+)\s+(?P<how>i?requires)\s+(?P<other>\w+)")
_MORE = re.compile(r"(tag|cpu|nic)\s+(-1|[0-9]+)")
_MOST = 10**18
_EXPECTED = "calc NS, send BYTESb to RANK, recv BYTESb from RANK, LABEL requires LABEL, or }"


@register("goal")
class GoalSchedule(WorkloadParameters):
    """Schedule from a `file`, which is relative to the scenario.

    The step time is that of the whole schedule.
    """

    file: str  # a schedule (.goal), relative to the scenario
    placement: Literal["addresses", "random"] = "addresses"  # order in which hosts become ranks

    def generate(self, setting: Setting) -> Traffic:
        schedule = read(setting.folder / self.file)
        expect_hosts("file", schedule.ranks, setting)
        hosts = list(range(setting.hosts))
        if self.placement == "random":
            setting.rng.shuffle(hosts)
        return ScheduleTraffic(schedule, hosts)


def read(path: Path) -> Schedule:
    """Return the schedule in a file.

    Raises UserError that names the line.
    """
    try:
        text = read_text(path)
    except UserError as error:
        raise UserError(f"workload.file: {error}") from None
    plain = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    reader = _Reader(path)
    for number, line in enumerate(plain.splitlines(), 1):
        if words := line.strip():
            reader.line(f"{path}:{number}", words)
    return reader.end()


def _any_or(where: str, digits: str) -> int:
    return ANY if digits == "-1" else whole(where, digits, most=_MOST)


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._schedule: Schedule | None = None
        self._rank: int | None = None
        self._labels: dict[str, int] = {}
        # Dependencies of the rank: place in the file, label, kind, other label.
        self._needs: list[tuple[str, str, str, str]] = []
        self._read: set[int] = set()

    def line(self, where: str, text: str) -> None:
        if self._schedule is None:
            if not (match := _RANKS.fullmatch(text)):
                raise UserError(f"{where}: expected num_ranks N")
            self._schedule = Schedule(whole(where, match[1], most=_MOST))
        elif self._rank is None:
            if not (match := _RANK.fullmatch(text)):
                raise UserError(f"{where}: expected rank N {{, got {text!r:.80}")
            self._open(where, whole(where, match[1], most=_MOST), self._schedule)
        elif text == "}":
            self._close(self._schedule)
        elif match := _OPERATION.fullmatch(text):
            self._operation(where, match, self._schedule, self._rank)
        elif match := _NEED.fullmatch(text):
            self._needs.append((where, match["label"], match["how"], match["other"]))
        else:
            raise UserError(f"{where}: expected {_EXPECTED}; got {text!r:.80}")

    def _open(self, where: str, rank: int, schedule: Schedule) -> None:
        if rank >= schedule.ranks or rank in self._read:
            raise UserError(f"{where}: rank {rank}; expected each of 0 to {schedule.ranks - 1} once")
        self._rank = rank
        self._read.add(rank)
        self._labels = {}
        self._needs = []

    def _operation(self, where: str, match: re.Match[str], schedule: Schedule, rank: int) -> None:
        more = {name: _any_or(where, value) for name, value in _MORE.findall(match["more"])}
        if match["ns"] is not None:
            duration_ns = whole(where, match["ns"], "a time in ns", MAX_TIME_NS)
            number = schedule.calc(rank, duration_ns, processor=more.get("cpu", 0))
        else:
            peer, tag = _any_or(where, match["peer"]), more.get("tag", 0)
            if match["what"] is None:
                number = schedule.recv(rank, peer, tag=tag)
            elif ANY in (peer, tag):
                raise UserError(f"{where}: {match.group()!r:.80}; expected the rank and tag of a send")
            else:
                number = schedule.send(rank, peer, whole(where, match["bytes"], "a size in bytes"), tag=tag)
        if label := match["label"]:
            if label in self._labels:
                raise UserError(f"{where}: label {label!r:.60} is given twice in rank {rank}")
            self._labels[label] = number

    def _close(self, schedule: Schedule) -> None:
        for where, label, how, other in self._needs:
            for name in (label, other):
                if name not in self._labels:
                    raise UserError(f"{where}: no label {name!r:.60} in rank {self._rank}")
            operation = schedule.operations[self._labels[label]]
            (operation.requires if how == "requires" else operation.follows).append(self._labels[other])
        self._rank = None

    def end(self) -> Schedule:
        if self._schedule is None or self._rank is not None:
            raise UserError(f"{self._path}: ends too soon; expected {'num_ranks N' if self._rank is None else '}'}")
        self._schedule.check(str(self._path))
        return self._schedule
