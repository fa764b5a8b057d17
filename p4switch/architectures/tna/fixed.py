"""Tables of BfRuntime that every program has: what the built-in switch is as a device."""

from __future__ import annotations

from p4switch.bfrt.fields import Json, Table, data_field, value_type

_DEVICE_CONFIGURATION = 0xFF060001
_PORTS = 288


def fixed_tables(chip: str) -> list[Json]:
    """Return the tables of a chip (`tf1`, `tf2`) as `bf-rt.json` has tables.

    The built-in switch is one pipeline for the ports of all of them.
    """
    table = Table(f"{chip}.dev.device_configuration", _DEVICE_CONFIGURATION, "DevConfigure", 1, [])
    for number, name, t in (
        (1, "sku", value_type("string", "UNKNOWN")),
        (2, "num_pipes", value_type("uint32", 1)),
        (4, "num_max_ports", value_type("uint32", _PORTS)),
    ):
        table.singleton(data_field(number, name, t), read_only=True)
    return [table.as_json()]
