"""User of p4runtime-shell, in that shell's own environment, which communicates with the test over pipes.

usage: shell_session.py ADDRESS P4INFO JSON
"""

import os
import sys
import traceback
from collections.abc import Callable

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException


def send_packets() -> None:
    """Ask the test for one packet that hits `exact_one`, `lpm_one` and `mixed`."""
    print("send", flush=True)
    assert sys.stdin.readline() == "sent\n"


def refused(code: str, call: Callable[[], object]) -> None:
    try:
        call()
    except P4RuntimeWriteException as error:
        said = str(error)
    else:
        said = "nothing"
    assert code in said, said


def exact() -> None:
    te = sh.TableEntry("EverythingIngress.exact_one")(action="counted_send")
    te.match["e"] = "0x1234"
    te.action["port"] = "2"
    te.counter_data.packet_count = 5
    te.insert()
    refused("ALREADY_EXISTS", te.insert)
    send_packets()
    found = list(sh.TableEntry("exact_one").read())
    assert len(found) == 1
    assert str(found[0].match) == str(te.match)
    counter = sh.DirectCounterEntry("hits")
    counter.table_entry = te
    (read,) = counter.read()
    assert read.packet_count == 6, read
    read.packet_count = 0
    read.modify()
    meter = sh.DirectMeterEntry("rates")
    meter.table_entry = te
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
    meter.modify()
    (read,) = meter.read()
    assert (read.cir, read.pburst) == (1, 4)
    te.action["port"] = "1"
    te.counter_data.packet_count = 9
    te.modify()
    te.delete()
    refused("NOT_FOUND", te.delete)
    assert not list(sh.TableEntry("exact_one").read())


def every_match_kind() -> None:
    te = sh.TableEntry("lpm_one")(action="send")
    te.match["l"] = "10.0.0.0/8"
    te.action["port"] = "2"
    te.insert()
    (read,) = sh.TableEntry("lpm_one").read()
    assert str(read.match) == str(te.match)
    te.delete()

    te = sh.TableEntry("mixed")(action="drop", priority=7)
    te.match["e"] = "1"
    te.match["l"] = "10.1.0.0/16"
    te.match["t"] = "0x1200&&&0xff00"
    te.match["r"] = "3..9"
    te.match["o"] = "0"
    te.insert()
    loose = sh.TableEntry("mixed")(action="drop", priority=6)
    loose.match["e"] = "1"
    loose.insert()
    found = list(sh.TableEntry("mixed").read())
    assert sorted(str(f.match) for f in found) == sorted([str(te.match), str(loose.match)])
    te.delete()
    loose.delete()
    assert not list(sh.TableEntry("mixed").read())
    refused("PERMISSION_DENIED", lambda: sh.TableEntry("mixed")(action="drop", is_default=True).modify())


def default_and_initial_entries() -> None:
    te = sh.TableEntry("lpm_one")(action="send", is_default=True)
    te.action["port"] = "3"
    te.modify()
    (read,) = sh.TableEntry("lpm_one")(is_default=True).read()
    assert read.action.action_name == "EverythingIngress.send"
    assert len(list(sh.TableEntry("constant").read())) == 2
    assert len(list(sh.TableEntry("preset").read())) == 2


def profiles() -> None:
    for i in (1, 2):
        member = sh.ActionProfileMember("selector")(member_id=i, action="send")
        member.action["port"] = str(i)
        member.insert()
    group = sh.ActionProfileGroup("selector")(group_id=1)
    group.add(1, weight=1)
    group.add(2, weight=2)
    group.insert()
    te = sh.TableEntry("selected")(group_id=1)
    te.match["o"] = "1"
    te.insert()
    (read,) = sh.ActionProfileGroup("selector")(group_id=1).read()
    assert len(read.members) == 2
    refused("FAILED_PRECONDITION", group.delete)
    te.delete()
    group.delete()
    for i in (1, 2):
        sh.ActionProfileMember("selector")(member_id=i).delete()
    te = sh.TableEntry("selected")
    te.match["o"] = "1"
    for port in ("1", "2"):
        action = sh.Action("send")
        action["port"] = port
        te.oneshot.add(action, weight=2)
    te.insert()
    (read,) = sh.TableEntry("selected").read()
    assert len(read.oneshot.actions) == 2
    te.delete()


def cells() -> None:
    counter = sh.CounterEntry("cells")
    counter.index = 1
    (read,) = counter.read()
    assert read.packet_count == 1, read
    read.packet_count = 100
    read.modify()
    assert [c.packet_count for c in sh.CounterEntry("cells").read()] == [0, 100, 0, 0]
    meter = sh.MeterEntry("limits")
    meter.index = 2
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 1, 2, 2
    meter.modify()
    (read,) = meter.read()
    assert read.pir == 2


def replication() -> None:
    group = sh.MulticastGroupEntry(1)
    group.add(1, 1).add(2, 2)
    group.insert()
    (read,) = sh.MulticastGroupEntry(1).read()
    assert len(read.replicas) == 2
    group.delete()
    session = sh.CloneSessionEntry(5)
    session.add(3, 1)
    session.packet_length_bytes = 64
    session.insert()
    (read,) = sh.CloneSessionEntry(5).read()
    assert read.packet_length_bytes == 64
    session.delete()


def packets() -> None:
    out = sh.PacketOut(payload=bytes(range(60)))
    out.metadata["egress_port"] = "2"
    out.metadata["hint"] = "0"
    out.send()
    assert sys.stdin.readline() == "received\n"


def main() -> None:
    address, p4info, config = sys.argv[1:]
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), config=sh.FwdPipeConfig(p4info, config))
    for step in (exact, every_match_kind, default_and_initial_entries, profiles, cells, replication):
        step()
    print("packet out", flush=True)
    packets()
    assert sh.APIVersion()
    sh.teardown()
    print("done", flush=True)


try:
    main()
except BaseException:
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)  # the shell's threads would keep the process alive
