"""P4Info and BMv2 JSON of everything.p4 from the compiler."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from p4switch.compiler import Compiled, compile_program
from p4switch.p4runtime.messages import Message, p4info_pb2

PROGRAM = Path(__file__).with_name("everything.p4")


@cache
def compiled() -> Compiled:
    """Return the compiled program, which callers must not change."""
    return compile_program(PROGRAM)


def p4info() -> Message:
    """Return a copy of P4Info for the caller."""
    copy = p4info_pb2.P4Info()
    copy.CopyFrom(compiled().p4info)
    return copy


def device_config() -> bytes:
    """Return BMv2 JSON in the form that the engine gets."""
    return json.dumps(compiled().json).encode()
