"""Scenarios: a TOML file with the network, program, protocol and traffic of runs.

Everything is validated before anything starts. A mistake is a UserError that names the key and the
expected value.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from typing_extensions import Self

from harness import papers
from harness.plan.seeds import LARGEST, listed
from host_agents import framing
from host_agents.nic_tables import PcieConfig, SleekConfig
from p4switch import extensions
from p4switch.architectures.front_panel import MAX_PIPES
from p4switch.errors import Mistakes, UserError, suggest, validate
from p4switch.numbers import integral
from p4switch.quantities import with_numbers
from p4switch.tables import Bytes, Table, as_written
from p4switch.traffic.settings import Alpha, Priority, TrafficManager
from topologies.links import Delay, Loss, Pattern, Rate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Keys that may name Python files: lists, and tables by their `name`.
_LISTS = ("cc", "lb", "extensions")
_TABLES = ("topology", "workload")

Nanoseconds = Annotated[int, BeforeValidator(integral), Field(ge=0, lt=2**61)]
# Type of times that may be added for each packet.
ShortNanoseconds = Annotated[int, BeforeValidator(integral), Field(ge=0, lt=2**32)]
Pipes = Annotated[int, Field(ge=1, le=MAX_PIPES)]
Macro = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]
_TOO_DEEP = "tables and lists are nested too deeply"
_MAX_DEPTH = 50  # limit of nested tables and lists
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""  # part of a dotted key
# Matches a key with more parts than tables may be nested. tomllib takes memory in proportion to the
# square of the number of parts.
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_MAX_DEPTH}}}")


def _in_ppm(share: float) -> float:
    """Return a loss rate. Raises ValueError if it rounds to 0 packets in a million, the programs' unit."""
    if share > 0 and round(share * 1e6) == 0:
        raise ValueError("rounds to no packet in a million; expected 0, or at least 1e-6")
    return share


def _several(value: object) -> object:
    """Return a single value as a list."""
    return value if isinstance(value, list) else [value]


class Pfc(Table):
    """Priority flow control.

    Thresholds are per ingress port and priority, as in HPCC's simulator.
    """

    enabled: bool = True  # without PFC packets that find no room are dropped
    # The lossless priorities; none given: the data priority.
    priorities: tuple[Priority, ...] = Field(default=(), strict=False)
    # Pause when an ingress port holds more than alpha times the free part of the shared buffer.
    alpha: Alpha = 0.125
    # Instead: pause when an ingress port holds more than this, regardless of the free part.
    xoff_bytes: Bytes | None = None
    xon_gap_bytes: Bytes = 3072  # a paused port resumes this far below the threshold
    # Headroom: bytes beyond the threshold, per ingress port, in link delays at line rate. Two
    # delays are on the wire when a pause is sent. The bytes that arrive within the switch's own
    # latency are added.
    headroom_delays: Annotated[float, Field(ge=2, le=1e6)] = 3.0
    # Full frames that the headroom holds in addition. With fewer than 4, a packet is lost now and
    # then, which is counted.
    headroom_frames: Annotated[int, Field(ge=2)] = 4
    reaction_ns: ShortNanoseconds = 0  # time from a pause frame's arrival until its receiver stops sending


class Loopback(Table):
    """Ports of every switch that lead back to it."""

    # Numbers of the ports, as programs use them. They have no links.
    ports: tuple[Annotated[int, Field(ge=0, le=511)], ...] = Field(default=(), strict=False)
    rate_bps: Rate = 100_000_000_000  # rate of each of these ports
    # Time from a frame's last bit at such a port until the frame is in the switch again.
    delay_ns: Annotated[ShortNanoseconds, Field(ge=1)] = 500


