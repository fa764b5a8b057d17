"""Entries of conweave-p4: those of native_dcqcn's cp/setup.py, and those that comments of leaf_conweave require.

A run writes them as the parameters of a program of its own; see `program_file`.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import dedent

from control_plane.programs.entries import EntryFile
from host_agents.lb.base import FIRST_ENTROPY
from p4cc.programs import Action, CloneSession, Entry, Exact, ProgramParameters, Range, SwitchView, TableEntry
from topologies.model import Host

CELL_BYTES = 80
KMIN_CELLS, KMAX_CELLS, PMAX = 1250, 3000, 0.2
_DRAWS = 256
_MAX_DEPTH = (1 << 19) - 1

NOTIFY_PORT, CONTROL_PORT, RECIRCULATION_PORT = 8, 16, 6
_REPLY_SESSION = 220
_MIRRORED_BYTES = 128
_REPLY_TIMEOUT = 8  # time-out in units of 1,024 ns
_UPLINKS, _SWITCH = 1, 1  # group of next hops, number of the switch
_REORDER_QUEUES = {"c1": range(2, 6), "c2": range(6, 10), "c3": range(10, 14)}
_DATA_OPCODES = range(0x11)
_ROCE_PORT = 4791


def program_file(name: str, parameters: str) -> str:
    """Return the Python file of program `name`, whose parameters are a class of this module."""
    return dedent(f"""
        from p4cc.programs import register
        from {__name__} import {parameters}

        register("{name}")({parameters})
    """)


def marking() -> Iterator[TableEntry]:
    """Yield the probability of a mark by depth, in steps, and the draws that mark."""
    steps = math.ceil(PMAX * _DRAWS)
    width = (KMAX_CELLS - KMIN_CELLS) // steps
    ranges = [(KMIN_CELLS + step * width, width - 1, step + 1) for step in range(steps - 1)]
    ranges.append((KMIN_CELLS + (steps - 1) * width, _MAX_DEPTH, _DRAWS - 1))
    for low, length, value in ranges:
        depth = Range(low, min(low + length, _MAX_DEPTH))
        action = Action("dcqcn_mark_probability", {"value": value})
        yield TableEntry("dcqcn_get_ecn_probability", {"eg_intr_md.deq_qdepth": depth}, action, 1)
        for draw in range(value if value < _DRAWS - 1 else _DRAWS):
            key = {"meta.dcqcn_prob_output": Exact(value), "meta.dcqcn_random_number": Exact(draw)}
            yield TableEntry("dcqcn_compare_probability", key, Action("dcqcn_check_ecn_marking"))


class NativeDcqcn(ProgramParameters):
    """Entries of native_dcqcn, which routes by MAC address."""

    def entries(self, switch: SwitchView) -> Iterator[Entry]:
        assert switch.network is not None
        for host in switch.network.hosts:
            ports = next(route.ports for route in switch.routes if host.address in route.prefix)
            key = {
                "meta.port_md.switch_id": Exact(0),
                "hdr.ethernet.dst_addr": Exact(int.from_bytes(host.mac, "big")),
            }
            yield TableEntry("l2_forward", key, Action("forward", {"port": ports[host.index % len(ports)]}))
        yield from marking()


class LeafConweave(ProgramParameters):
    """Entries of leaf_conweave at a leaf, which has all paths to the other leaves through its other neighbours."""

    reroutes: bool = True
    port_register: int = 0  # P4Runtime's id of reg_port

    def entries(self, switch: SwitchView) -> Iterator[Entry]:
        assert switch.network is not None
        ports = {port: there for port, there in switch.neighbours.items() if port != NOTIFY_PORT}
        local = {int(there.address): port for port, there in ports.items() if there.address is not None}
        uplinks = [port for port, there in ports.items() if there.address is None]
        for port in (*switch.neighbours, *switch.loopback_ports):
            action = Action("write_switch_id", {"switch_id": _SWITCH})
            yield TableEntry("get_switch_id", {"ig_intr_md.ingress_port": Exact(port)}, action, 1)
        yield from _routes(switch.network.hosts, local, uplinks)
        yield from marking()
        if not self.reroutes:
            return
        for opcode in _DATA_OPCODES:
            key = {"hdr.udp.dst_port": Exact(_ROCE_PORT), "hdr.bth.opcode": Exact(opcode)}
            yield TableEntry("check_rdma_data", key, Action("set_rdma_data"))
        for copy in ("c1", "c2"):
            takes = tuple(Action(f"set_port_{copy}", {"port": port}) for port in uplinks)
            yield TableEntry(f"nexthop_{copy}", {"meta.nexthop_id": Exact(_UPLINKS)}, takes)
        for port in uplinks:
            decoded = Action("update_header_and_decode_port", {"decoded_port": port})
            yield TableEntry("do_update_conweave_header_out_port", {"meta.final_port": Exact(port)}, decoded)
        yield from self._connections(switch, local, uplinks)
        yield from _queues(local.values())
        for session, port in (
            (_REPLY_SESSION, RECIRCULATION_PORT), (CONTROL_PORT, CONTROL_PORT), (NOTIFY_PORT, NOTIFY_PORT),
        ):  # fmt: skip
            yield CloneSession(session, ((port, 0),), _MIRRORED_BYTES)

    def _connections(self, switch: SwitchView, local: Mapping[int, int], uplinks: Sequence[int]) -> Iterator[Entry]:
        """Yield a connection for each pair of hosts at different leaves, with a first uplink at random."""
        assert switch.network is not None
        hosts = switch.network.hosts
        pairs = [(a, b) for a in hosts for b in hosts if (int(a.address) in local) != (int(b.address) in local)]
        draw, updates = random.Random(f"{switch.seed} {switch.name}"), []
        for source, sink in pairs:
            place = source.index * len(hosts) + sink.index
            key = {
                "hdr.ipv4.src_addr": Exact(int(source.address)),
                "hdr.ipv4.dst_addr": Exact(int(sink.address)),
                "hdr.udp.src_port": Exact(FIRST_ENTROPY),
            }
            action = Action("write_hashidx_basertt", {"idx": place, "base_rtt": _REPLY_TIMEOUT})
            yield TableEntry("get_hashidx_basertt", key, action)
            cell = f"register_id: {self.port_register} index {{ index: {place} }}"
            data = f'data {{ bitstring: "\\{draw.choice(uplinks):03o}" }}'
            updates.append(f"updates {{ type: MODIFY entity {{ register_entry {{ {cell} {data} }} }} }}")
        with tempfile.NamedTemporaryFile("w", suffix=".txtpb") as file:
            file.write("\n".join(updates))
            file.flush()
            yield EntryFile(Path(file.name))


def _routes(hosts: Sequence[Host], local: Mapping[int, int], uplinks: Sequence[int]) -> Iterator[Entry]:
    """Yield the group of next hops of each host, and the last hop of those at the leaf."""
    groups: dict[int, Sequence[int]] = {_UPLINKS: uplinks}
    for host in hosts:
        address, group = int(host.address), _UPLINKS
        if address in local:
            group = _UPLINKS + 1 + host.index
            groups[group] = [local[address]]
            key = {"meta.switch_id": Exact(_SWITCH), "meta.meta_dst_addr": Exact(address)}
            yield TableEntry("check_last_hop", key, Action("acknowledge_last_hop"))
            port = {"eg_intr_md.egress_port": Exact(local[address])}
            yield TableEntry("do_check_toward_dst", port, Action("check_toward_dst"))
        key = {"meta.switch_id": Exact(_SWITCH), "hdr.ipv4.dst_addr": Exact(address)}
        yield TableEntry("get_nexthop_id", key, Action("write_nexthop_id", {"nexthop_id": group}))
    for group, members in groups.items():
        takes = tuple(Action("set_port", {"port": port}) for port in members)
        yield TableEntry("nexthop", {"meta.nexthop_id": Exact(group)}, takes)


def _queues(ports: Iterable[int]) -> Iterator[Entry]:
    """Yield the reorder queues of hosts' ports: their registers, and the messages that stop them."""
    cell = 0
    for port in ports:
        for copy, queues in _REORDER_QUEUES.items():
            for queue in queues:
                message = flow_control_message(port, queue)
                key = {"meta.out_port": Exact(port), f"meta.hash_qid_sample_{copy}": Exact(queue)}
                action = Action(f"get_idx_queue_occupancy_array_{copy}", {"idx": cell, "afc_msg": message})
                yield TableEntry(f"do_get_idx_queue_occupancy_array_{copy}", key, action)
                left = {"eg_intr_md.egress_port": Exact(port), "eg_intr_md.egress_qid": Exact(queue)}
                action = Action("get_idx_queue_occupancy_array_data_eg", {"idx": cell})
                yield TableEntry("do_get_idx_queue_occupancy_array_data_eg", left, action)
                action = Action("get_idx_queue_occupancy_array_ctrl_eg", {"idx": cell})
                key_ctrl = {"hdr.cwctrl.afc_msg": Exact(message)}
                yield TableEntry("do_get_idx_queue_occupancy_array_ctrl_eg", key_ctrl, action)
                cell += 1


def flow_control_message(port: int, queue: int) -> int:
    """Return the message of advanced flow control for a queue, without a credit."""
    return 1 << 31 | (port >> 7) << 29 | (port >> 3 & 15) << 25 | ((port & 7) * 16 + queue) << 15
