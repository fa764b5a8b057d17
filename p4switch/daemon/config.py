"""Configuration of a switch process's traffic manager, in a JSON file (`--traffic`): rates, delays, queue limits, PFC.

    {"tick_ns": 1000, "ports": {"1": {"rate_bps": 100000000, "delay_ns": 1000000}}, "queue_bytes": 200000}

Names and meanings are those of `Fabric.add_switch`, `set_pfc`, `set_trimming` and `connect`. Times and rates refer to
the wall clock.
"""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from p4switch.errors import UserError
from p4switch.traffic.settings import Alpha, Priority, TrafficManager, Trimming

_Settings = TypeVar("_Settings", bound=BaseModel)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PortSettings(_Model):
    """Link of one port.

    rate_bps 0 means as fast as the machine allows. xoff_bytes and headroom_bytes replace the values in
    `pfc`, and framing_bytes the value for all ports. trimming has the settings for trimming at a full
    queue, or is None. A port that `loops` has no interface: the frames that it sends come back to it.
    """

    rate_bps: Annotated[int, Field(ge=0, le=10**14)] = 0
    delay_ns: Annotated[int, Field(ge=0, le=10**12)] = 0
    xoff_bytes: Annotated[int | None, Field(ge=0)] = None
    headroom_bytes: Annotated[int | None, Field(ge=0)] = None
    framing_bytes: Annotated[int | None, Field(ge=-1000, le=1000)] = None
    trimming: Trimming | None = None
    loops: bool = False


class PfcSettings(_Model):
    """Priority flow control for all ports, which need rates. Either xoff_bytes or alpha is given."""

    priorities: tuple[Priority, ...]
    xoff_bytes: Annotated[int | None, Field(ge=0)] = None
    alpha: Alpha | None = None
    xon_gap_bytes: Annotated[int, Field(ge=0)] = 0
    headroom_bytes: Annotated[int | None, Field(ge=0)] = None
    quanta: Annotated[int, Field(ge=1, le=65535)] = 65535


class LinkChange(_Model):
    """Change of a port's link at `time_ns` of the switch's clock: up or down, rate (0: no limit) and delay.

    From then on, the share `loss` of the sent frames is lost at random. The first `seed` of a port
    determines which frames.
    """

    time_ns: Annotated[int, Field(ge=0, lt=2**63)]
    port: int
    up: bool = True
    rate_bps: Annotated[int, Field(ge=0, le=10**14)] = 0
    delay_ns: Annotated[int, Field(ge=0, le=10**12)] = 0
    loss: Annotated[float, Field(ge=0, lt=1)] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0


class LinkChanges(_Model):
    """File of changes (`--changes`), which is read whenever the process gets SIGHUP."""

    changes: list[LinkChange]


class TrafficSettings(TrafficManager):
    """Settings of the traffic manager. `all_ports` applies to ports that `ports` does not name. None: no limit.

    `origin_ns` is CLOCK_MONOTONIC at time 0 of the switch's clock (0: the start of the switch), so
    that switches can share a time origin. `model_tick_ns` is the length of a tick in model time,
    which may run slower than the clock (None: `tick_ns`). It applies to meters, and to the time
    stamps in nanoseconds of programs for chips. `log_depths_ns` is the minimum interval at which
    queue depths are recorded for the statistics (0: not recorded).
    """

    tick_ns: Annotated[int, Field(ge=1, le=10**9)] = 1000
    model_tick_ns: Annotated[int, Field(ge=1, le=10**9)] | None = None
    framing_bytes: Annotated[int, Field(ge=-1000, le=1000)] = 0
    origin_ns: Annotated[int, Field(ge=0, lt=2**63)] = 0
    log_depths_ns: Annotated[int, Field(ge=0, lt=2**63)] = 0
    all_ports: PortSettings = PortSettings()
    ports: dict[Annotated[int, Field(strict=False)], PortSettings] = {}  # keys in JSON are strings
    queue_packets: Annotated[int | None, Field(ge=0, le=(1 << 32) - 1)] = 1000
    port_packets: Annotated[int | None, Field(ge=0, le=(1 << 32) - 1)] = None
    # PFC class of each DSCP; None: the class of a packet is the priority of its queue.
    dscp_classes: Annotated[tuple[Priority, ...], Field(min_length=64, max_length=64, strict=False)] | None = None
    pfc: PfcSettings | None = None

    @property
    def loops(self) -> list[int]:
        """Numbers of the ports that loop."""
        return [number for number, port in self.ports.items() if port.loops]

    def apply(self, live: Any, ports: list[int]) -> None:
        """Apply all settings to a `Live` with these ports.

        Raises UserError or ValueError for settings that do not suit the ports.
        """
        live.log_depths(self.log_depths_ns)
        live.set_traffic(
            **self.traffic(), queue_packets=self.queue_packets, port_packets=self.port_packets,
            dscp_classes=self.dscp_classes,
        )
        for number in ports:
            link = self.ports.get(number, self.all_ports)
            framing_bytes = self.framing_bytes if link.framing_bytes is None else link.framing_bytes
            live.set_port(number, link.rate_bps, link.delay_ns, framing_bytes)
            if link.trimming is not None:
                live.set_trimming(number, **link.trimming.model_dump())
            if self.pfc is None or link.loops:
                continue
            if not link.rate_bps:
                raise UserError(f"--traffic: pfc: port {number} has no rate_bps; expected one, it times pauses")
            own = {"xoff_bytes": link.xoff_bytes, "headroom_bytes": link.headroom_bytes}
            given = {key: value for key, value in own.items() if value is not None}
            live.set_pfc(number, **{**self.pfc.model_dump(), **given})


def read_changes(path: Path) -> list[LinkChange]:
    """Return the link changes of a file.

    Raises UserError, which names the wrong key.
    """
    return _read("--changes", path, LinkChanges).changes


def read(path: Path) -> TrafficSettings:
    """Return the settings of a file.

    Raises UserError, which names the wrong key.
    """
    settings = _read("--traffic", path, TrafficSettings)
    problem = _problem(settings)
    if problem:
        raise UserError(f"--traffic {path}: {problem}")
    return settings


def _read(option: str, path: Path, model: type[_Settings]) -> _Settings:
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{option} {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UserError(f"{option} {path}: {where}: {first['msg']}") from error


def _problem(settings: TrafficSettings) -> str:
    pfc = settings.pfc
    if settings.alpha is not None and settings.buffer_bytes is None:
        return "alpha: expected buffer_bytes with it"
    if pfc is None:
        return ""
    if (pfc.alpha is None) == (pfc.xoff_bytes is None):
        return "pfc: expected one of xoff_bytes and alpha"
    if pfc.alpha is not None and settings.buffer_bytes is None:
        return "pfc.alpha: expected buffer_bytes with it"
    return ""
