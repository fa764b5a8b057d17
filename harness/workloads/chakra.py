"""Chakra execution traces (MLCommons): a file for each rank, with nodes that compute, send or receive.

Nodes may also take part in collectives. A file is a sequence of protobuf messages, each preceded by
its length: the trace's metadata, then the nodes. It may be compressed by gzip. The fields that are
read are declared below; all others are skipped.

A node waits for its data dependencies, or for its control dependencies if it has no others. A rank
has three units, each of which executes one node at a time. The host's processor computes nodes with
`is_cpu_op`, the accelerator computes all others, and the third unit executes loads and stores. A
collective of PyTorch on the processor counts as computing, because it only launches the
accelerator's collective, which is a node of its own.

All members of a group have the same collectives, in the order of their files. `comm_size` is the
number of bytes that a rank contributes: the whole vector that is reduced or sent to others, or the
rank's own part in an all-gather or a gather. PyTorch's traces list the ranks of each group in a
node `process_group:init`.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from harness.workloads.base import (
    MAX_SIZE_BYTES,
    MAX_TIME_NS,
    Setting,
    Traffic,
    WorkloadParameters,
    expect_flows,
    expect_hosts,
    register,
)
from harness.workloads.files import opened, read_text, whole
from harness.workloads.patterns import Algorithm, Collective, add, messages
from harness.workloads.schedule import Schedule, ScheduleTraffic
from p4switch.errors import UserError

_MAX_BYTES = 1 << 30
_BUFFER_BYTES = 1 << 20
_MOST_OF_VARINT = 10  # largest size of the length in front of a message
_METADATA, _LOAD, _STORE, _COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = 1, 2, 3, 4, 5, 6, 7  # types of nodes
_COLLECTIVES: Mapping[int, Collective] = {
    0: "all-reduce",
    1: "reduce",
    2: "all-gather",
    3: "gather",
    4: "scatter",
    5: "broadcast",
    6: "all-to-all",
    7: "reduce-scatter",
    8: "reduce-scatter",
    9: "all-reduce",  # a barrier, as an all-reduce of a byte
}
_BARRIER = 9
_OF_EACH = ("all-gather", "gather")  # collectives whose `comm_size` is a rank's part of the result
_GROUPS_OF_PYTORCH = "process_group:init"  # name of the node that lists the groups
_GZIP = b"\x1f\x8b"  # beginning of compressed files
_FIRST_TAG = 1 << 64  # first tag of collectives' messages; the tags of a trace are smaller

_Field = descriptor_pb2.FieldDescriptorProto
# (name, number, type) of the fields that are read; a type in a list is repeated.
_FIELDS: Mapping[str, tuple[tuple[str, int, Any], ...]] = {
    "Metadata": (("version", 1, _Field.TYPE_STRING),),
    "Inputs": (("values", 1, _Field.TYPE_STRING),),
    "Attribute": (
        ("name", 1, _Field.TYPE_STRING),
        ("double_val", 3, _Field.TYPE_DOUBLE),
        ("float_val", 5, _Field.TYPE_FLOAT),
        ("int32_val", 7, _Field.TYPE_INT32),
        ("int64_val", 9, _Field.TYPE_INT64),
        ("uint32_val", 11, _Field.TYPE_UINT32),
        ("uint64_val", 13, _Field.TYPE_UINT64),
        ("sint32_val", 15, _Field.TYPE_SINT32),
        ("sint64_val", 17, _Field.TYPE_SINT64),
        ("bool_val", 27, _Field.TYPE_BOOL),
        ("string_val", 29, _Field.TYPE_STRING),
    ),
    "Node": (
        ("id", 1, _Field.TYPE_UINT64),
        ("name", 2, _Field.TYPE_STRING),
        ("type", 3, _Field.TYPE_INT32),
        ("ctrl_deps", 4, [_Field.TYPE_UINT64]),
        ("data_deps", 5, [_Field.TYPE_UINT64]),
        ("duration_micros", 7, _Field.TYPE_UINT64),
        ("inputs", 8, "Inputs"),
        ("attr", 10, ["Attribute"]),
    ),
}


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    """Return the declarations above for protobuf."""
    file = descriptor_pb2.FileDescriptorProto(name="p4cc/chakra.proto", package="p4cc.chakra", syntax="proto3")
    for message, fields in _FIELDS.items():
        descriptor = file.message_type.add(name=message)
        values = [field for field, _, _ in fields if field.endswith("_val")]
        if values:
            descriptor.oneof_decl.add(name="value")
        for field, number, kind in fields:
            several = isinstance(kind, list)
            one = descriptor.field.add(name=field, number=number)
            one.label = _Field.LABEL_REPEATED if several else _Field.LABEL_OPTIONAL
            of = kind[0] if several else kind
            if isinstance(of, str):
                one.type, one.type_name = _Field.TYPE_MESSAGE, f".p4cc.chakra.{of}"
            else:
                one.type = of
            if field in values:
                one.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


@cache
def message_class(name: str) -> type[Message]:
    """Return the class of `Metadata`, `Attribute` or `Node`."""
    message_type: type[Message] = message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"p4cc.chakra.{name}"))
    return message_type


@register("chakra")
class ChakraTrace(WorkloadParameters):
    """Trace whose rank r is host r.

    The step time is that of the whole trace.
    """

    file: str  # relative to the scenario; `{rank}` stands for the number of each rank, from 0
    # JSON file with the ranks of each process group by name; none: the groups of the trace, or all
    # ranks are in every group.
    process_groups: str | None = None
    algorithm: Algorithm = "ring"  # algorithm of collectives

    def generate(self, setting: Setting) -> Traffic:
        if "{rank}" not in self.file:
            raise UserError(f"workload.file: {self.file!r}; expected a name with {{rank}} in it")
        files = list(_files(setting.folder, self.file))
        if len(files) < 2:
            raise UserError(f"workload.file: no files for ranks 0 and 1 of {str(setting.folder / self.file)!r}")
        expect_hosts("file", len(files), setting)
        groups = _groups(setting.folder / self.process_groups) if self.process_groups is not None else {}
        return ScheduleTraffic(_Reader(files, groups, self.algorithm).schedule, range(setting.hosts))


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    rank = 0
    while (path := folder / pattern.replace("{rank}", str(rank))).is_file():
        yield path
        rank += 1


def _groups(path: Path) -> dict[str, list[int]]:
    try:
        groups = json.loads(read_text(path))
    # ValueError is raised for invalid JSON and for a number of 5,000 digits.
    except (UserError, ValueError, RecursionError) as error:
        raise UserError(f"workload.process_groups: {path}: {error}") from None
    if not isinstance(groups, dict) or not all(
        isinstance(ranks, list) and ranks and all(type(rank) is int for rank in ranks) for ranks in groups.values()
    ):
        raise UserError(f'workload.process_groups: {path}: expected ranks by name of group, as {{"0": [0, 1]}}')
    return groups


def nodes(path: Path) -> Iterator[Any]:
    """Yield the nodes of a trace while it is read.

    Raises UserError for a file that is no trace.
    """
    try:
        with opened(path) as file, _unpacked(file) as stream:
            first, read_bytes = True, 0
            while (length := _varint(stream)) is not None:
                read_bytes += length
                if read_bytes > _MAX_BYTES:
                    raise UserError(f"{path}: expected at most {_MAX_BYTES} bytes, unpacked")
                data = stream.read(length)
                message = message_class("Metadata" if first else "Node")()
                if len(data) < length:
                    raise DecodeError("a message is cut off")
                message.ParseFromString(data)
                if not first:
                    yield message
                first = False
            if first:
                raise DecodeError("it is empty")
    except EOFError:
        raise UserError(f"workload.file: {path}: not a Chakra trace: it is cut off") from None
    except (DecodeError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"workload.file: {path}: not a Chakra trace: {error}") from None
    except UserError as error:
        raise UserError(f"workload.file: {error}") from None


@contextmanager
def _unpacked(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield the contents of a trace in parts, decompressed if necessary, member by member."""
    start = file.read(len(_GZIP))
    file.seek(0)
    if start != _GZIP:
        yield file
        return
    with gzip.GzipFile(fileobj=file) as packed, io.BufferedReader(cast(io.RawIOBase, packed), _BUFFER_BYTES) as stream:
        yield cast(BinaryIO, stream)


