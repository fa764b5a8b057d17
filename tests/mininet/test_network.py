"""A network for a script of one's own: Linux hosts that talk through P4 switches, and switches that are read."""

from __future__ import annotations

import subprocess
import sys

import pytest

import p4cc
from tests.mininet.networks import alone, needs_mininet

pytestmark = needs_mininet
SERVER = "import socket; s = socket.create_server(('', 5000)); print(flush=True); print(len(s.accept()[0].recv(99)))"
CLIENT = "import socket, sys; socket.create_connection((sys.argv[1], 5000), 20).sendall(b'hello')"


def test_hosts_talk_and_switches_are_read_and_written() -> None:
    topology = p4cc.topology("dumbbell", pairs=2)
    there, back = topology.hosts[0], topology.hosts[-1]
    with alone(), p4cc.Network(topology, "ecn") as net:
        with net.popen(back.name, [sys.executable, "-c", SERVER], text=True) as server:
            assert server.stdout is not None
            server.stdout.readline()  # it listens
            net.run(there.name, [sys.executable, "-c", CLIENT, str(back.address)])
            assert server.communicate(timeout=20)[0] == "5\n"
        for switch in topology.switches:
            assert sum(cell["packets"] for cell in net.switch(switch.name).counter("ingress_drops")) == 0
        with pytest.raises(subprocess.CalledProcessError):
            net.run(there.name, ["false"])
        with pytest.raises(p4cc.UserError, match="no node 'h9'"):
            net.run("h9", ["true"])
        with pytest.raises(p4cc.UserError, match="expected a switch"):
            net.switch(there.name)
    with pytest.raises(p4cc.UserError, match="not up"):
        net.switch(topology.switches[0].name)