class SwitchSettings(TrafficManager):
    """Settings of every switch of the network, such as its traffic manager.

    See p4switch/traffic/settings.py.
    """

    # Bytes shared by all ports of a switch; none: no limit, and no PFC unless `pfc.enabled` is set.
    buffer_bytes: Bytes | None = 32_000_000
    # Limit of an ingress port for the data priority. With PFC the limit is the threshold plus the
    # headroom; without PFC packets beyond it are dropped. None: the value from PFC's alpha, or no
    # limit.
    ingress_bytes: Bytes | None = None
    latency_ns: ShortNanoseconds = 0  # time from the arrival of a packet's last bit at a switch to its enqueueing
    # Share of packets that a switch's program loses at random on ingress, and again on egress.
    loss: Annotated[float, Field(ge=0, lt=1), AfterValidator(_in_ppm)] = 0.0
    # How programs choose among paths of equal cost: a name (`p4cc list switch-lb`), or a .p4 file.
    load_balancing: str = "ecmp"
    # Architecture that the program is compiled for, as for `p4cc compile --arch`; none: that of the
    # program's main.
    architecture: str | None = None
    # Pipes of a chip, of 128 ports each, among which the ports are divided. Each pipe has tables
    # and registers of its own. With 1 all ports are in one pipeline.
    pipes: Pipes = 1
    # Macros that the program is compiled with.
    defines: dict[Macro, int | str] = {}
    cell_bytes: Annotated[Bytes, Field(ge=1, le=1 << 16)] = 80
    pfc: Pfc = Pfc()
    loopback: Loopback = Loopback()


class SwitchGroup(Table):
    """Switches with a P4 program of their own, selected by their names, by their tier, or by both.

    If several entries select a switch, or a pipe of it, the last one holds. Keys that are left out
    have the value of the table `switch`.
    """

    names: tuple[Pattern, ...] = Field(default=(), strict=False)  # names of switches, or patterns of names
    # Tier of the switches, from 0 next to the hosts. "tor" is 0, "spine" the highest tier of several,
    # and "aggregation" stands for those between.
    tier: Literal["tor", "aggregation", "spine"] | Annotated[int, Field(ge=0)] | None = None
    # Pipes of these switches that run the program; none: all of them.
    in_pipes: tuple[Annotated[int, Field(ge=0, lt=MAX_PIPES)], ...] = Field(default=(), strict=False)
    program: str  # the P4 program: a name (`p4cc list programs`), or a file
    parameters: dict[str, Any] = {}  # parameters of this program, which replace those in `programs`
    architecture: str | None = None  # like `switch.architecture`
    pipes: Pipes | None = None  # like `switch.pipes`
    # As `switch.defines`, which these replace.
    defines: dict[Macro, int | str] | None = None
    load_balancing: str | None = None  # like `switch.load_balancing`
    loopback: Loopback | None = None  # like `switch.loopback`, which this replaces

    @model_validator(mode="after")
    def _some_switches(self) -> Self:
        if not self.names and self.tier is None:
            raise ValueError("should have names or tier")
        return self


class NicSettings(Table):
    """Settings of every host's NIC; see host_agents.config.NicConfig."""

    mtu_bytes: Annotated[int, Field(ge=64, le=9000)] = 1000  # payload of a full packet
    data_priority: Priority = 3  # the class of data packets
    control_priority: Priority = 6  # the class of ACKs, NAKs, CNPs and other control packets
    # How losses are repaired. None: selective repeat if the load balancer sends a flow's packets
    # over several paths or the protocol requests each lost packet by itself, else go-back-N.
    reliability: Literal["go-back-n", "selective-repeat"] | None = None
    # Queue pairs that share a reaction point. None: the protocol's value, which is mostly "qp".
    cc_scope: Literal["qp", "destination", "pair"] | None = None
    # A receiver sends an ACK once in this many packets, and when ECN marks change. NicConfig
    # describes the ACKs of packets out of order.
    ack_every_packets: Annotated[int, Field(ge=1)] = 1
    # If above 0, a receiver sends an ACK once in this many bytes of frames instead, and at once for
    # marks, losses or used-up windows; see NicConfig.
    ack_every_bytes: Annotated[int, Field(ge=0)] = 0
    # Longest time that a packet waits for the ACK of a later one; None: a base RTT. A short time
    # makes receivers answer a slow flow more often than once in `ack_every_packets`.
    ack_wait_ns: Annotated[Nanoseconds, Field(gt=0, le=1 << 40)] | None = None
    # Retransmission time-out. It should exceed the time that a packet may wait in a lossless
    # network: 32 MB take 2.6 ms at 100 Gb/s, in each switch.
    rto_ns: Annotated[Nanoseconds, Field(gt=0)] = 16_000_000
    # Retransmission time-out in base RTTs of the network, instead of rto_ns.
    rto_base_rtts: Annotated[float, Field(gt=0, le=1e9)] | None = None
    # Number of retransmissions without any new acknowledgement before a flow fails; see NicConfig.
    retry_count: Annotated[int, Field(ge=0, le=7)] = 7
    # Selective repeat: a packet is lost when a packet that was sent this many packets later is
    # acknowledged. 0: losses are found by time-out and trimming only. None: 3, or 0 if the load
    # balancer sends a flow's packets over several paths.
    loss_packets: Annotated[int, Field(ge=0)] | None = None
    sleek: SleekConfig = SleekConfig()
    pcie: PcieConfig = PcieConfig()
    # Time that the operating system takes for each message before the NIC gets it, for example for
    # TCP.
    os_overhead_ns: Nanoseconds = 0
    # The first two bytes of hosts' MAC addresses; the other four are the IPv4 address. Frames of
    # in-network collectives, and `Host.mac` in the user's own entries, always have the default.
    mac_prefix: Annotated[int, Field(ge=0, le=0xFFFF)] = 0x0200
    # Whether frames are complete in the virtual world, too, which takes more time. Then packets
    # with a bad ICRC are dropped and counted.
    check_icrc: bool = False


