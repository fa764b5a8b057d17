"""Flow files of HPCC's simulator: a count, then `source destination priority port bytes start` a line (seconds)."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated

from pydantic import Field

from harness.workloads.base import Flow, Setting, TimedParameters, Traffic, register
from harness.workloads.files import host, read_lines
from p4switch.errors import UserError


@register("ns3")
class Ns3Flows(TimedParameters):
    """`file` is relative to the scenario. Node n of the file is host n - `first_host`. Priorities are not used."""

    file: str  # a flow list, relative to the scenario
    first_host: Annotated[int, Field(ge=0)] = 0  # the number that the file gives to the first host

    def generate(self, setting: Setting) -> Traffic:
        path = setting.folder / self.file
        lines = [(number, words) for number, words in read_lines(path) if words]
        if not lines or len(lines[0][1]) != 1 or not lines[0][1][0].isdigit():
            raise UserError(f"{path}:1: expected the number of flows")
        flows = [self._flow(f"{path}:{number}", words, setting) for number, words in lines[1:]]
        if len(flows) != int(lines[0][1][0]):
            raise UserError(f"{path}:1: says {lines[0][1][0]} flows; there are {len(flows)}")
        return Traffic(flows)

    def _flow(self, where: str, words: list[str], setting: Setting) -> Flow:
        try:
            source, destination, _, _, size = (int(word) for word in words[:5])
            (start,) = words[5:]
            start_ns = int(Decimal(start) * 10**9)
        except (ValueError, InvalidOperation):
            expected = "source destination priority port bytes start"
            raise UserError(f"{where}: expected {expected!r}, got {' '.join(words)!r}") from None
        if size < 1 or start_ns < 0:
            raise UserError(f"{where}: expected a positive size and a start of 0 or more")
        from_host = host(where, source - self.first_host, setting)
        to_host = host(where, destination - self.first_host, setting)
        return Flow(from_host, to_host, size, start_ns)
