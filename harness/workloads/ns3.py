"""Flow files of HPCC's simulator, with a line for each flow.

The first line has the number of flows. Each other line has `source destination priority port bytes
start`, with the time in seconds. The older simulator from which it descends has `source destination
priority packets start stop` instead.
"""

from __future__ import annotations

import warnings
from decimal import Decimal
from itertools import islice
from typing import Annotated

from pydantic import Field

from harness.workloads.base import Flow, Setting, TimedParameters, Traffic, expect_flows, register
from harness.workloads.files import Classes, ends, read_lines, time_ns, whole
from p4switch.errors import Doubt, UserError
from p4switch.foreign_files import decimal, shown

_EXPECTED = "source destination priority port bytes start"
_EXPECTED_OF_PACKETS = "source destination priority packets start stop"
_SECOND_NS = Decimal(10**9)
_MOST_NUMBER = 1 << 32  # the simulator's limit for hosts, priorities and ports
_MOST_COUNT = 1 << 64


@register("ns3")
class Ns3Flows(TimedParameters):
    """Flows of a `file`, which is relative to the scenario.

    Priorities become classes according to `classes`; without it they are ignored. Node n of the
    file is host n - `first_host`. If that is not given, it is the host with this number in the file
    of the topology, or else host n.
    """

    file: str  # a flow list, relative to the scenario
    # Number of the first host in the file; none: the numbers of the topology's file, or 0.
    first_host: Annotated[int, Field(ge=0)] | None = None
    classes: Classes = {}  # class of data by the file's priority, as "3"; others: the NIC's class
    # Payload of a packet, for the older simulator's lists, which have packet counts; none: the list
    # has bytes.
    packet_bytes: Annotated[int, Field(ge=1, le=65535)] | None = None

    def generate(self, setting: Setting) -> Traffic:
        """Return the flows that the simulator would read: as many as the count in the file.

        A list with packet counts also has stop times of applications. They are not used: each flow
        sends all its packets.
        """
        path = setting.folder / self.file
        lines = ((number, words) for number, words in read_lines(path) if words)
        number, words = next(lines, (1, []))
        if len(words) != 1:
            raise UserError(f"{path}:{number}: expected the number of flows")
        count = whole(f"{path}:{number}", words[0], "the number of flows", _MOST_COUNT)
        expect_flows("file", count)
        flows = [self._flow(f"{path}:{number}", words, setting) for number, words in islice(lines, count)]
        if len(flows) < count:
            raise UserError(f"{path}:{number}: says {count} flows; there are {len(flows)}")
        if more := sum(1 for _ in lines):
            warnings.warn(f"{path}: says {count} flows; {more} more lines are not read", Doubt, stacklevel=2)
        return Traffic(flows)

    def _flow(self, where: str, words: list[str], setting: Setting) -> Flow:
        expected = _EXPECTED if self.packet_bytes is None else _EXPECTED_OF_PACKETS
        if len(words) != len(expected.split()):
            raise UserError(f"{where}: expected {expected!r}, got {' '.join(words)!r:.80}")
        source, destination, priority, fourth = (whole(where, word, most=_MOST_NUMBER) for word in words[:4])
        if self.packet_bytes is None:
            if not words[4].isdecimal() and decimal(words[4]) is not None:
                raise UserError(
                    f"{where}: expected a size in bytes, got {shown(words[4])}; of a list with packets, and times to "
                    "start and to stop, workload.packet_bytes says what a packet carries"
                )
            size_bytes, start = whole(where, words[4], "a size in bytes", least=1), words[5]
        else:
            size_bytes = whole(where, str(fourth * self.packet_bytes), "packets of a flow in bytes", least=1)
            start = words[4]
        hosts = ends(where, self._host(where, source, setting), self._host(where, destination, setting), setting)
        start_ns = time_ns(where, start, _SECOND_NS)
        return Flow(*hosts, size_bytes, start_ns, priority=self.classes.get(str(priority)))

    def _host(self, where: str, node: int, setting: Setting) -> int:
        """Return the index of a host by the file's number.

        Wrong numbers are reported along with the ends of flows.
        """
        numbers = setting.topology.host_numbers
        if self.first_host is not None or numbers is None:
            return node - (self.first_host or 0)
        if node not in numbers:
            raise UserError(f"{where}: node {node} is not a host of topology {setting.topology.name!r}")
        return numbers[node]
