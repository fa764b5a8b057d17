"""Packet tests for BMv2 without BMv2: how packets are released, and the answers of its CLI."""

from __future__ import annotations

from typing import Any

import pytest

from p4switch.stf.bmv2_rig import Bmv2Switch, Feed
from tests.p4switch.test_stf_language import DOCUMENT


class File:
    """An input file of one port."""

    def __init__(self) -> None:
        self.packets: list[tuple[int, bytes]] = []  # time, data
        self.ended = False

    def write_packet(self, frame: bytes, sec: int, usec: int) -> None:
        assert not self.ended
        self.packets.append((sec * 1_000_000 + usec, frame))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.ended = True


def handled(files: dict[int, File]) -> list[bytes]:
    """Return packets in simple_switch's order: the earliest among the next packets of all files."""
    waiting = {port: list(file.packets) for port, file in files.items()}
    done: list[bytes] = []
    while all(waiting[port] or files[port].ended for port in files) and any(waiting.values()):
        port = min((p for p in files if waiting[p]), key=lambda p: waiting[p][0])
        done.append(waiting[port].pop(0)[1])
    return done


@pytest.mark.parametrize("ports", ["1", "11", "12", "121", "1221", "112233", "321123", "2", "1312132312"])
def test_packets_are_handled_when_they_are_released_and_not_before(ports: str) -> None:
    files = {port: File() for port in (1, 2, 3)}  # ports without packets have files, too
    packets = [(int(port), bytes([number])) for number, port in enumerate(ports)]
    feed = Feed(packets, files)
    for count in range(len(packets)):
        assert handled(files) == [frame for _, frame in packets[:count]]
        feed.release()
    assert handled(files) == [frame for _, frame in packets]
    feed.close()
    assert all(file.ended for file in files.values())


def switch(answer: str, commands: list[str]) -> Bmv2Switch:
    def cli(command: str) -> str:
        commands.append(command)
        return answer

    counters: list[dict[str, Any]] = DOCUMENT["counter_arrays"]
    meter = {"name": "ingress.m", "id": 0, "type": "packets", "is_direct": False, "size": 8}
    document = {**DOCUMENT, "counter_arrays": counters, "meter_arrays": [meter]}
    return Bmv2Switch(cli, document)


@pytest.mark.parametrize(
    "answer",
    [
        "ingress.c[5]= (1460 bytes, 17 packets)\n",
        "ingress.c[5]=  BmCounterValue(packets=17, bytes=1460)\n",
        "ingress.c[5]=  BmCounterValue(bytes=1460, packets=17)\n",
    ],
)
def test_counters_as_old_and_new_versions_print_them(answer: str) -> None:
    commands: list[str] = []
    assert switch(answer, commands).counter_read("ingress.c", 5) == (17, 1460)
    assert commands == ["counter_read ingress.c 5"]


def test_direct_counters_are_read_by_the_entry() -> None:
    commands: list[str] = []
    bmv2 = switch("this is the direct counter for table ingress.t\ningress.hits[3]= (60 bytes, 1 packets)\n", commands)
    assert bmv2.direct_counter_read("ingress.t", 3) == (1, 60)
    bmv2.direct_counter_write("ingress.t", 3, 2, 120)
    assert commands == ["counter_read ingress.hits 3", "counter_write ingress.hits 3 2 120"]
