"""Networks as lists of links: a CSV or a TOML file.

    a,b,rate_bps,delay_ns,loss,framing_bytes  a line a link; all but the first two may be left out, or be empty
    leaf0,h0,25 Gb/s,500 ns,,
    leaf0,spine0,100 Gb/s,1 us,1e-5,

or, in TOML,

    links = [{ a = "leaf0", b = "h0", rate_bps = "25 Gb/s" }]
    nodes = [{ name = "h0", kind = "host" }]        # optional, and may say `tier` and `group` of a switch

Hosts are declared by `nodes` of the file or by patterns of names; otherwise nodes with one link are
hosts. If there are no hosts, each switch can get some (`hosts_per_switch`).
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from p4switch.errors import UserError, suggest, validate
from p4switch.foreign_files import read_text
from p4switch.quantities import with_numbers
from p4switch.tables import Table
from topologies.from_files import FileLink, FileNetwork, FileTopology, assembled, checked_name, leaves
from topologies.group_paths import in_groups
from topologies.links import Delay, Framing, Loss, Pattern, Rate
from topologies.model import MAX_LINKS, Routing, Topology
from topologies.registry import register

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COLUMNS = ("a", "b", "rate_bps", "delay_ns", "loss", "framing_bytes")
_HOST = "host"


class Attributes(Table):
    """Properties of a link in a list, besides its ends; None stands for the topology's value."""

    rate_bps: Rate | None = None
    delay_ns: Delay | None = None
    loss: Loss | None = None
    framing_bytes: Framing | None = None


class NodeEntry(Table):
    """Properties of a node in a TOML file."""

    name: str
    kind: Literal["host", "switch"] | None = None
    tier: Annotated[int, Field(ge=0, le=100)] | None = None
    group: Annotated[int, Field(ge=0, le=65535)] | None = None  # group of a switch, for `topology.routing`


@dataclass(frozen=True)
class ListedLink:
    """Link as listed in a file, and its position there."""

    a: str
    b: str
    attributes: Attributes
    where: str


@dataclass(frozen=True)
class Listed:
    """Contents of a file: links, and nodes by name, in order."""

    links: Sequence[ListedLink]
    nodes: Mapping[str, NodeEntry] = field(default_factory=dict)


class ListedTopology(FileTopology):
    """A network as a list of links."""

    hosts: tuple[Pattern, ...] = Field(default=(), strict=False)  # patterns of the names of hosts
    # If the file has no hosts: number of hosts added to each node, named after the node with a
    # number. 0: none.
    hosts_per_switch: Annotated[int, Field(ge=0, le=500)] = 0
    # Routing, as for a dragonfly; all but `shortest` need a `group` of each switch in the file.
    routing: Routing = "shortest"

    def assembled(self, kind: str, listed: Listed) -> Topology:
        """Return the network that a file lists.

        Parameters
        ----------
        kind
            Name of the topology.
        listed
            Nodes and links of the file.

        Returns
        -------
        Topology
            The network.

        Raises
        ------
        UserError
            If the file lists no network.
        """
        where = f"topology.file: {self.file}"
        names = dict.fromkeys(listed.nodes)
        for link in listed.links:
            names.update(dict.fromkeys((link.a, link.b)))
        for name in names:
            checked_name(where, name)
        said = {name: entry.kind for name, entry in listed.nodes.items() if entry.kind is not None}
        if self.hosts:
            hosts = {name for name in names if any(fnmatchcase(name, pattern) for pattern in self.hosts)}
            if not hosts:
                raise UserError(f"topology.hosts: no node of {self.file} is called so; {_some(list(names))}")
        elif said:
            hosts = {name for name, kind in said.items() if kind == _HOST}
        else:
            hosts = set() if self.hosts_per_switch else leaves(names, ((link.a, link.b) for link in listed.links))
            if len(hosts) < 2 and not self.hosts_per_switch:
                raise UserError(
                    f"{where}: {len(hosts)} nodes have one link, as hosts have unless topology.hosts names them; "
                    "expected at least two"
                )
        links = [self._link(link) for link in listed.links]
        if self.hosts_per_switch:
            if hosts:
                raise UserError(f"topology.hosts_per_switch: {self.file} has hosts of its own; expected 0")
            more = [f"{name}.h{i}" for name in names for i in range(self.hosts_per_switch)]
            links += [FileLink(host.rpartition(".")[0], host, self.link_rate_bps, self.link_delay_ns) for host in more]
            hosts.update(more)
            names.update(dict.fromkeys(more))
        tiers = {name: entry.tier for name, entry in listed.nodes.items() if entry.tier is not None}
        network = FileNetwork(
            [name for name in names if name in hosts],
            [name for name in names if name not in hosts],
            links,
            tiers={name: tier for name, tier in tiers.items() if name not in hosts},
        )
        topology = assembled(kind, where, network, self)
        if self.routing == "shortest":
            return topology
        groups = {name: entry.group for name, entry in listed.nodes.items()}
        return in_groups(topology, groups, self.routing)

    def _link(self, link: ListedLink) -> FileLink:
        given = link.attributes
        return FileLink(
            link.a,
            link.b,
            self.link_rate_bps if given.rate_bps is None else given.rate_bps,
            self.link_delay_ns if given.delay_ns is None else given.delay_ns,
            given.loss or 0.0,
            link.where,
            given.framing_bytes,
        )


