"""The table of ports, and the properties of the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from p4switch.bfrt.messages import bfruntime_pb2
from p4switch.p4runtime.messages import code_pb2
from p4switch.p4runtime.ports import PortCounts
from tests.p4switch.bfrt.conftest import Bench, Client
from tests.p4switch.bfrt.test_server import refused

PORT = "$PORT"
STATISTICS = "$PORT_STAT"
DEVICE = "tf1.dev.device_configuration"


def port(client: Client, number: int, **data: Any) -> Any:
    return client.entry(PORT, {"$DEV_PORT": number}, **data)


def added(client: Client, number: int, **data: Any) -> Any:
    return port(client, number, _SPEED="BF_SPEED_100G", _FEC="BF_FEC_TYP_NONE", **data)


def test_a_port_is_told_back_as_it_was_written(client: Client) -> None:
    assert client.read(client.entry(PORT)) == []
    client.write("INSERT", added(client, 5, _PORT_ENABLE=True))
    (found,) = client.read(port(client, 5))
    assert found["$DEV_PORT"] == (5,)
    assert (found["$SPEED"], found["$PORT_ENABLE"], found["$PORT_UP"]) == ("BF_SPEED_100G", True, True)
    client.write("MODIFY", port(client, 5, _PORT_ENABLE=False))
    (found,) = client.read(port(client, 5))
    assert (found["$SPEED"], found["$PORT_ENABLE"], found["$PORT_UP"]) == ("BF_SPEED_100G", False, False)
    client.write("DELETE", port(client, 6), port(client, 5))  # deleting a missing port is not an error
    assert client.read(client.entry(PORT)) == []


@pytest.mark.parametrize(
    ("data", "code", "told"),
    [
        ({"_SPEED": "BF_SPEED_10G"}, code_pb2.INVALID_ARGUMENT, "$FEC is missing"),
        ({"_SPEED": "BF_SPEED_9G", "_FEC": "BF_FEC_TYP_NONE"}, code_pb2.INVALID_ARGUMENT, "expected one of"),
        (
            {"_SPEED": "BF_SPEED_10G", "_FEC": "BF_FEC_TYP_NONE", "_LOOPBACK_MODE": "BF_LPBK_MAC_NEAR"},
            code_pb2.UNIMPLEMENTED,
            "$LOOPBACK_MODE",
        ),
    ],
)
def test_wrong_ports_are_refused(client: Client, data: dict[str, Any], code: int, told: str) -> None:
    ((found, message),) = refused(client.write, "INSERT", port(client, 5, **data))
    assert found == code
    assert told in message
    assert client.read(client.entry(PORT)) == []


def test_a_port_is_added_once(client: Client) -> None:
    errors = refused(client.write, "INSERT", added(client, 5), added(client, 5), added(client, 512))
    assert [code for code, _ in errors] == [0, code_pb2.ALREADY_EXISTS, code_pb2.INVALID_ARGUMENT]
    ((code, _),) = refused(client.write, "MODIFY", added(client, 6))
    assert code == code_pb2.NOT_FOUND


def test_counts_of_ports_begin_anew_when_they_are_deleted(bench: Bench, client: Client) -> None:
    def counts() -> list[tuple[Any, ...]]:
        names = ("$DEV_PORT", "$FramesReceivedOK", "$OctetsTransmittedTotal", "$FramesReceivedwithFCSError")
        return [tuple(found[name] for name in names) for found in client.read(client.entry(STATISTICS))]

    assert counts() == []
    bench.counts = {9: PortCounts(3, 300, 0, 5, 520), 5: PortCounts(1, 68)}
    assert counts() == [((5,), 1, 0, 0), ((9,), 3, 520, 0)]
    client.write("DELETE", client.entry(STATISTICS, {"$DEV_PORT": 9}))
    bench.counts[9] = PortCounts(7, 700, 0, 6, 600)
    assert counts() == [((5,), 1, 0, 0), ((9,), 4, 80, 0)]
    client.write("DELETE", client.entry(STATISTICS))
    assert counts() == [((5,), 0, 0, 0), ((9,), 0, 0, 0)]
    ((code, _),) = refused(client.write, "DELETE", client.entry(STATISTICS, {"$DEV_PORT": 6}))
    assert code == code_pb2.NOT_FOUND
    ((code, _),) = refused(client.write, "MODIFY", client.entry(STATISTICS, {"$DEV_PORT": 9}))
    assert code == code_pb2.UNIMPLEMENTED


def watch(client: Client) -> Any:
    request = bfruntime_pb2.WriteRequest(client_id=1)
    request.target.pipe_id = 0xFFFF
    attribute = request.updates.add(type="INSERT").entity.table_attribute
    attribute.table_id = client.tables[PORT]["id"]
    attribute.port_status_notify.enable = True
    return request


def test_a_client_is_told_of_ports_that_go_down(bench: Bench, client: Client) -> None:
    client.write("INSERT", added(client, 5, _PORT_ENABLE=True), added(client, 6))
    stream: Iterator[Any] = client.subscribe(port_status_change=True)
    next(stream)
    client.call("Write", watch(client), bfruntime_pb2.WriteResponse)
    for up in (False, True):
        bench.device.set_port_up(5, up)
        bench.server.poll()
        told = next(stream).port_status_change_notification
        assert told.port_up == up
        assert told.table_entry.key.fields[0].exact.value == b"\0\0\0\5"
    stream.close()  # type: ignore[attr-defined]


def test_who_has_not_subscribed_is_not_told_of_ports(client: Client) -> None:
    ((code, message),) = refused(client.call, "Write", watch(client), bfruntime_pb2.WriteResponse)
    assert code == code_pb2.INVALID_ARGUMENT
    assert "client 1 has not subscribed" in message


def test_properties_of_the_device_are_read_only_but_for_one(client: Client) -> None:
    def value() -> Any:
        (found,) = client.read(client.entry(DEVICE, default=True))
        return found["selector_member_order"]

    assert value() is False
    client.write("MODIFY", client.entry(DEVICE, default=True, selector_member_order=True))
    assert value() is True
    client.write("DELETE", client.entry(DEVICE, default=True))
    assert value() is False
    ((code, message),) = refused(client.write, "MODIFY", client.entry(DEVICE, default=True, num_pipes=4))
    assert code == code_pb2.INVALID_ARGUMENT
    assert "num_pipes is read-only" in message
