"""Run leaf_conweave of conweave-p4, unchanged, on two leaves with eight paths of 100 Gb/s, with and without rerouting.

    python -m tools.conweave_leaf FOLDER

FOLDER is leaf_conweave/p4src of the fetched sources, which have no control plane; the entries follow the comments of
its tables and of macro.p4. All switches of a run have one program, and this one drops its own messages (REPLY, NOTIFY)
wherever they come from a link, so there are no spines: each path is a link with the delay of two.

The program has ports of its own: frames that leave port 16 and the recirculation port 6 come back to the switch, and
what leaves port 8 becomes a message to the source's leaf (NOTIFY), so that this port of each leaf leads to the other
leaf and carries nothing else.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import click
import pandas as pd

import p4cc
from p4switch.compiler import compile_program
from tools.conweave_entries import CONTROL_PORT, NOTIFY_PORT, RECIRCULATION_PORT, LeafConweave, program_file

_HOSTS, _PATHS = 8, 8  # of each leaf, and between both
_DELAY_NS, _PATH_DELAY_NS = 1000, 2000
_SIZE_BYTES = 4_000_000
_SEEDS = (1, 2, 3)
_BALANCER = """
    from dataclasses import dataclass

    from host_agents.lb.base import FIRST_ENTROPY, LoadBalancer
    from host_agents.registry import LoadBalancerInfo, register


    @dataclass(frozen=True)
    class Parameters:
        pass


    class OnePort(LoadBalancer):
        balances = False

        def next_entropy(self, now_ns):
            return FIRST_ENTROPY


    register(LoadBalancerInfo("one-port", "the same UDP source port for all", "", Parameters,
                              lambda parameters, seed, path: OnePort()))
"""
_SCENARIO = f"""
    program = "leaf_conweave.p4"
    cc = "dcqcn"
    lb = "./one_port.py:one-port"

    [topology]
    name = "edges"
    file = "network.toml"

    [workload]
    name = "ns3"
    file = "flows.txt"

    [switch]
    architecture = "t2na"
    loopback.ports = [{RECIRCULATION_PORT}, {CONTROL_PORT}]

    [nic]
    mac_prefix = 0x0a00 # a first byte of 1 to 4 is a mirror's to this program's egress
"""


def network_file() -> str:
    """Return the list of links. The first one is at port 8 of both leaves."""
    links = [f'{{ a = "leaf0", b = "leaf1", delay_ns = {_PATH_DELAY_NS} }}']
    links += [f'{{ a = "leaf{i // _HOSTS}", b = "h{i}", delay_ns = {_DELAY_NS} }}' for i in range(2 * _HOSTS)]
    links += links[:1] * _PATHS
    separator = ",\n    "
    return f"links = [\n    {separator.join(links)},\n]\n"


def _flows(seed: int) -> str:
    """Return flows in which each host sends to one of the other leaf."""
    draw, lines = random.Random(seed), []
    for first in (0, _HOSTS):
        sinks = draw.sample(range(_HOSTS - first, 2 * _HOSTS - first), _HOSTS)
        lines += [f"{first + i} {sink} 3 100 {_SIZE_BYTES} 0.0" for i, sink in enumerate(sinks)]
    return "\n".join([str(len(lines)), *lines, ""])


def _rows(folder: Path, variants: Sequence[tuple[str, str]]) -> Iterator[dict[str, object]]:
    scenario = folder / "scenario.toml"
    for variant, settings in variants:
        scenario.write_text(dedent(_SCENARIO) + settings)
        results = []
        for seed in _SEEDS:
            (folder / "flows.txt").write_text(_flows(seed))
            results.append(p4cc.run(scenario, seeds=[seed])[0])
        yield _row(variant, results)


def _row(variant: str, results: Sequence[p4cc.Result]) -> dict[str, object]:
    flows = pd.concat([result.flows for result in results])
    uplinks = [_uplink_bytes(result) for result in results]
    return {
        "variant": variant,
        "flows not done": int((flows["completed_ns"] < 0).sum()),
        "mean FCT, us": flows["fct_ns"].mean() / 1e3,
        "99%, us": flows["fct_ns"].quantile(0.99) / 1e3,
        "NAKs": flows["naks"].sum() / len(results),
        "sent again": flows["retransmitted"].sum() / len(results),
        "wrong checksum": sum(result.summary["nic"]["malformed"] for result in results) / len(results),
        "uplink, max / mean": sum(each.max() / each.mean() for each in uplinks) / len(uplinks),
    }


def _uplink_bytes(result: p4cc.Result) -> pd.Series[int]:
    links = result.table("links")
    between = links["node"].str.startswith("leaf") & links["leads_to"].str.startswith("leaf")
    return links[between & (links["port"] != NOTIFY_PORT)].groupby(["node", "port"], observed=True)["tx_bytes"].sum()


def runs(sources: Path, folder: Path) -> pd.DataFrame:
    """Return a row for each variant, of three seeds."""
    shutil.copytree(sources, folder, dirs_exist_ok=True)
    compiled = compile_program(folder / "leaf_conweave.p4", arch="t2na")
    (register,) = (each.preamble.id for each in compiled.p4info.registers if each.preamble.alias == "reg_port")
    (folder / "leaf_conweave.py").write_text(program_file("leaf_conweave", LeafConweave.__name__))
    (folder / "one_port.py").write_text(dedent(_BALANCER))
    (folder / "network.toml").write_text(network_file())
    settings = f"\n[programs.leaf_conweave]\nport_register = {register}\n"
    return pd.DataFrame(_rows(folder, (("ECMP", f"{settings}reroutes = false\n"), ("ConWeave", settings))))


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="p4cc-conweave-") as scratch:
        click.echo(runs(folder, Path(scratch)).to_string(index=False, float_format="{:.2f}".format))


if __name__ == "__main__":
    main()
