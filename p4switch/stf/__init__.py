"""Packet tests in p4c's STF format: a `.stf` file beside the `.p4` program it tests.

    add ipv4 hdr.ip.dst:0x0a000000/8 forward(port:2)     table entry; names may be suffixes of the full ones
    packet 0 0102030405                                  hex, spaces ignored
    expect 2 01**030405 $                                `*` is any nibble; `$`: nothing may follow

Commands: packet, expect, no_packet, add (with or without priority: the highest wins), setdefault, remove all,
check_counter, wait, mirroring_add, mirroring_add_mc, mirroring_delete, mirroring_get, mc_mgrp_create, mc_node_create,
mc_node_update, mc_node_associate, counter_read, counter_write, register_read, register_write, register_reset,
meter_get_rates, meter_set_rates, meter_array_set_rates, pvs_add, pvs_clear, clock,
queue, random.

The packets expected on a port are compared, in order, with those that the switch sent there. Ports that the test does
not mention are not checked, unless it contains `no_packet`.
"""

from p4switch.stf.language import Command, StfError, parse
from p4switch.stf.many import Options, Result, find_tests, run_folder, run_test, run_tests

__all__ = ["Command", "Options", "Result", "StfError", "find_tests", "parse", "run_folder", "run_test", "run_tests"]