class SizeClass(Table):
    """Flows of about the same size, which have figures of their own in summaries and reports."""

    name: Annotated[str, Field(pattern=r"^[^.]+$")]  # name in reports; a dot would split a key of the summary
    least_bytes: Bytes = 0  # size of the smallest flow
    most_bytes: Bytes | None = None  # size of the largest flow; none: no limit

    @model_validator(mode="after")
    def _some_sizes(self) -> Self:
        if self.most_bytes is not None and self.most_bytes < self.least_bytes:
            raise ValueError(f"most_bytes should be at least least_bytes, {self.least_bytes}")
        return self


class Record(Table):
    """Sampling settings.

    An interval of 0 ns disables sampling.
    """

    queue_interval_ns: Nanoseconds = 1000  # time between two samples of `queues`
    rate_interval_ns: Nanoseconds = 10_000  # time between two samples of `rates`, and the shortest interval of `links`
    # Queues that are sampled: those of all switch ports, or only those to hosts.
    queues: Literal["all", "hosts"] = "all"
    # Further columns of `flows`: max_latency_ns, mean_links, shortest_links, stats.NAME (a count of
    # the queue pair when the flow is acknowledged), or a numeric attribute of reaction points at
    # the same time.
    columns: list[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]] = []
    # Classes of flows by size, each with figures of its own in summaries and reports.
    sizes: list[SizeClass] = []
    # Further tables, each with the keys of its kind of probe; see harness/plan/probes.
    probes: list[dict[str, Any]] = []

    @model_validator(mode="after")
    def _distinct_sizes(self) -> Self:
        if len({each.name for each in self.sizes}) < len(self.sizes):
            raise ValueError("sizes should have different names")
        return self


class LinkEvent(Table):
    """Event at which a link goes down, comes up or gets other properties.

    It applies to a link, or to each link of a switch or a host. Routes follow after
    `reroute_after_ns`. Parameters of programs that were computed from a link's rate, such as
    thresholds and limits, do not change.
    """

    time_ns: Nanoseconds = 0  # time of the event
    # The names of the nodes at the ends of a link; instead of `switch` and `host`. The name of a
    # server or of a bond stands for its NICs.
    link: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    parallel: Annotated[int, Field(ge=0)] = 0  # number among several links between the two
    switch: str | None = None  # name of a switch: all its links
    host: str | None = None  # name of a host or a server: all its links
    # true: up; false: down. A link is down as long as an event of its own, or of a node at its
    # ends, keeps it down.
    up: bool | None = None
    rate_fraction: Annotated[float, Field(gt=0, le=1e6)] | None = None  # share of the rate in the topology
    rate_bps: Rate | None = None  # instead of rate_fraction
    towards: str | None = None  # one of the link's two nodes; the rate then applies only to the direction towards it
    delay_ns: Delay | None = None  # propagation delay, one way; frames on the wire are not overtaken
    loss: Loss | None = None  # share of the frames of each direction that are lost at random

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(place is not None for place in (self.link, self.switch, self.host)) != 1:
            raise ValueError("should have one of link, switch and host")
        return self

    @model_validator(mode="after")
    def _some_change(self) -> Self:
        if self.rate_fraction is not None and self.rate_bps is not None:
            raise ValueError("should have either rate_fraction or rate_bps")
        if all(change is None for change in (self.up, self.rate_fraction, self.rate_bps, self.delay_ns, self.loss)):
            raise ValueError("should have at least one of up, rate_fraction, rate_bps, delay_ns and loss")
        if self.towards is not None and (
            (self.rate_fraction is None and self.rate_bps is None) or self.towards not in (self.link or ())
        ):
            raise ValueError("towards should name one of the link's ends, and go with rate_fraction or rate_bps")
        return self


