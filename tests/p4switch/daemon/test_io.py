"""AF_PACKET and AF_XDP give `p4cc switch` the same frames in the same order."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest

from p4switch.compiler import compile_program
from p4switch.p4runtime.messages import p4runtime_pb2
from tests.p4switch.daemon.conftest import Daemon, Namespace, needs_xdp, quiet, senders, wait_until
from tests.p4switch.daemon.test_process import PROGRAM, Remote, frame

_BURST = 400  # frames; a switch's receive ring has 512


@pytest.fixture(scope="module")
def compiled() -> Any:
    return compile_program(PROGRAM)


def port(stats: dict[str, Any], number: int) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in stats["ports"] if row["port"] == number)
    return row


@senders
def test_frames_of_all_sizes_in_order(start: Any, namespace: Namespace, compiled: Any, send: str) -> None:
    """With an MTU of 9000 AF_XDP sends frames of up to 4096 bytes, and AF_PACKET the larger ones between them."""
    daemon = start("--no-p4", "--send", send)
    Remote(daemon.client(), compiled).forward(2, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    lengths = (60, 1514, 9014, 64, 4096, 4097, 1000, 100, 9014, 9014)
    sent = [frame(2, e=i, length=lengths[i % len(lengths)]) for i in range(_BURST)]
    for _ in range(3):
        for data in sent:
            h1.send(data)
        assert [h2.recv(10000) for _ in sent] == sent
    stats = daemon.stop()
    assert port(stats, 2)["sends_by_xdp"] == (send == "xdp")
    assert (port(stats, 2)["tx_packets"], port(stats, 2)["tx_failed"]) == (3 * _BURST, 0)
    assert port(stats, 1)["rx_ring_full"] == 0


@senders
def test_frames_of_two_ports_in_order_of_arrival(start: Any, namespace: Namespace, compiled: Any, send: str) -> None:
    daemon = start("--no-p4", "--send", send)
    Remote(daemon.client(), compiled).forward(2, 2)
    h1, h2, h3 = (namespace.raw_socket(f"h{i}") for i in (1, 2, 3))
    h1.send(frame(2))
    h2.recv(10000)
    daemon.process.send_signal(signal.SIGSTOP)
    for i in range(_BURST):  # the whole burst fits into two rings
        (h1 if i % 7 < 3 else h3).send(frame(2, e=i))
    daemon.process.send_signal(signal.SIGCONT)
    assert [int.from_bytes(h2.recv(10000)[:2], "big") for _ in range(_BURST)] == list(range(_BURST))


@senders
def test_vlan_tags_survive(start: Any, namespace: Namespace, compiled: Any, send: str) -> None:
    daemon = start("--no-p4", "--send", send)
    c = Remote(daemon.client(), compiled)
    c.modify(c.entry("lpm_one", None, ("send", {"port": 3}), is_default_action=True))
    h1, h3 = namespace.raw_socket("h1"), namespace.raw_socket("h3")
    # The receiving kernel removes the tag from the frame and puts it into the auxiliary data.
    h3.setsockopt(263, 8, 1)  # PACKET_AUXDATA
    addresses, rest = bytes.fromhex("000000000002ffff00001234"), b"\x08\x00" + bytes(60)
    h1.send(addresses + b"\x81\x00\x00\x05" + rest)
    data, ((_, _, auxiliary),), _, _ = h3.recvmsg(10000, 1000)
    assert data == addresses + rest
    assert int.from_bytes(auxiliary[16:18], sys.byteorder) == 5


@senders
def test_an_interface_that_goes_down_and_comes_back(start: Any, namespace: Namespace, compiled: Any, send: str) -> None:
    daemon = start("--no-p4", "--send", send)
    c = Remote(daemon.client(), compiled)
    c.forward(2, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")

    def forwarded() -> int:
        (count,) = c.read(p4runtime_pb2.CounterEntry(counter_id=c.id("counters", "cells"), index={"index": 1}))
        packets: int = count.data.packet_count
        return packets

    for end in ("s2", "h2"):  # the switch's end, then the other one
        before = forwarded()
        namespace.run("ip", "link", "set", end, "down")
        for _ in range(40):
            h1.send(frame(2))
        wait_until(lambda before=before: forwarded() >= before + 40)
        namespace.run("ip", "link", "set", end, "up")
        h2.close()
        h2 = namespace.raw_socket("h2")
        h1.send(frame(2, e=7))
        assert h2.recv(10000) == frame(2, e=7)
        assert quiet(h2)  # lost frames are not sent again
    stats = daemon.stop()
    assert port(stats, 2)["tx_failed"] == 80


@senders
def test_after_a_kill_the_next_one_finds_all_as_before(
    start: Any, namespace: Namespace, compiled: Any, send: str
) -> None:
    before = namespace.run("ip", "-details", "link", "show", "s2")
    for _ in range(2):
        daemon = start("--no-p4", "--send", send)
        Remote(daemon.client(), compiled).forward(2, 2)
        h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
        h1.send(frame(2))
        assert h2.recv(10000) == frame(2)
        daemon.kill()
        wait_until(lambda: namespace.run("ip", "-details", "link", "show", "s2") == before)


@senders
def test_the_log_says_how_frames_are_sent(start: Any, send: str) -> None:
    daemon = start("--no-p4", "--send", send)
    daemon.client()
    name = {"packet": "AF_PACKET", "xdp": "AF_XDP"}[send]
    assert f"port 2: s2, frames are sent by {name}\n" in daemon.log.read_text()


@needs_xdp
def test_where_there_is_no_af_xdp_af_packet_sends(start: Any, namespace: Namespace, compiled: Any) -> None:
    """A queue of an interface can have only one AF_XDP socket, and the first switch uses it."""
    first: Daemon = start("--no-p4", "--send", "xdp")
    first.client()
    second: Daemon = start("--no-p4")
    c = Remote(second.client(), compiled)
    assert "port 1: s1, frames are sent by AF_PACKET (AF_XDP: Device or resource busy)" in second.log.read_text()
    c.forward(2, 2)
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    h1.send(frame(2))
    assert h2.recv(10000) == frame(2)
    third: Daemon = start("--no-p4", "--send", "xdp")
    _, errors = third.process.communicate(timeout=60)
    assert third.process.returncode == 2
    assert "-i 1@s1: Device or resource busy; expected an interface that exists and has AF_XDP" in errors
