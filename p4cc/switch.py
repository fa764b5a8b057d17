"""One P4 program: compiled, and run on single packets, without rates, delays or queues."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple, SupportsBytes

import p4cc._hosts  # noqa: F401  # isort: split
from harness.control import controller
from harness.control.programs.entries import Entry
from harness.errors import CheckError
from host_agents import registry
from host_agents.errors import HostError
from p4cc.control import Control, compiled
from p4switch import extensions
from p4switch.compiler import Compiled as Program
from p4switch.compiler import compile_program
from p4switch.engine import build, load
from p4switch.errors import UserError
from p4switch.p4runtime import Device
from p4switch.p4runtime.client import LocalClient
from wireformats import opcodes
from wireformats.p4 import include_path

__all__ = ["Output", "Program", "Switch", "UserError", "compile"]


class Output(NamedTuple):
    """A frame that left the switch."""

    port: int
    frame: bytes


def compile(
    file: str | PathLike[str],
    *,
    cc: Sequence[str | PathLike[str]] = (),
    include: Sequence[str | Path] = (),
    define: Mapping[str, str] | None = None,
) -> Program:
    """Compiles a P4-16 program for v1model: `.json` is the BMv2 JSON, `.p4info` the P4Info; `.write` makes files.

    It may include what p4cc's own programs do (`include/forwarding.p4`, ...), and the packets of protocols `cc`, names
    or files of one's own, as `include/packets/NAME.p4`.

    Raises UserError: for errors in the program, with all of them.
    """
    try:
        known = [opcodes([extensions.named(registry.KINDS["cc"], str(name), Path.cwd())]) for name in cc]
    except HostError as error:
        raise UserError(str(error)) from None
    return compile_program(Path(file), [*include, *include_path(*known)], define)


class Switch(Control):
    """A switch that runs a program, to send packets through. Its clock is what each packet brings.

    `program` is a P4 file, what `compile` returned, or the name of a program of p4cc's (`"ecn"`). Entries are those of
    `p4cc.programs`; names are those of the P4 source. Raises UserError for entries that do not fit the program.
    """

    def __init__(
        self,
        program: str | PathLike[str] | Program,
        entries: Iterable[Entry] = (),
        *,
        device_id: int = 1,
        seed: int = 1,
        tick_ns: int = 1,
    ) -> None:
        made = compiled(program)
        self._switch = load().Switch(str(build(made.json)), device_id=device_id, seed=seed, tick_ns=tick_ns)
        super().__init__(
            LocalClient(Device(lambda _: self._switch, device_id)),
            controller.Program(made.p4info, json.dumps(made.json).encode()),
        )
        controller.program_switch(self._client, self._known, entries)
        self._failed_asserts = 0

    def send(self, frame: SupportsBytes | bytes, port: int, now: int = 0) -> list[Output]:
        """What leaves the switch because of a frame (bytes, or a scapy packet) into a port at tick `now`, in order.

        Raises CheckError when an assert of the program does not hold.
        """
        outputs = [Output(*output) for output in self._switch.process(port, bytes(frame), now)]
        failed, self._failed_asserts = self._failed_asserts, self._switch.failed_asserts
        if failed != self._failed_asserts:
            raise CheckError(f"a packet into port {port} fails an assert of the program: {self._switch.failed_assert}")
        return outputs