def _varint(stream: BinaryIO) -> int | None:
    """Return a length; None at the end of the file.

    Raises DecodeError if the file ends within it.
    """
    value = 0
    for place in range(_MOST_OF_VARINT):
        if not (byte := stream.read(1)):
            break
        value |= (byte[0] & 0x7F) << 7 * place
        if byte[0] < 0x80:
            if value > _MAX_BYTES:
                raise DecodeError("a message is cut off")
            return value
    else:
        raise DecodeError("a message is cut off")
    if place:
        raise DecodeError("a message is cut off")
    return None


def _listed(where: str, text: str, ranks: int) -> dict[str, list[int]]:
    """Return the process groups in a PyTorch node: a Python list with JSON text in it.

    [] stands for all ranks.
    """
    try:
        listed = [group for part in ast.literal_eval(text) for group in json.loads(part)]
        groups = {str(group["pg_name"]): group["ranks"] for group in listed}
        if not all(isinstance(each, list) and all(type(one) is int for one in each) for each in groups.values()):
            raise ValueError
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError):
        raise UserError(f"{where}: its process groups are {text!r:.60}; expected names and ranks") from None
    return {name: each or list(range(ranks)) for name, each in groups.items()}


_Wait = tuple[int, tuple[int, ...], tuple[int, ...]]  # a node, and its data and control dependencies
# By name and ranks of a group: begin, end and description of each collective of each member.
_Collectives = dict[tuple[str, tuple[int, ...]], list[list[tuple[int, int, Any]]]]


