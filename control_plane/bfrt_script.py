"""Entries that a BfRuntime client writes: the user's own script, run once for each switch.

The script runs against a switch with the same program that forwards nothing. Its entries are then
read as P4Runtime entities, so that the controller writes them in the same way in both worlds.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from p4switch import processes
from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.bfrt.pipes import Pipe, Program
from p4switch.bfrt.server import BfRuntimeServer
from p4switch.compiler import Compiled
from p4switch.engine import build, load
from p4switch.errors import UserError
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.device import Device
from p4switch.p4runtime.messages import Message, p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.engine import Switch

TIMEOUT_S = 120
_SHOWN_LINES = 3
# A script can import modules from its own folder, and none from the working folder.
_RUN = (
    "import os, runpy, sys; del sys.argv[0]; sys.path.insert(0, os.path.dirname(sys.argv[0]));"
    " runpy.run_path(sys.argv[0], run_name='__main__')"
)
_Update = p4runtime_pb2.Update
# Kinds of entities in an order in which they can be written, each with the update that creates it.
_KINDS = {
    "action_profile_member": _Update.INSERT,
    "action_profile_group": _Update.INSERT,
    "packet_replication_engine_entry": _Update.INSERT,
    "value_set_entry": _Update.MODIFY,
    "table_entry": _Update.INSERT,
    "register_entry": _Update.MODIFY,
    "counter_entry": _Update.MODIFY,
    "meter_entry": _Update.MODIFY,
    "extern_entry": _Update.MODIFY,
}


def updates(programs: Mapping[int, Compiled], name: str, script: Path, switch: str) -> dict[int, list[Message]]:
    """Return the P4Runtime updates for the entries that a script writes, by pipe.

    Parameters
    ----------
    programs
        Pipelines of the program, by the pipe that runs them.
    name
        Name of the program to BfRuntime.
    script
        The script, which is run with the address of the server and with `switch` as its arguments.
    switch
        Name of the switch.

    Returns
    -------
    dict[int, list[Message]]
        Updates of each pipe, in an order in which they can be written.

    Raises
    ------
    UserError
        If the program has no `bf-rt.json`, and if the script fails or takes longer than `TIMEOUT_S`.
    """
    control = threading.RLock()
    pipes, clients = [], {}
    for number, compiled in programs.items():
        device = Device(partial(_switch, compiled), 0, clock_ns=lambda: 0, control=control)
        pipes.append(Pipe(number, device, compiled))
        clients[number] = LocalClient(device)
        clients[number].set_pipeline(compiled.p4info, compiled.json_bytes)
    fixed = ARCHITECTURES.find(pipes[0].compiled.p4info.pkg_info.arch).fixed_tables
    server = BfRuntimeServer([Program(name, pipes)], "127.0.0.1:0", fixed)
    before = {pipe: set(map(_bytes, _entities(client, programs[pipe].p4info))) for pipe, client in clients.items()}
    server.start()
    try:
        _run(script, f"127.0.0.1:{server.port}", switch)
        return {
            pipe: [
                _update(entity)
                for entity in _entities(client, programs[pipe].p4info)
                if _bytes(entity) not in before[pipe]
            ]
            for pipe, client in clients.items()
        }
    finally:
        server.stop()


def _switch(compiled: Compiled, _: object) -> Switch:
    switch: Switch = load().Switch(str(build(compiled.program)), tick_ns=1)
    return switch


def _run(script: Path, address: str, switch: str) -> None:
    command = processes.python("-c", _RUN, str(script.resolve()), address, switch)
    try:
        done = processes.run(command, timeout_s=TIMEOUT_S, folder=script.parent)
    except subprocess.TimeoutExpired:
        raise UserError(f"{script} for switch {switch}: took over {TIMEOUT_S} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()[-_SHOWN_LINES:] or [processes.how_ended(done.returncode)]
        raise UserError(f"{script} for switch {switch}: " + "; ".join(line.strip() for line in lines))


def _entities(client: LocalClient, p4info: Message) -> Iterator[Message]:
    """Yield everything that P4Runtime reads from a switch, by kind in the order of `_KINDS`."""
    for kind in _KINDS:
        queries = [p4runtime_pb2.Entity()]
        if kind == "packet_replication_engine_entry":
            queries[0].packet_replication_engine_entry.multicast_group_entry.SetInParent()
        else:
            getattr(queries[0], kind).SetInParent()
        if kind == "table_entry":
            for table in p4info.tables:
                default = p4runtime_pb2.Entity()
                default.table_entry.table_id = table.preamble.id
                default.table_entry.is_default_action = True
                queries.append(default)
        yield from client.read(queries)


def _update(entity: Message) -> Message:
    kind = entity.WhichOneof("entity")
    default = kind == "table_entry" and entity.table_entry.is_default_action
    return _Update(type=_Update.MODIFY if default else _KINDS[kind], entity=entity)


def _bytes(entity: Message) -> bytes:
    data: bytes = entity.SerializeToString(deterministic=True)
    return data
