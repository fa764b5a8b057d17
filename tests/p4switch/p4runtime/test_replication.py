"""Multicast groups and clone sessions."""

from __future__ import annotations

from typing import Any

from p4switch.p4runtime.messages import Message, p4runtime_pb2
from tests.p4switch.p4runtime.conftest import Bench
from tests.p4switch.p4runtime.controller import DELETE, INSERT, MODIFY, Controller
from tests.p4switch.p4runtime.fake import FakeSwitch


def group(ident: int, *replicas: tuple[Any, ...], metadata: bytes = b"") -> Message:
    """Return a group of replicas (port, instance, *backups), where a backup is (port, instance)."""
    message = p4runtime_pb2.MulticastGroupEntry(multicast_group_id=ident, metadata=metadata)
    add(message, replicas)
    return message


def session(ident: int, *replicas: tuple[Any, ...], **more: int) -> Message:
    message = p4runtime_pb2.CloneSessionEntry(session_id=ident, **more)
    add(message, replicas)
    return message


def add(message: Message, replicas: tuple[tuple[Any, ...], ...]) -> None:
    for port, instance, *backups in replicas:
        replica = message.replicas.add(port=port, instance=instance)
        for backup_port, backup_instance in backups:
            replica.backup_replicas.add(port=backup_port, instance=backup_instance)


def content(messages: list[Message]) -> list[Message]:
    return [getattr(m, m.WhichOneof("type")) for m in messages]


def test_multicast_groups(controller: Controller, switch: FakeSwitch) -> None:
    one = group(1, (b"\x05", 1), (b"\x05", 2), (b"\x01\xff", 0), metadata=b"x")
    controller.insert(one, group(2))
    assert switch.multicast == {1: [(5, 1), (5, 2), (511, 0)], 2: []}
    assert content(controller.read(group(1))) == [one]
    assert content(controller.read(group(0))) == [one, group(2)]
    controller.modify(group(1, (b"\x07", 0)))
    assert switch.multicast[1] == [(7, 0)]
    controller.delete(group(1))
    assert switch.multicast[1] is None
    assert content(controller.read(group(0))) == [group(2)]
    assert controller.read(group(9)) == []


def test_deprecated_port_numbers(controller: Controller, switch: FakeSwitch) -> None:
    message = p4runtime_pb2.MulticastGroupEntry(multicast_group_id=1)
    message.replicas.add(egress_port=300, instance=1)
    controller.insert(message)
    assert switch.multicast[1] == [(300, 1)]
    assert content(controller.read(group(1))) == [message]


def test_clone_sessions(controller: Controller, switch: FakeSwitch) -> None:
    one = session(100, (b"\x05", 1), packet_length_bytes=128)
    controller.insert(one)
    assert switch.sessions == {100: ([(5, 1)], 128)}
    assert content(controller.read(session(0))) == [one]
    controller.modify(session(100, (b"\x06", 1)))
    assert switch.sessions == {100: ([(6, 1)], 0)}
    controller.delete(session(100))
    assert switch.sessions == {100: None}


def test_errors(controller: Controller, switch: FakeSwitch) -> None:
    for make in (group, session):
        for kind in (INSERT, MODIFY, DELETE):
            controller.refused("INVALID_ARGUMENT", kind, make(0))
        controller.refused("INVALID_ARGUMENT", INSERT, make(1 << 16))
        controller.refused("NOT_FOUND", MODIFY, make(1))
        controller.refused("NOT_FOUND", DELETE, make(1))
        controller.refused("INVALID_ARGUMENT", INSERT, make(1, (b"\x05", 1), (b"\x00\x05", 1)))
        controller.refused("INVALID_ARGUMENT", INSERT, make(1, (b"\x05", 1 << 16)))
        controller.refused("INVALID_ARGUMENT", INSERT, make(1, (b"\x02\x00", 1)))
        controller.refused("INVALID_ARGUMENT", INSERT, make(1, (b"", 1)))
        controller.refused("INVALID_ARGUMENT", INSERT, make(1, (b"\x05", 1, (b"\x05", 2))))
        controller.insert(make(1))
        controller.refused("ALREADY_EXISTS", INSERT, make(1))
    controller.refused("UNIMPLEMENTED", MODIFY, session(1, class_of_service=2))
    controller.refused("INVALID_ARGUMENT", MODIFY, session(1, packet_length_bytes=-1))
    no_port = p4runtime_pb2.MulticastGroupEntry(multicast_group_id=2)
    no_port.replicas.add(instance=1)
    controller.refused("INVALID_ARGUMENT", INSERT, no_port)
    controller.refused("INVALID_ARGUMENT", INSERT, p4runtime_pb2.PacketReplicationEngineEntry())
    controller.read_refused("INVALID_ARGUMENT", p4runtime_pb2.PacketReplicationEngineEntry())
    assert switch.multicast == {1: []}


def test_backup_replicas(controller: Controller, bench: Bench, switch: FakeSwitch) -> None:
    one = group(1, (b"\x05", 1, (b"\x06", 2), (b"\x07", 3)), (b"\x08", 4))
    controller.insert(one)
    assert switch.multicast[1] == [(5, 1), (8, 4)]
    bench.device.set_port_up(5, False)
    assert switch.multicast[1] == [(6, 2), (8, 4)]
    bench.device.set_port_up(6, False)
    assert switch.multicast[1] == [(7, 3), (8, 4)]
    bench.device.set_port_up(7, False)
    assert switch.multicast[1] == [(5, 1), (8, 4)]
    bench.device.set_port_up(6, True)
    assert switch.multicast[1] == [(6, 2), (8, 4)]
    assert content(controller.read(group(1))) == [one]