class _Reader:
    def __init__(self, files: list[Path], groups: Mapping[str, list[int]], algorithm: Algorithm) -> None:
        self.schedule = Schedule(len(files))
        self._groups = [dict(groups) for _ in files]  # groups by rank
        self._given = bool(groups)
        self._begins: list[dict[int, int]] = [{} for _ in files]  # first operation of a node, by rank and id
        self._ends: list[dict[int, int]] = [{} for _ in files]
        collectives: _Collectives = {}
        for rank, path in enumerate(files):
            waits: list[_Wait] = []
            for node in nodes(path):
                where = f"workload.file: {path}: node {node.id}"
                if node.id in self._begins[rank]:
                    raise UserError(f"{where}: given twice")
                self._add(where, rank, node, collectives)
                if node.data_deps or node.ctrl_deps:
                    waits.append((node.id, tuple(node.data_deps), tuple(node.ctrl_deps)))
            self._connect(path, rank, waits)
        sends = sum(one.kind == "send" for one in self.schedule.operations)
        calls = Counter(
            (each[0][2][0], len(group))
            for (_, group), members in collectives.items()
            for each in zip(*members, strict=False)
        )
        expect_flows("file", sends + sum(times * messages(what, algorithm, n) for (what, n), times in calls.items()))
        tags = count(_FIRST_TAG)
        for (_, group), members in collectives.items():
            self._together(group, members, algorithm, tags)
        self.schedule.check(f"workload.file: {files[0]}")

    def _add(self, where: str, rank: int, node: Any, collectives: _Collectives) -> None:
        attributes = {one.name: getattr(one, one.WhichOneof("value")) for one in node.attr if one.WhichOneof("value")}
        schedule, time_ns = self.schedule, node.duration_micros * 1000
        if time_ns >= MAX_TIME_NS:
            raise UserError(
                f"{where}: duration_micros {node.duration_micros}; expected less than {MAX_TIME_NS // 1000}"
            )
        on_processor = bool(attributes.get("is_cpu_op"))
        if _GROUPS_OF_PYTORCH in node.name and node.inputs.values and not self._given:
            self._groups[rank].update(_listed(where, node.inputs.values, schedule.ranks))
        if node.type == _COMPUTE or (on_processor and node.type in (_SEND, _RECEIVE, _COLLECTIVE)):
            operation = schedule.calc(rank, time_ns, processor=0 if on_processor else 1)
        elif node.type == _SEND:
            operation = schedule.send(
                rank,
                _number(where, attributes, "comm_dst"),
                _number(where, attributes, "comm_size"),
                tag=_tag(where, attributes),
            )
        elif node.type == _RECEIVE:
            operation = schedule.recv(rank, _number(where, attributes, "comm_src"), tag=_tag(where, attributes))
        elif node.type == _COLLECTIVE:
            kind = _number(where, attributes, "comm_type")
            if kind not in _COLLECTIVES:
                raise UserError(f"{where}: collective {kind}; expected one of {', '.join(map(str, _COLLECTIVES))}")
            size_bytes = 1 if kind == _BARRIER else _number(where, attributes, "comm_size")
            name, group = self._group(where, rank, attributes)
            if _COLLECTIVES[kind] in _OF_EACH:
                size_bytes *= len(group)
            operation, end = schedule.calc(rank, 0), schedule.calc(rank, 0)
            members = collectives.setdefault((name, group), [[] for _ in group])
            members[group.index(rank)].append((operation, end, (_COLLECTIVES[kind], size_bytes)))
            self._ends[rank][node.id] = end
        elif node.type in (_LOAD, _STORE):
            operation = schedule.calc(rank, time_ns, processor=2)
        elif node.type == _METADATA:
            operation = schedule.calc(rank, 0)
        else:
            raise UserError(f"{where}: type {node.type}; expected 1 to {_COLLECTIVE}")
        self._begins[rank][node.id] = operation
        self._ends[rank].setdefault(node.id, operation)

    def _group(self, where: str, rank: int, attributes: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
        """Return name and ranks of a collective's group.

        All ranks are in it if it has no name or its ranks are unknown.
        """
        name = str(attributes.get("pg_name", attributes.get("comm_group", "")))
        known = self._groups[rank]
        if not name or not known:
            return name, tuple(range(self.schedule.ranks))
        ranks = known.get(name)
        if ranks is None:
            raise UserError(f"{where}: group {name!r:.80}; expected one of {', '.join(known)}")
        if rank not in ranks or len(set(ranks)) < len(ranks) or not all(0 <= r < self.schedule.ranks for r in ranks):
            raise UserError(f"{where}: group {name!r:.80}; expected {rank} and other ranks of the trace, once each")
        return name, tuple(ranks)

    def _connect(self, path: Path, rank: int, waits: Iterable[_Wait]) -> None:
        for node, data_deps, ctrl_deps in waits:
            # In PyTorch's traces control dependencies are callers. Not all are written, and some
            # are the node itself.
            callers = () if data_deps else [one for one in ctrl_deps if one != node and one in self._ends[rank]]
            for other in dict.fromkeys((*callers, *data_deps)):
                if other not in self._ends[rank]:
                    raise UserError(f"workload.file: {path}: node {node} waits for node {other}, which does not exist")
                self.schedule.operations[self._begins[rank][node]].requires.append(self._ends[rank][other])

    def _together(
        self,
        group: tuple[int, ...],
        members: list[list[tuple[int, int, Any]]],
        algorithm: Algorithm,
        tags: Iterator[int],
    ) -> None:
        """Add the collectives of one group: the n-th of each member are one, with a tag of its own."""
        for number, each in enumerate(zip(*members, strict=False)):
            if len({what for _, _, what in each}) > 1:
                kinds = "; ".join(
                    f"rank {rank} {what[0]} of {what[1]}" for rank, (_, _, what) in zip(group, each, strict=True)
                )
                raise UserError(f"workload.file: collective {number} of a group is not the same for all: {kinds}")
            collective, size_bytes = each[0][2]
            after = {rank: [begin] for rank, (begin, _, _) in zip(group, each, strict=True)}
            ends = add(self.schedule, collective, algorithm, group, size_bytes, after, next(tags))
            for rank, (_, end, _) in zip(group, each, strict=True):
                self.schedule.operations[end].requires.extend(ends[rank])
        if len({len(one) for one in members}) > 1:
            counts = ", ".join(f"{len(one)} of rank {rank}" for rank, one in zip(group, members, strict=True))
            raise UserError(f"workload.file: the members of a group have different numbers of collectives: {counts}")


def _number(where: str, attributes: Mapping[str, Any], name: str, allowed: range = range(MAX_SIZE_BYTES)) -> int:
    value = attributes.get(name)
    try:
        if isinstance(value, str):  # some tracers write text
            number = whole(where, value, most=allowed.stop, least=allowed.start)
        else:
            number = int(value)  # type: ignore[arg-type]  # or nothing
    except (TypeError, ValueError, OverflowError, UserError):
        number = allowed.stop
    if number not in allowed:
        raise UserError(f"{where}: {name} {value!r:.40}; expected a number from {allowed.start} to {allowed.stop - 1}")
    return number


def _tag(where: str, attributes: Mapping[str, Any]) -> int:
    return _number(where, {"comm_tag": 0, **attributes}, "comm_tag", range(-(1 << 63), _FIRST_TAG))