@register("edges")
class Edges(ListedTopology):
    """Network from a list of links; `link_rate_bps` and `link_delay_ns` are defaults for the links."""

    def build(self) -> Topology:
        """Return the network of these parameters."""
        where = f"topology.file: {self.file}"
        try:
            text = read_text(Path(self.file))
        except UserError as error:
            raise UserError(f"topology.file: {error}") from None
        listed = _from_toml(where, text) if self.file.endswith(".toml") else _from_csv(where, text)
        return self.assembled("edges", listed)


def attributes(where: str, values: Mapping[str, Any]) -> Attributes:
    """Return the attributes that a file gives a link.

    Parameters
    ----------
    where
        Beginning of error messages.
    values
        Values by the names of columns or keys.

    Raises
    ------
    UserError
        For a value that a link cannot have.
    """
    try:
        return validate(Attributes, with_numbers(values), "")
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _from_csv(where: str, text: str) -> Listed:
    return Listed(list(_rows(where, text)))


def _rows(where: str, text: str) -> Iterator[ListedLink]:
    reader = csv.reader(io.StringIO(text), strict=True)
    columns: list[str] = []
    count = 0
    try:
        for row in reader:
            place = f"{where}:{reader.line_num}"
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if not columns:
                columns = _columns(place, cells)
                continue
            if len(cells) != len(columns):
                raise UserError(f"{place}: {len(cells)} cells; expected {len(columns)}: {','.join(columns)}")
            values = dict(zip(columns, cells, strict=True))
            count += 1
            if count > MAX_LINKS:
                raise UserError(f"{place}: over {MAX_LINKS:,} links; expected a smaller network")
            given = {key: _value(values[key]) for key in columns if key not in ("a", "b") and values[key]}
            yield ListedLink(values["a"], values["b"], attributes(place, given), place)
    except csv.Error as error:
        raise UserError(f"{where}:{reader.line_num}: not a CSV file: {error}") from None
    if not columns:
        raise UserError(f"{where}: has no line of columns; expected {','.join(COLUMNS)}")


def _columns(where: str, cells: list[str]) -> list[str]:
    for cell in cells:
        if cell not in COLUMNS:
            raise UserError(f"{where}: no column {cell!r:.60}; {suggest(cell, COLUMNS)}")
    if len(set(cells)) < len(cells) or not {"a", "b"} <= set(cells):
        raise UserError(f"{where}: expected the columns a and b, and each column once")
    return cells


def _value(cell: str) -> object:
    """Return a number, or the text for `with_numbers`, which rejects invalid ones."""
    if len(cell) <= 40 and cell.isascii():
        try:
            return int(cell) if cell.isdigit() else float(cell)
        except ValueError:
            pass
    return cell


def _from_toml(where: str, text: str) -> Listed:
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UserError(f"{where}: not a TOML file: {error}") from None
    for key in tables:
        if key not in ("links", "nodes"):
            raise UserError(f"{where}: no key {key!r:.60}; expected links, and nodes if they say something")
    listed = []
    for number, values in enumerate(_tables(where, tables, "links")):
        place = f"{where}: links.{number}"
        ends = [values.pop(key, None) for key in ("a", "b")]
        if not all(isinstance(end, str) for end in ends):
            raise UserError(f"{place}: expected a and b, the names of the nodes at its ends")
        listed.append(ListedLink(str(ends[0]), str(ends[1]), attributes(place, values), place))
    nodes: dict[str, NodeEntry] = {}
    for number, values in enumerate(_tables(where, tables, "nodes")):
        try:
            entry = validate(NodeEntry, values, "")
        except UserError as error:
            raise UserError(f"{where}: nodes.{number}: {error}") from None
        if entry.name in nodes:
            raise UserError(f"{where}: nodes.{number}: {entry.name!r:.60} for the second time")
        nodes[entry.name] = entry
    return Listed(listed, nodes)


def _tables(where: str, tables: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    listed = tables.get(key, [])
    if not isinstance(listed, list) or not all(isinstance(table, dict) for table in listed):
        raise UserError(f"{where}: {key} should be a list of tables")
    return listed


def _some(names: list[str]) -> str:
    return f"it has {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}" if names else "it has none"


def written(topology: Topology) -> str:
    """Return a network as TOML that `edges` reads as the same one: nodes, ports, tiers and links."""
    lines = [f'  {{ name = "{host.name}", kind = "host" }},' for host in topology.hosts]
    for switch in topology.switches:
        group = f", group = {topology.route_groups[switch.name]}" if topology.route_groups else ""
        lines.append(f'  {{ name = "{switch.name}", kind = "switch", tier = {switch.tier}{group} }},')
    links = []
    for link in topology.links:
        more = f", loss = {link.loss!r}" if link.loss else ""
        more += "" if link.framing_bytes is None else f", framing_bytes = {link.framing_bytes}"
        links.append(
            f'  {{ a = "{link.a}", b = "{link.b}", rate_bps = {link.rate_bps}, delay_ns = {link.delay_ns}{more} }},'
        )
    return "\n".join(["nodes = [", *lines, "]", "links = [", *links, "]", ""])


def written_csv(topology: Topology) -> str:
    """Return the links of a network as CSV, which does not include kinds and tiers of nodes."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    framings = any(link.framing_bytes is not None for link in topology.links)
    columns = COLUMNS if framings else COLUMNS[:-1]
    table.writerow(columns)
    for link in topology.links:
        loss = repr(link.loss) if link.loss else ""
        row = [link.a, link.b, link.rate_bps, link.delay_ns, loss, link.framing_bytes]
        table.writerow(row[: len(columns)])
    return text.getvalue()