class Attack(Table):
    """Attack by a user who breaks up flows, so that each piece has a queue pair of its own.

    See harness/workloads/attack.py. Omitted keys are chosen for the network, as
    `harness.plan.run.Run.attack` describes.
    """

    # none: the flows are attributed to attackers but stay as they are.
    kind: Literal["none", "parallel", "staggered"]
    # Hosts of attackers, by index; none: all.
    hosts: list[Annotated[int, Field(ge=0)]] | None = None
    # Flows of at least this size are broken up. None: flows that are longer than a piece.
    over_bytes: Annotated[Bytes, Field(ge=1)] | None = None
    # Size of a piece; the last one has the rest. None, without a number of pieces: the BDP of the
    # slowest attacker's link.
    piece_bytes: Annotated[Bytes, Field(ge=1)] | None = None
    # Instead of piece_bytes: number of pieces of about the same size.
    pieces: Annotated[int, Field(ge=2)] | None = None
    # Time from one piece to the next in a staggered attack. None: the network's base RTT.
    gap_ns: Annotated[Nanoseconds, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.piece_bytes is not None and self.pieces is not None:
            raise ValueError("should have either piece_bytes or pieces")
        return self


def _group_name(name: str) -> str:
    """Return a group's name, which is a part of keys and of table columns.

    Raises ValueError for a name that is too long or has dots or spaces.
    """
    if not 0 < len(name) <= 40 or any(letter == "." or letter.isspace() for letter in name):
        raise ValueError("should have 1 to 40 characters, and neither dots nor spaces")
    return name


class TrafficGroup(Table):
    """Further traffic of a run on all or some hosts, with a protocol of its own.

    It models a tenant or cross traffic. Its flows carry its name.
    """

    name: Annotated[str, AfterValidator(_group_name)]  # name in results
    workload: dict[str, Any]  # the traffic: `name` and the workload's keys; its hosts count from 0
    hosts: tuple[Pattern, ...] = Field(default=(), strict=False)  # names of hosts, or patterns of names; none: all
    cc: str | None = None  # the congestion control of its flows; none: the run's
    parameters: dict[str, Any] = {}  # parameters of this congestion control, instead of those in `protocols`
    lb: str | None = None  # the load balancer of its flows; none: the run's
    priority: Priority | None = None  # the class of its data; none: `nic.data_priority`, or the workload's
    start_ns: Nanoseconds = 0  # delay that is added to the workload's start times

    @model_validator(mode="after")
    def _own_parameters(self) -> Self:
        if self.parameters and self.cc is None:
            raise ValueError("should have cc, whose parameters these are")
        return self


class Variant(Table):
    """Variant of a scenario; `set` has keys of the scenario."""

    name: str  # name in reports
    set: dict[str, Any] = {}  # keys of the scenario, with their values in this variant


class Scenario(Table):
    """Scenario with all of its defaults; `cc`, `lb` and `seeds` may be lists.

    Each combination of these is a run. Each of the `variants` is run in all combinations.
    """

    title: str = ""  # title in reports
    claims: list[str] = []  # ids of the papers' claims that it belongs to
    # Python files that register the names in this scenario, relative to its own file.
    extensions: list[str] = []
    # The congestion controls to run (`p4cc list cc`), or a file: "./aimd.py:aimd".
    cc: Annotated[list[str], BeforeValidator(_several), Field(min_length=1)] = ["dcqcn", "hpcc"]
    # The load balancers of the hosts (`p4cc list lb`).
    lb: Annotated[list[str], BeforeValidator(_several), Field(min_length=1)] = ["ecmp"]
    # Seeds of all random numbers. Each is a run, and several give confidence intervals. Text names
    # ranges: "1-100", "1-3, 7".
    seeds: Annotated[list[Annotated[int, Field(ge=0, le=LARGEST)]], BeforeValidator(listed), Field(min_length=1)] = [1]
    # The P4 program of all switches that `switches` does not select; none: the one that the protocol
    # needs.
    program: str | None = None
    # A run ends when every message is acknowledged, or here. None: after 1 s, and then it has failed.
    limit_ns: Annotated[Nanoseconds, Field(gt=0)] | None = None
    # Virtual world: memory limit of the process; a run that needs more ends. None: the memory of
    # the machine.
    memory_bytes: Annotated[Bytes, Field(gt=0)] | None = None
    # Virtual world: number of processes that share a run of `p4cc run`. "auto", which is the
    # default, takes as many as are worthwhile. With --jobs each run has one. The results are the
    # same.
    workers: Annotated[int, Field(ge=1, le=64)] | Literal["auto"] | None = None
    # true: links also charge a frame for preamble, gap and FCS (24 bytes). "flits": links charge
    # only for the bytes after the BTH, without the ICRC, and for at least 16, as in a memory
    # fabric.
    framing: bool | Literal["flits"] = False
    topology: dict[str, Any]  # the network: `name` (`p4cc list topologies`) and the topology's keys
    workload: dict[str, Any]  # the traffic: `name` (`p4cc list workloads`) and the workload's keys
    # Further traffic beside that of `workload`; each group has its own hosts, protocol and class.
    groups: list[TrafficGroup] = []
    # Attack by a user who breaks up flows. None: no flow has the role of attacker or victim.
    attack: Attack | None = None
    switch: SwitchSettings = SwitchSettings()
    switches: list[SwitchGroup] = []  # switches with a program of their own
    nic: NicSettings = NicSettings()
    record: Record = Record()
    # Parameters of protocols, by name, including those that a variant names.
    protocols: dict[str, dict[str, Any]] = {}
    load_balancers: dict[str, dict[str, Any]] = {}  # parameters of load balancers, by name
    programs: dict[str, dict[str, Any]] = {}  # parameters of P4 programs, by name
    events: list[LinkEvent] = []  # changes of links during the run
    # Time from when a link goes down or comes up until all switches have new routes; 0:
    # immediately. None: routes do not change, and ECMP continues to hash onto a dead link.
    reroute_after_ns: Nanoseconds | None = None
    variants: list[Variant] = []  # variants, each run in all combinations of cc, lb and seeds

    @model_validator(mode="before")
    @classmethod
    def _of_groups_alone(cls, values: Any) -> Any:
        """Return the values with the first group's `cc` if all traffic is in groups that set a `cc`.

        Otherwise the default of `cc` would apply: two protocols, which would run the same traffic
        twice.
        """
        if not isinstance(values, Mapping) or "cc" in values or values.get("workload") != {"name": "none"}:
            return values
        groups = values.get("groups")
        if not isinstance(groups, list) or not groups:
            return values
        named = [group.get("cc") if isinstance(group, Mapping) else None for group in groups]
        return {**values, "cc": named[0]} if all(named) else values

    @model_validator(mode="after")
    def _distinct_groups(self) -> Self:
        if len({group.name for group in self.groups}) < len(self.groups):
            raise ValueError("groups should have different names")
        if self.groups and self.attack is not None:
            raise ValueError("should have either groups or attack")
        return self

    @property
    def framing_bytes(self) -> int:
        """Bytes that a frame occupies on a link in addition to its own length.

        Ethernet adds 8 bytes for preamble and start of frame, 4 for FCS and 12 for the gap. With
        flits the number is negative, because they do not carry Ethernet (14), IPv4 (20), UDP (8),
        BTH (12) and ICRC (4).
        """
        if self.framing == "flits":
            return -58
        return 24 if self.framing else 0

    @property
    def largest_expansion(self) -> float:
        """Largest ratio of bytes in a switch to bytes that a link charges."""
        return (framing.FLIT_BYTES - self.framing_bytes) / framing.FLIT_BYTES if self.framing == "flits" else 1.0

    def link_bytes(self, frame_bytes: int) -> int:
        """Return the bytes that a link charges for a frame of `frame_bytes`, Ethernet to ICRC."""
        return framing.link_bytes(frame_bytes, self.framing_bytes)


def built_in() -> dict[str, Path]:
    """Return the scenarios that come with p4cc, by name."""
    return papers.files("scenarios")


def find(name: str) -> Path:
    """Return the file of a scenario: a path to a .toml file, or the name of a built-in one."""
    return find_file("scenario", name, built_in())


def find_file(kind: str, name: str, known: Mapping[str, Path]) -> Path:
    """Return a path to a .toml file, or one of `known` by name.

    Raises UserError if there is neither.
    """
    if not name.isprintable():  # bytes that are not UTF-8 become surrogates
        raise UserError(f"{kind} {name!r}: expected a name that can be printed")
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            there = path.exists()
            raise UserError(f"{kind} {name!r}: expected a regular file" if there else f"no {kind} file {name!r}")
        return path
    if name not in known:
        hint = suggest(name, known)
        raise UserError(f"no {kind} {name!r}; {hint if hint.endswith('?') else f'{hint}, or a .toml file'}")
    return known[name]


def parse(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises TOMLDecodeError, also for deep nesting and numbers of thousands of digits.
    """
    if _LONG_KEY.search(text) is not None:
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error)) from None
    _check_depth(tables)
    return tables


def _check_depth(tables: Mapping[str, Any]) -> None:
    """Raise TOMLDecodeError for tables that are nested too deeply to be copied or validated."""
    level: list[Any] = [tables]
    for _ in range(_MAX_DEPTH):
        values = (list(value.values()) if isinstance(value, Mapping) else value for value in level)
        level = [below for several in values for below in several if isinstance(below, Mapping | list)]
        if not level:
            return
    raise tomllib.TOMLDecodeError(_TOO_DEEP)


def read(path: Path) -> dict[str, Any]:
    """Return the tables of a scenario file without validation."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a TOML file: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def override(tables: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """Return `tables` with each `KEY=VALUE` applied: KEY is dotted, VALUE as TOML writes it, or a bare string.

    Paths of Python and P4 files in them are relative to the working directory.
    """
    result = _copied(tables)
    for setting in settings:
        key, equals, text = setting.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts) or len(parts) > _MAX_DEPTH:
            raise UserError(f"--set {setting}: expected KEY=VALUE, for example topology.k=8")
        if len(parts) == 1 and (full := _in_a_table(tables, parts[0])):
            raise UserError(f"--set {setting}: no such key; did you mean {full!r}?")
        try:
            result = merge(result, anchored(nested(parts, _value(text.strip())), Path.cwd()))
        except UserError as error:
            raise UserError(f"--set {setting}: {error}") from None
    return result


def _in_a_table(tables: Mapping[str, Any], key: str) -> str:
    """Return the full name of a key that belongs to a table of the scenario; "" if there is none."""
    if key in Scenario.model_fields:
        return ""
    return next((f"{name}.{key}" for name, table in tables.items() if isinstance(table, Mapping) and key in table), "")


def retitled(tables: Mapping[str, Any], name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of the scenario `name` with a title that mentions `changes`.

    The changes replace the file's own title, which may contradict them ("a k = 8 fat-tree").
    Changes of keys outside of tables, such as protocols and durations, are not mentioned, because
    titles do not state these.
    """
    said = ", ".join(_said({key: below for key, below in changes.items() if isinstance(below, Mapping)}))
    return {**tables, "title": f"{name}, with {said}"} if said and "title" not in changes else dict(tables)


def _said(changes: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in changes.items():
        if isinstance(value, Mapping):
            yield from _said(value, f"{above}{key}.")
        else:
            yield f"{above}{key} = {value if isinstance(value, str) else json.dumps(value, default=str)}"


def nested(keys: Sequence[str], value: object) -> dict[str, Any]:
    """Return `value` below `keys`, as nested tables."""
    for key in reversed(keys):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def anchored(tables: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a scenario's tables with absolute paths of Python and P4 files."""

    def absolute(text: str) -> str:
        return str(extensions.reference(text, folder) or text)

    changed = dict(tables)
    for key in _LISTS:
        if key in tables:
            changed[key] = _each(tables[key], absolute)
    for key in _TABLES:
        if isinstance(tables.get(key), Mapping) and "name" in tables[key]:
            changed[key] = {**tables[key], "name": _each(tables[key]["name"], absolute)}
    if "program" in tables:
        changed["program"] = _each(tables["program"], lambda text: p4_file(text, folder))
    if "switch" in tables:
        changed["switch"] = _with_p4_files(tables["switch"], folder)
    switches = tables.get("switches")
    if isinstance(switches, Mapping):  # --set has numbers as keys
        changed["switches"] = {number: _with_p4_files(group, folder) for number, group in switches.items()}
    elif isinstance(switches, list):
        changed["switches"] = [_with_p4_files(group, folder) for group in switches]
    if isinstance(tables.get("variants"), list):
        changed["variants"] = [_anchored_variant(variant, folder) for variant in tables["variants"]]
    return changed


def _with_p4_files(table: Any, folder: Path) -> Any:
    """Return a table about switches with absolute paths; a value that is no table is left for a later error."""
    if not isinstance(table, Mapping):
        return table
    named = {key: table[key] for key in ("program", "load_balancing") if key in table}
    return {**table, **{key: _each(value, lambda text: p4_file(text, folder)) for key, value in named.items()}}


def p4_file(text: str, folder: Path) -> str:
    """Return the absolute path of a P4 file, relative to `folder`; a name is returned unchanged."""
    return str((folder / Path(text).expanduser()).resolve()) if text.endswith(".p4") else text


def _anchored_variant(variant: Any, folder: Path) -> Any:
    """Return a variant with absolute paths; a value that is no table is left for a later error."""
    if not isinstance(variant, Mapping) or not isinstance(variant.get("set"), Mapping):
        return variant
    return {**variant, "set": anchored(variant["set"], folder)}


def _each(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    return [_each(one, change) for one in value] if isinstance(value, list) else value


def merge(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `tables` with the values of `changes`.

    Values of the same keys are replaced, at any depth. The keys of a list's entries are their
    numbers, from 0.
    """
    result = _copied(tables)
    for key, value in changes.items():
        result[key] = _merged(key, result.get(key, {}), value) if isinstance(value, Mapping) else value
    return result


def _merged(key: str, below: Any, changes: Mapping[str, Any]) -> dict[str, Any] | list[Any]:
    if isinstance(below, Mapping):
        return merge(below, changes)
    if not isinstance(below, list):
        raise UserError(f"{key!r} is a value, not a table")
    entries = {str(number): entry for number, entry in enumerate(below)}
    unknown = next((name for name in changes if name not in entries), None)
    if unknown is not None:
        known = f"; expected 0 to {len(below) - 1}" if below else ""
        raise UserError(f"{key!r} is a list without an entry {unknown!r}{known}")
    return list(merge(entries, changes).values())


def _copied(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in tables.items()}


def _value(text: str) -> object:
    try:
        value: object = parse(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value


def check(tables: Mapping[str, Any]) -> Scenario:
    """Return the scenario of validated tables.

    Topology, workload and protocols check their own parameters. Quantities with units become
    numbers.
    """
    mistakes = Mistakes()
    scenario = sound_part(tables, mistakes)
    mistakes.tell()
    assert scenario is not None
    return scenario


def sound_part(tables: Mapping[str, Any], mistakes: Mistakes) -> Scenario | None:
    """Return the scenario from the tables' valid keys only; `mistakes` collects the errors of the others.

    Return None if the valid keys alone do not make a scenario.
    """
    numbers = with_numbers(tables, mistakes)
    scenario = mistakes.attempt(lambda: validate(Scenario, numbers, ""))
    if scenario is not None:
        return scenario
    smallest: dict[str, Any] = {"topology": {}, "workload": {}}
    alone = Mistakes()  # reported already
    sound = {
        key: value
        for key, value in numbers.items()
        if alone.attempt(partial(validate, Scenario, {**smallest, key: value}, "")) is not None
    }
    return alone.attempt(lambda: validate(Scenario, sound, ""))


def load(name: str, settings: Sequence[str] = ()) -> tuple[Scenario, Path]:
    """Return a scenario by name or path, with overrides, and the base folder of its relative paths."""
    path = find(name)
    return check(override(read(path), settings)), path.parent


def dump(scenario: Scenario) -> str:
    """Return the scenario as TOML with every default written out; reading it gives the same scenario."""
    return tomli_w.dumps(as_written(scenario))
