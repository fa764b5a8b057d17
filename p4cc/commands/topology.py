"""`p4cc topology`: draw a network, or write it as a list of links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from p4switch.errors import UserError
from p4switch.output_file import check_writable, write_files
from p4switch.printable import tell

if TYPE_CHECKING:
    from topologies import Topology

_FILE = click.Path(path_type=Path)
_KIND_OF = {".topo": "htsim", ".csv": "edges", ".graphml": "graphml", ".txt": "ns3"}
_FIGURES = ("svg", "pdf", "png")


def _source(of: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments and options of the network to a command."""
    for decorate in (
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a key of [topology]: k=8."),
        click.option(
            "--as", "kind", metavar="TOPOLOGY", help="Read NETWORK as such a file: ns3, htsim, edges or graphml."
        ),
        click.argument("network", metavar="NETWORK"),
    ):
        of = decorate(of)
    return of


@click.group()
def command() -> None:
    """Draw a network, or write it as a list of links.

    NETWORK is a scenario, by name or file, a file with a network alone, or the name of a topology
    with its defaults. The suffix of a file tells its format: .topo is htsim's, .txt is HPCC's;
    .csv, .graphml and .toml with links are read, too. Other suffixes need --as.
    """


@command.command()
@_source
@click.option(
    "--out", type=_FILE, default=Path("topology.svg"), show_default=True, help="The figure: .svg, .pdf or .png."
)
def show(network: str, kind: str | None, settings: tuple[str, ...], out: Path) -> None:
    """Draw a network, and print what it consists of."""
    extension = out.suffix[1:]
    if extension not in _FIGURES:
        raise UserError(f"--out {out}: expected a name that ends in .{', .'.join(_FIGURES)}")
    check_writable(out, "--out")
    topology = _read(network, kind, settings)
    for line in _description(topology):
        tell(line)
    from reports.network import drawn

    write_files({out: drawn(topology, extension)})
    tell(f"drawn in {out}")


@command.command()
@_source
@click.argument("out", type=_FILE, metavar="FILE")
def convert(network: str, kind: str | None, settings: tuple[str, ...], out: Path) -> None:
    """Write a network as a list of links that `topology.name = "edges"` reads.

    FILE ends in .toml or .csv. TOML also has the kinds and tiers of the nodes, so that reading it
    gives the same network.
    """
    from topologies import edges

    if out.suffix not in (".toml", ".csv"):
        raise UserError(f"{out}: expected a name that ends in .toml or .csv")
    check_writable(out, "FILE")
    topology = _read(network, kind, settings)
    text = edges.written(topology) if out.suffix == ".toml" else edges.written_csv(topology)
    write_files({out: text.encode()})
    tell(f"{len(topology.links):,} links in {out}")


def _read(network: str, kind: str | None, settings: tuple[str, ...]) -> Topology:
    """Return the network that the arguments name.

    Raises UserError if the name, the file or a setting is not one of a network.
    """
    import topologies
    from harness.plan.references import loaded
    from harness.plan.run import named
    from harness.plan.scenario import built_in, check, find, merge, override, read

    path = Path(network)
    kind = kind or _KIND_OF.get(path.suffix)
    tables: dict[str, Any]
    if kind is not None:
        tables, folder = {"name": kind, "file": network}, Path.cwd()
    elif path.suffix == ".toml" or network in built_in():
        file = find(network)
        folder, own = file.parent, read(file)
        if "topology" in own:
            tables = own["topology"]
        elif "links" in own:
            tables, folder = {"name": "edges", "file": network}, Path.cwd()
        else:
            raise UserError(f"{network}: expected a scenario with a [topology], or a list of links")
    else:
        topologies.parameters(network)
        tables, folder = {"name": network}, Path.cwd()
    changes = override({}, [f"topology.{setting}" for setting in settings]).get("topology", {})
    workload = {"name": "incast"}  # a scenario has a topology
    scenario = loaded(check({"topology": merge(tables, changes), "workload": workload}), folder)
    name, values = named("topology", scenario.topology)
    return topologies.build(name, values)


def _description(topology: Topology) -> Iterator[str]:
    """Yield lines that describe a network."""
    tiers = Counter(switch.tier for switch in topology.switches)
    switches = ", ".join(f"{count:,} of tier {tier}" for tier, count in sorted(tiers.items()))
    yield f"{topology.name}: {len(topology.hosts):,} hosts, {len(topology.switches):,} switches ({switches})"
    tier_of = {switch.name: f"tier {switch.tier}" for switch in topology.switches}
    kinds: Counter[tuple[str, int, int, float]] = Counter()
    for link in topology.links:
        low, high = sorted((tier_of.get(link.a, "hosts"), tier_of.get(link.b, "hosts")))
        kinds[f"{low} - {high}", link.rate_bps, link.delay_ns, link.loss] += 1
    for (ends, rate_bps, delay_ns, loss), count in sorted(kinds.items()):
        lossy = f", loss {loss:g}" if loss else ""
        links = "link" if count == 1 else "links"
        yield f"  {count:,} {links} {ends}: {rate_bps / 1e9:g} Gb/s, {delay_ns / 1e3:g} us{lossy}"
