"""Command line of the switch process: the options of simple_switch_grpc that make sense for it."""
from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from p4switch.architectures import ports
from p4switch.errors import UserError
from p4switch.output_file import check_writable
from p4switch.sources import SOURCE_DIRECTORY, arch_option, define_option, include_option

if TYPE_CHECKING:
    from p4switch.trace import Event

TRACE = logging.DEBUG - 5
"""Log level of packet events."""
_LIKE_BMV2 = "bmv2"  # name of the logger of packet events in simple_switch's format


class _TwoParts(click.Command):
    """Command whose target options may be anywhere; in simple_switch_grpc they have to follow `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [arg for arg in args if arg != "--"])


class _PortInterface(click.ParamType):  # type: ignore[type-arg]  # generic only in what mypy sees
    name = "PORT@INTERFACE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, str]:
        number, at, interface = str(value).partition("@")
        if not at or not number.isdecimal() or not interface:
            self.fail(f"{value!r}; expected PORT@INTERFACE, such as 1@veth1", param, ctx)
        return int(number), interface


class _Address(click.ParamType):  # type: ignore[type-arg]  # as above
    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        host, _, port = str(value).rpartition(":")
        if host == "unix":
            return str(value)
        if not host or not port.isdecimal() or int(port) >= 1 << 16:
            self.fail(f"{value!r}; expected HOST:PORT with a port up to 65535, such as 127.0.0.1:9559", param, ctx)
        return str(value)


class _PortOrAddress(_Address):
    name = "[HOST:]PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(f"127.0.0.1:{value}" if str(value).isdecimal() else value, param, ctx)


@click.command(cls=_TwoParts, name="switch")
@click.argument("programs", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE.p4...|FILE.json]")
@include_option
@define_option
@arch_option
@click.option("-i", "--interface", "interfaces", multiple=True, type=_PortInterface(), help="A port and its interface.")
@click.option("--no-p4", is_flag=True, help="Start without a program; a controller sets the pipeline.")
@click.option("--p4info", type=click.Path(path_type=Path), help="P4Info of FILE.json, text or binary (.bin).")
@click.option("--device-id", type=click.IntRange(0), default=0, show_default=True)
@click.option("--traffic", type=click.Path(path_type=Path), metavar="FILE.json",
              help="Link rates, delays, queue limits, PFC.")
@click.option("--changes", type=click.Path(path_type=Path), metavar="FILE.json",
              help="Links that fail or change their rate; read at SIGHUP.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the program's random numbers.")
@click.option("--stats", type=click.Path(path_type=Path),
              help="Counters of every port, as JSON: written at SIGUSR1 and at the end.")
@click.option(
    "--pcap", type=click.Path(path_type=Path), metavar="FOLDER",
    help="INTERFACE_in.pcap and INTERFACE_out.pcap; as traces, they slow the switch down.",
)  # fmt: skip
@click.option("--send", type=click.Choice(["auto", "packet", "xdp"]), default="auto", show_default=True,
              help="How frames are sent: by AF_PACKET, by AF_XDP, or by AF_XDP where the system has it.")
@click.option("--grpc-server-addr", type=_Address(), default="127.0.0.1:9559", show_default=True)
@click.option("--bfrt", type=_PortOrAddress(), help="Where a BfRuntime server listens, for a TNA or T2NA program.")
@click.option("--early-p4runtime", "early", is_flag=True,
              help="For P4Runtime controllers without election ids, which expect byte strings as wide as their fields.")
@click.option("--pipes", type=click.IntRange(1), metavar="N",
              help="Number of a chip's pipes, of 128 ports each; default: one for each pipeline of the programs.")
@click.option("--loopback-pipe", "looped", type=click.IntRange(0), multiple=True, metavar="N",
              help="A pipe whose ports lead back to it, as inside of some chips.")
@click.option("--cpu-port", type=click.IntRange(1, ports.MAX_PORT), help="Port of packet-in and packet-out.")
@click.option("--drop-port", type=click.IntRange(0),
              help="Packets sent there are dropped; default, and the largest: the port of the program's architecture.")
@click.option("--priority-queues", type=click.IntRange(1), default=8,
              help="Accepted and ignored: a port has 8 queues, or 128 with TNA.")
@click.option("--log-console", is_flag=True, help="Log to stderr.")
@click.option("--log-file", type=click.Path(path_type=Path), help="Log to a file.")
@click.option("--log-level", "-L", default="info", metavar="LEVEL",
              help="trace (what happens to each packet), debug, info, warn, error or off.")
@click.option("--trace-file", type=click.Path(path_type=Path), metavar="FILE",
              help="Trace of each packet, with a JSON object on each line.")
@click.option("--log-flush", is_flag=True, help="Accepted; logs are always flushed.")
@click.option("--dump-packet-data", type=click.IntRange(0), help="Accepted and ignored.")
@click.option("--thrift-port", type=int, help="Accepted and ignored: there is no Thrift server.")
@click.option("--nanolog", help="Accepted and ignored.")
@click.option("--notifications-addr", help="Accepted and ignored.")
@click.option("--disable-swap", is_flag=True, help="Accepted and ignored.")
def command(
    programs: tuple[Path, ...],
    include: tuple[Path, ...],
    define: dict[str, str],
    arch: str | None,
    interfaces: tuple[tuple[int, str], ...],
    no_p4: bool,
    p4info: Path | None,
    device_id: int,
    traffic: Path | None,
    changes: Path | None,
    seed: int,
    stats: Path | None,
    pcap: Path | None,
    send: str,
    grpc_server_addr: str,
    bfrt: str | None,
    early: bool,
    pipes: int | None,
    looped: tuple[int, ...],
    cpu_port: int | None,
    drop_port: int | None,
    log_console: bool,
    log_file: Path | None,
    log_level: str,
    trace_file: Path | None,
    **_ignored: object,
) -> None:
    """Run the built-in switch on network interfaces, with a P4Runtime server.

    The program is P4 source, or BMv2 JSON. Takes the command line of simple_switch_grpc. Ends at SIGTERM or SIGINT.

    A chip's pipes may run several programs, and programs of several pipelines: pipe n runs pipeline n. If there are
    more pipes, the pipelines are used again from the first one. To P4Runtime pipe n is the device with the id of
    --device-id plus n.
    """
    program = programs[0] if programs else None
    if len(programs) > 1 and any(each.suffix != ".p4" for each in programs):
        raise UserError("several programs: expected FILE.p4 for each")
    if len({each.stem for each in programs}) != len(programs):
        raise UserError("several programs: expected files of different names")
    if (program is None) != no_p4:
        raise UserError("expected either FILE.p4, FILE.json or --no-p4")
    if p4info is not None and (program is None or program.suffix == ".p4"):
        raise UserError("--p4info: expected FILE.json with it")
    if (define or arch or include != (SOURCE_DIRECTORY,)) and (program is None or program.suffix != ".p4"):
        raise UserError("-I, -D, --arch: expected FILE.p4 with them")
    if bfrt is not None and (program is None or program.suffix != ".p4"):
        raise UserError("--bfrt: expected FILE.p4 with it")
    if (pipes is not None or looped) and program is not None and program.suffix != ".p4":
        raise UserError("--pipes, --loopback-pipe: expected FILE.p4 or --no-p4 with them")
    if len({number for number, _ in interfaces}) != len(interfaces):
        raise UserError("-i: expected each port number once")
    _check(programs, interfaces)
    _log_to(log_console, log_file, log_level)
    tell = _tracer(log_level == "trace" and (log_console or log_file is not None), trace_file)

    from p4switch.daemon.captures import Captures
    from p4switch.daemon.config import TrafficSettings, read
    from p4switch.daemon.process import SwitchProcess

    settings = read(traffic) if traffic else TrafficSettings()
    listeners = [] if tell is None else [tell]
    if pcap is not None:
        listeners.append(Captures(pcap, dict(interfaces), settings.tick_ns))

    def trace(event: Event) -> None:
        for one in listeners:
            one(event)

    process = SwitchProcess(
        dict(interfaces), device_id=device_id, cpu_port=cpu_port, address=grpc_server_addr, bfrt_address=bfrt,
        traffic=settings, seed=seed, drop_port=drop_port, stats_file=stats, changes_file=changes, send=send,
        early=early, trace=trace if listeners else None,
    )
    if program is not None and program.suffix == ".p4":
        process.load_sources(programs, include, define, arch, pipes, looped)
    elif program is not None:
        process.load_program(program, p4info)
    else:
        process.set_pipes(pipes or 1, looped)
    process.run()


def _check(programs: Collection[Path], interfaces: Collection[tuple[int, str]]) -> None:
    """Check files and interfaces before the program is compiled, which takes long."""
    for program in programs:
        if not program.exists():
            raise UserError(f"{program}: {os.strerror(errno.ENOENT)}")
    there = {name for _, name in socket.if_nameindex()}
    missing = [f"{number}@{name}" for number, name in interfaces if name not in there]
    if missing:
        raise UserError(f"-i {', '.join(missing)}: no such interface; expected some of {', '.join(sorted(there))}")
    if interfaces:
        try:
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
        except PermissionError:
            raise UserError("-i: raw sockets need root (or CAP_NET_RAW)") from None


def _tracer(logged: bool, file: Path | None) -> Callable[[Event], object] | None:
    """Return the listener of packet events, which writes to the log, to a file of JSON lines, or to both; or None.

    Raises UserError if the file cannot be written.

    If writing fails later (a full disk), the file is closed and the log says so. The switch continues.
    """
    from p4switch.trace import json_line, log_lines

    if file is not None:
        check_writable(file, "--trace-file")
    lines = file.open("w", encoding="utf-8", buffering=1) if file is not None else None
    if not logged and lines is None:
        return None

    def tell(event: Event) -> None:
        nonlocal lines
        if logged:
            for line in log_lines(event):
                logging.getLogger(_LIKE_BMV2).log(TRACE, line)
        if lines is not None:
            try:
                lines.write(f"{json_line(event)}\n")
            except OSError as error:
                logging.getLogger(__name__).error("--trace-file %s: %s; no more is written", file, error.strerror)
                with contextlib.suppress(OSError):
                    lines.close()
                lines = None

    return tell


def _log_to(console: bool, file: Path | None, level: str) -> None:
    logging.addLevelName(TRACE, "TRACE")
    levels = {"trace": TRACE, "debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING,
              "error": logging.ERROR, "off": logging.CRITICAL}
    if level not in levels:
        raise UserError(f"--log-level {level}; expected one of {', '.join(levels)}")
    handlers: list[logging.Handler] = []
    if console:
        handlers.append(logging.StreamHandler())
    if file is not None:
        try:
            handlers.append(logging.FileHandler(file))
        except OSError as error:
            raise UserError(f"--log-file {file}: {error.strerror}") from error
    if handlers:
        others = max(levels[level], logging.WARNING)  # only warnings of libraries
        logging.basicConfig(level=others, handlers=handlers, format="%(asctime)s %(levelname)s %(message)s")
        for name in ("p4switch", _LIKE_BMV2):
            logging.getLogger(name).setLevel(levels[level])
