"""Run leaf_conweave of conweave-p4, unchanged, on the leaves of leaf-spines of 100 Gb/s, with and without rerouting.

    python -m tools.conweave_leaf FOLDER

FOLDER is leaf_conweave/p4src of the fetched sources. They have no control plane, so the entries follow the comments of
its tables and of macro.p4. The spines run examples/tofino/step.p4, a TNA program that forwards by IPv4 addresses.

The program has ports of its own. Frames that leave port 16 or the recirculation port 6 come back to the switch. A frame
that leaves port 8 becomes a message to the source's leaf (NOTIFY), so this port carries nothing else. It leads to the
switch "messages", which runs the spines' program and has no other links.
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
from tools.conweave_entries import (
    CELL_BYTES,
    CONTROL_PORT,
    KMIN_CELLS,
    RECIRCULATION_PORT,
    LeafConweave,
    program_file,
)

_HOSTS, _SPINES = 16, 8  # number of each leaf's hosts, half of which send, and number of paths between two leaves
_LEAVES = (2, 4)
_STEP = Path(__file__).parents[1] / "examples" / "tofino"
_SIZE_BYTES = 4_000_000
_STARTS_S = 100e-6  # flows start at random within this time, because the program chooses paths by the clock
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
    program = "step.p4"
    cc = "dcqcn"
    lb = "./one_port.py:one-port"

    [topology]
    name = "edges"
    file = "network.toml"

    [workload]
    name = "ns3"
    file = "flows.txt"

    [nic]
    mac_prefix = 0x0a00 # a first byte of 1 to 4 is a mirror's to the egress of leaf_conweave

    [programs.step]
    threshold_bytes = {KMIN_CELLS * CELL_BYTES}

    [[switches]]
    tier = "tor"
    program = "leaf_conweave.p4"
    architecture = "t2na"
    loopback.ports = [{RECIRCULATION_PORT}, {CONTROL_PORT}]
"""


def network_file(leaves: int) -> str:
    """Return the list of links. The first one of each leaf, at port 8, leads to the switch for messages."""
    links = [(leaf, "messages") for leaf in range(leaves)]
    links += [(host // _HOSTS, f"h{host}") for host in range(leaves * _HOSTS)]
    links += [(leaf, f"spine{spine}") for leaf in range(leaves) for spine in range(_SPINES)]
    lines = [f'{{ a = "leaf{leaf}", b = "{there}" }},' for leaf, there in links]
    return "\n    ".join(["links = [", *lines]) + "\n]\n"


def _flows(seed: int, leaves: int) -> str:
    """Return flows from the first half of each leaf's hosts to the other half of the next leaf's, one to each."""
    draw, lines = random.Random(seed), []
    for leaf in range(leaves):
        first, end = leaf * _HOSTS, ((leaf + 1) % leaves + 1) * _HOSTS
        sinks = draw.sample(range(end - _HOSTS // 2, end), _HOSTS // 2)
        starts_s = [draw.random() * _STARTS_S for _ in sinks]
        ends = enumerate(zip(sinks, starts_s, strict=True), start=first)
        lines += [f"{source} {sink} 3 100 {_SIZE_BYTES} {start_s:.9f}" for source, (sink, start_s) in ends]
    return "\n".join([str(len(lines)), *lines, ""])


def _rows(folder: Path, variants: Sequence[tuple[str, str]]) -> Iterator[dict[str, object]]:
    scenario = folder / "scenario.toml"
    for leaves in _LEAVES:
        (folder / "network.toml").write_text(network_file(leaves))
        for variant, settings in variants:
            scenario.write_text(dedent(_SCENARIO) + settings)
            results = []
            for seed in _SEEDS:
                (folder / "flows.txt").write_text(_flows(seed, leaves))
                results.append(p4cc.run(scenario, seeds=[seed])[0])
            yield _row(leaves, variant, results)


def _row(leaves: int, variant: str, results: Sequence[p4cc.Result]) -> dict[str, object]:
    flows = pd.concat([result.flows for result in results])
    uplinks = [_uplink_bytes(result) for result in results]
    return {
        "leaves": leaves,
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
    up = links["node"].str.startswith("leaf") & links["leads_to"].str.startswith("spine")
    return links[up].groupby(["node", "port"], observed=True)["tx_bytes"].sum()


def runs(sources: Path, folder: Path) -> pd.DataFrame:
    """Return a row for each number of leaves and each variant, of three seeds."""
    shutil.copytree(sources, folder, dirs_exist_ok=True)
    compiled = compile_program(folder / "leaf_conweave.p4", arch="t2na")
    (register,) = (each.preamble.id for each in compiled.p4info.registers if each.preamble.alias == "reg_port")
    (folder / "leaf_conweave.py").write_text(program_file("leaf_conweave", LeafConweave.__name__))
    (folder / "one_port.py").write_text(dedent(_BALANCER))
    for file in ("step.p4", "step.py"):
        shutil.copy(_STEP / file, folder)
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
