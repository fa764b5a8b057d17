"""C types and descriptions of register arrays and their banks (`p4switch.engine.program`)."""

from collections.abc import Iterator

from p4switch.engine import cexpr
from p4switch.engine.cexpr import Fields, String
from p4switch.engine.cnodes import Struct
from p4switch.engine.keys import byte_array
from p4switch.engine.program import Program
from p4switch.engine.value import c_member, storage_bytes


def types(program: Program) -> Iterator[Struct]:
    """Yield the rows of the banks, with wide cells first, so that there are no gaps between them."""
    for bank in range(len(program.banks)):
        inside = [r for r in program.registers.values() if r.bank == bank]
        inside.sort(key=lambda r: min(storage_bytes(r.width), 8), reverse=True)
        yield Struct(f"bank{bank}", [c_member(r.width, r.member) for r in inside])


def banks(program: Program) -> list[Fields]:
    """Return initialisers of `p4_bank_info`."""
    return [
        Fields({"size": size, "stride": cexpr.size_of_type(f"bank{bank}")}) for bank, size in enumerate(program.banks)
    ]


def arrays(program: Program) -> list[Fields]:
    """Return initialisers of `p4_register_info`."""
    return [
        Fields({
            "name": String(r.name),
            "size": r.size,
            "width": r.width,
            "bank": r.bank,
            "offset": cexpr.call("offsetof", "", f"bank{r.bank}", r.member),
            **({"initial": byte_array(r.initial.to_bytes((r.width + 7) // 8, "big"))} if r.initial else {}),
        })
        for r in program.registers.values()
    ]
