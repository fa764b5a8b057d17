"""The package `Switch` of T2NA: a pipeline that may have a ghost thread."""

from __future__ import annotations

from p4switch.architectures.package import Site
from p4switch.architectures.t2na import PACKAGES
from p4switch.architectures.tna.package import TnaSwitch


@PACKAGES.register("Switch")
class T2naSwitch(TnaSwitch):
    include = "t2na.p4"
    path = "t2na.Switch"
    sites = (*TnaSwitch.sites, Site("ghost", aside=True))
    port_metadata_bits = 192
    resubmit_bits = 128
    egress_front_bytes = 28
    queue_time_bits = 32
    recirculation_ports = range(6, 8)
    mirrors_incoming = True
