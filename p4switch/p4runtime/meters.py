"""Conversion of meter configurations between messages and the engine's (cir, cburst, pir, pburst)."""
from __future__ import annotations

from p4switch.p4runtime.errors import invalid, unimplemented
from p4switch.p4runtime.messages import Message
from p4switch.p4runtime.pipeline import MeterKind


def decode_meter(kind: MeterKind, config: Message, where: str) -> tuple[int, int, int, int]:
    """Return rates in units (bytes or packets) per second, and bursts in units.

    Raises P4RuntimeError: INVALID_ARGUMENT for a configuration that the meter's type excludes (specification,
    "MeterEntry & DirectMeterEntry"), UNIMPLEMENTED for an excess burst, which the switch's meters do not have.
    """
    rates = (config.cir, config.cburst, config.pir, config.pburst)
    if min(*rates, config.eburst) < 0:
        invalid(f"{where}: meter: rates and bursts must not be negative")
    if config.cir > config.pir:
        invalid(f"{where}: meter: cir {config.cir} is above pir {config.pir}")
    if not kind.two_rates and (config.cir, config.cburst) != (config.pir, config.pburst):
        invalid(f"{where}: meter of a single rate: pir and pburst must be cir and cburst")
    if config.eburst:
        if kind.two_rates or not kind.three_colours:
            invalid(f"{where}: meter: eburst is for single rate, three colour meters")
        unimplemented(f"{where}: meter: excess bursts are not supported")
    return rates


def encode_meter(rates: tuple[int, int, int, int], into: Message) -> None:
    """Fill a MeterConfig with rates per second and bursts."""
    into.SetInParent()
    into.cir, into.cburst, into.pir, into.pburst = rates


def no_colour_counters(message: Message, name: str, where: str) -> None:
    """Reject counters per colour, which are optional in P4Runtime and not supported."""
    if message.HasField(name):
        unimplemented(f"{where}: counters of each meter colour are not supported")
