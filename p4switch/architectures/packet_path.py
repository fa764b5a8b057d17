"""Path of packets through the blocks of a package: C of the architecture around code generated from a program.

A program consists of parsers, controls and deparsers, which have their names in BMv2 JSON. The engine generates these
functions for a block NAME:

    run_NAME(sw, p)         runs a parser on the bytes of p's frame, a control, or the statements of a deparser
    run_NAME(sw, p, front)  runs a parser that reads bytes in front of the frame (`in_front`); they are at `front`
    NAME_front(p, spare)    returns where to write these bytes first: in p itself if possible, or else in `spare`
    NAME_front_read         number of these NAME_front_bytes bytes that the parser reads; only these may be written
    NAME_bytes(p)           returns the length of the headers that deparser NAME would emit now
    NAME_write(p, to)       writes these headers as bytes
    NAME_tell(sw, p)        reports these headers to a trace

For each field of `intrinsic` it generates the functions set_NAME(p, value) and get_NAME(p), and has_NAME, which is 0 if
the program has no such field. The architecture's own C, in `folder`, calls these functions. It has two or three files:

- `state.h` is included before the packet struct. It defines P4_STATE, further members of the struct.
- `externs.h`, if there is one, is included after the struct. It has the functions that the C of externs calls.
- `packet_path.h` is included last. It defines:

    static void receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
    static p4_frame *transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
    static void free_packet(p4_switch *sw, p4_packet *packet)
    static int deflect(p4_switch *sw, p4_packet *packet), if the path `deflects` packets that find a queue full
    static void timer(p4_switch *sw, p4_tick now) and static void state_changed(p4_switch *sw), if the
        path `has_timers`
    static void queue_changed(p4_switch *sw, const p4_packet *packet, uint32_t queue, uint32_t cells, p4_tick now), if
    HAS_WATCHER is defined, because the program has the control `watcher`

    static void drop(p4_switch *sw, phv *p, uint32_t port, p4_drop_reason reason)
    static void enqueue(p4_switch *sw, phv *p, uint32_t port)

`engine/c/packets.h` has the functions that all architectures share: packets and their copies, frames, replication and
drops.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from p4switch.architectures.extern import Extern, ExternType
from p4switch.registry import Registry

if TYPE_CHECKING:
    from p4switch import ir


@dataclass(frozen=True)
class Intrinsic:
    """Metadata field that the packet path reads or writes.

    `name` is `instance.field` as in BMv2 JSON, or one of its `field_aliases`. A `required` field has to exist; other
    fields read as 0 if the program does not have them. A field that `saturates` stores its largest value in place of
    larger ones.
    """

    name: str
    required: bool = False
    saturates: bool = False


@dataclass(frozen=True)
class State:
    """State of a switch's packet path: `size` cells of one kind, which the control plane accesses by `name`."""

    name: str
    kind: type[ExternType]
    size: int


@dataclass(frozen=True)
class PacketPath:
    """Path of packets through a package.

    `controls` and their properties are in the order of the package. The fields in `destinations` decide where a packet
    goes, and a trace reports which statement wrote them. Port numbers are as wide as the program's field `port`
    (`instance.field`), or have the default width if the program has no such field.

    `watcher` is the control that runs when a queue has changed; a program may lack it. `watched` is the name and the
    length in bytes of the header that it reads. C writes the bytes of that header by set_watched(p, bytes).

    If the path `keeps_fields`, a header that becomes valid has the values that were assigned to its fields before.
    Otherwise its fields are 0.

    `in_front` maps each parser that reads bytes in front of a frame to the number of these bytes.

    The architecture drops a packet by sending it to `drop_port`; no port has a larger number. A path that is `named`
    is chosen only for JSON that names its package. C code refers to `constants` by their names, and to the cells of
    `states` by NAME_cells(sw).
    """

    folder: Path
    parsers: tuple[str, ...]
    controls: tuple[str, ...]
    deparsers: tuple[str, ...]
    intrinsic: Mapping[str, Intrinsic]
    externs: tuple[Registry[type[Extern]], ...]
    drop_port: int
    destinations: tuple[str, ...] = ()
    port: str = ""
    named: bool = False
    deflects: bool = False
    has_timers: bool = False
    keeps_fields: bool = False
    watcher: str = ""
    watched: tuple[str, int] = ("", 0)
    in_front: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, State] = field(default_factory=dict)

    @property
    def headers(self) -> tuple[Path, ...]:
        """C files that the generated code of a program depends on."""
        return tuple(sorted(self.folder.glob("*.h")))

    @property
    def has_externs(self) -> bool:
        return (self.folder / "externs.h").exists()

    def object_type(self, name: str) -> type[ExternType] | None:
        """Return the extern type of that name if its objects have state in the engine, or None."""
        for registry in self.externs:
            extern = registry.get(name)
            if extern is not None and issubclass(extern, ExternType) and extern.cell:
                return extern
        return None

    @property
    def operations(self) -> dict[str, type[ir.ExternOperation]]:
        """Extern operations by the names of the primitives in BMv2 JSON that stand for them."""
        kinds = [kind for registry in self.externs for kind in registry.all().values()]
        return {operation.primitive: operation for kind in kinds for operation in kind.operations}

    def known(self, blocks: Collection[str]) -> int:
        """Return how many of the names `blocks` are blocks of the package."""
        return len({*blocks} & {*self.parsers, *self.controls, *self.deparsers})


PACKET_PATHS: Registry[PacketPath] = Registry(
    "packet path", group="p4cc.packet_paths", package="p4switch.architectures", base=PacketPath
)
"""Packet paths by the name of the package that programs instantiate."""


def path_of(program: ir.Program) -> PacketPath:
    """Return the packet path of a lowered program. Raises UserError for an unknown package."""
    parts = program.parsers, program.pipelines, program.deparsers
    return packet_path(program.package, [part.name for kind in parts for part in kind])


def packet_path(package: str | None, blocks: Collection[str]) -> PacketPath:
    """Return the packet path of a program in BMv2 JSON.

    If the JSON names a package, the result is the path of that package. JSON of p4c names none; then
    the result is the path of the package that has the program's blocks.

    Raises UserError for an unknown package.
    """
    if package is not None:
        return PACKET_PATHS.find(package)
    candidates = [path for path in PACKET_PATHS.all().values() if not path.named]
    return max(candidates, key=lambda path: path.known(blocks))
