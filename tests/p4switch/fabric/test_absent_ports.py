"""Packets to ports that do not exist: egress runs for them, as on a chip and in BMv2, and then they are dropped."""

from __future__ import annotations

from pathlib import Path

from p4switch.fabric import Fabric
from tests.p4switch.architectures import tofino
from tests.p4switch.fabric.stub import GBPS, Host, balance

EGRESS = "Register<bit<8>, bit<1>>(1) seen; apply { seen.write(0, 7); }"


def test_egress_runs_once_and_the_packet_is_dropped(tmp_path: Path) -> None:
    made = tofino.switch(tmp_path, "tna", INGRESS="apply { tm.ucast_egress_port = 77; }", EGRESS=EGRESS)
    net = Fabric()
    net.add_host(Host([(0, bytes([7, 1]) + bytes(98))]))
    net.connect(0, 0, net.add_switch(made), 1, rate_bps=100 * GBPS, delay_ns=100)
    net.run()
    assert balance(net)["drop_no_port"] == 1
    assert made.register_read("Out.seen", 0) == b"\7"
