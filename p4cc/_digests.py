"""Digests of a switch that is only reached over P4Runtime."""

from __future__ import annotations

from collections.abc import Iterator

from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.messages import Message, p4runtime_pb2

_FIRST_S = 5.0  # time to wait for the first digest
_QUIET_S = 0.2  # time to wait after the last one


def subscribe(client: GrpcClient, p4info: Message) -> None:
    """Subscribe to all digests; each is sent at once."""
    for digest in p4info.digests:
        update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.INSERT)
        entry = update.entity.digest_entry
        entry.digest_id = digest.preamble.id
        entry.config.max_list_size = 1
        client.write([update])


def taken(client: GrpcClient, p4info: Message) -> Iterator[tuple[str, dict[str, int]]]:
    """Return name and fields of arriving digests until no more arrive, and acknowledge each."""
    known = {digest.preamble.id: digest for digest in p4info.digests}
    patience = _FIRST_S
    while (message := client.receive(patience)) is not None:
        patience = _QUIET_S
        if message.WhichOneof("update") != "digest":
            continue
        digest = known[message.digest.digest_id]
        for data in message.digest.data:
            yield digest.preamble.name, dict(_fields(digest.type_spec, p4info.type_info, data, ""))
        request = p4runtime_pb2.StreamMessageRequest()
        request.digest_ack.digest_id = message.digest.digest_id
        request.digest_ack.list_id = message.digest.list_id
        client.send(request)


def _fields(spec: Message, types: Message, data: Message, name: str) -> Iterator[tuple[str, int]]:
    kind = spec.WhichOneof("type_spec")
    if kind == "new_type" and types.new_types[spec.new_type.name].WhichOneof("representation") == "original_type":
        yield from _fields(types.new_types[spec.new_type.name].original_type, types, data, name)
    elif kind == "struct":
        members = types.structs[spec.struct.name].members
        for member, value in zip(members, data.struct.members, strict=True):
            inner = f"{name}.{member.name}" if name else member.name
            yield from _fields(member.type_spec, types, value, inner)
    elif kind == "tuple":
        for number, (member, value) in enumerate(zip(spec.tuple.members, data.tuple.members, strict=True)):
            yield from _fields(member, types, value, f"{name}.f{number}" if name else f"f{number}")
    elif data.WhichOneof("data") == "bool":
        yield name, int(data.bool)
    else:
        yield name, int.from_bytes(getattr(data, data.WhichOneof("data")), "big")
