"""A network for a user's script: Linux hosts that communicate through P4 switches, and readings of the switches."""

from __future__ import annotations

import subprocess
import sys

import pytest

import p4cc
from tests.mininet.networks import alone, needs_mininet

pytestmark = needs_mininet
SERVER = "import socket; s = socket.create_server(('', 5000)); print(flush=True); print(len(s.accept()[0].recv(99)))"
CLIENT = "import socket, sys; socket.create_connection((sys.argv[1], 5000), 20).sendall(b'hello')"


def test_an_rdma_agent_runs_on_hosts_and_tells_what_became_of_its_messages() -> None:
    topology = p4cc.topology("dumbbell", pairs=2)
    a, b, c, d = (host.name for host in topology.hosts)
    with alone(), p4cc.Network(topology, "ecn") as net:
        table = net.transfer([(a, c, 20_000), (b, d, 1), p4cc.Transfer(a, d, 3_000, start_ns=50_000_000)], "dcqcn")
        assert list(table["source"]) == [a, b, a]
        assert list(table["size_bytes"]) == [20_000, 1, 3_000]
        assert (table["fct_ns"] > 0).all()
        assert (table["packets_sent"] - table["retransmitted"] == [20, 1, 3]).all()
        assert sum(cell["packets"] for cell in net.switch(topology.switches[0].name).counter("ingress_drops")) == 0
        for wrong, told in (
            ({"transfers": [(a, "x", 1)], "cc": "none"}, "no host 'x'"),
            ({"transfers": [(a, a, 1)], "cc": "none"}, "sends to itself"),
            ({"transfers": [], "cc": "none"}, "expected at least one"),
            ({"transfers": [(a, b, 0)], "cc": "none"}, "expected a size of at least a byte"),
            ({"transfers": [(a, b, 1)], "cc": "nine"}, "unknown protocol 'nine'"),
            ({"transfers": [(a, b, 1)], "cc": "none", "mtu": 9}, "unknown option 'mtu'"),
            ({"transfers": [(a, b, 1)], "cc": "none", "mtu_bytes": 0}, "mtu_bytes 0: expected 1 to"),
        ):
            with pytest.raises(p4cc.UserError, match=told):
                net.transfer(**wrong)
        with pytest.raises(p4cc.CheckError, match=r"0 of 1 transfers are done after 0\.5 s"):
            net.transfer([(a, b, 1)], "none", line_rate_bps=1_000, timeout_s=0.5)
    with pytest.raises(p4cc.UserError, match="the network is not running"):
        net.transfer([(a, b, 1)], "none")


def test_hosts_talk_and_switches_are_read_and_written() -> None:
    from p4cc.network import CommandError

    topology = p4cc.topology("dumbbell", pairs=2)
    there, back = topology.hosts[0], topology.hosts[-1]
    with alone(), p4cc.Network(topology, "ecn") as net:
        with net.popen(back.name, [sys.executable, "-c", SERVER], text=True) as server:
            assert server.stdout is not None
            server.stdout.readline()  # it listens
            assert f" {there.name}-eth0@" in net.run(there.name, ["ip", "-o", "link"])
            net.run(there.name, [sys.executable, "-c", CLIENT, str(back.address)])
            assert server.communicate(timeout=20)[0] == "5\n"
        for switch in topology.switches:
            assert sum(cell["packets"] for cell in net.switch(switch.name).counter("ingress_drops")) == 0
        with pytest.raises(subprocess.CalledProcessError):
            net.run(there.name, ["false"])
        with pytest.raises(CommandError, match=r"returned non-zero exit status 2: .*no-such-file"):
            net.run(there.name, ["ls", "no-such-file"])
        with pytest.raises(CommandError, match="no-such-command"):
            net.run(there.name, ["no-such-command"])
        with pytest.raises(p4cc.UserError, match="no node 'h9'"):
            net.run("h9", ["true"])
        with pytest.raises(p4cc.UserError, match="expected a switch"):
            net.switch(there.name)
    with pytest.raises(p4cc.UserError, match="the network is not running"):
        net.switch(topology.switches[0].name)


RECEIVER = """
import socket
s = socket.create_server(("", 5000))
print(flush=True)
for _ in range(2):
    with s.accept()[0] as connection:
        total = 0
        while data := connection.recv(65536):
            total += len(data)
    print(total, flush=True)
"""
SENDER = """
import socket, sys, time
began = time.monotonic()
for _ in range(2):
    with socket.create_connection((sys.argv[1], 5000), 60) as connection:
        connection.sendall(bytes(500_000))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
print(time.monotonic() - began)
"""


def test_links_have_the_topologys_rate() -> None:
    """2 x 500 KB over 10 Mb/s take 0.8 s on the wire on every machine."""
    topology = p4cc.topology("single-switch", hosts=2, link_rate_bps=10_000_000)
    there, back = topology.hosts
    receiver, sender = ([sys.executable, "-c", code] for code in (RECEIVER, SENDER))
    with (
        alone(),
        p4cc.Network(topology, "ecn") as net,
        net.popen(back.name, receiver, text=True) as server,
    ):
        assert server.stdout is not None
        server.stdout.readline()
        seconds = float(net.run(there.name, [*sender, str(back.address)]))
        assert server.communicate(timeout=60)[0] == "500000\n500000\n"
    wire_s = 2 * 500_000 * 8 / 10_000_000
    assert seconds > 0.95 * wire_s  # what a token bucket lets through at once is a third of a per cent
