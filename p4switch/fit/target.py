"""Resources of a chip, read from target files.

A target is a TOML file, whose keys are the attributes of the classes below. Omitted keys mean no
limit.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from p4switch.errors import UserError, suggest, validate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "targets"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Memory(_Part):
    """Memory: number of `blocks` in a stage, or in total if the chip has no stages."""

    blocks: int = Field(ge=0)
    entries: int = Field(ge=1)
    width_bits: int = Field(ge=1)


class Tcam(Memory):
    blocks: int = Field(default=0, ge=0)
    of_sram: bool = False
    """True if these blocks are part of the SRAM, as on an FPGA."""


class Stage(_Part):
    """Capacity of a stage; None: no limit."""

    tables: int | None = None
    conditions: int | None = None
    registers: int | None = None
    hashes: int | None = None
    action_words: int | None = None  # number of words of 32 bits that actions can write
    exact_key_bits: int | None = None
    ternary_key_bits: int | None = None


class Parser(_Part):
    bytes: int | None = None  # bytes that a parser can extract
    states: int | None = None  # number of states on one path
    entries: int | None = None  # number of transitions, each of which is a row of a TCAM
    key_bits: int | None = None  # bits of packet and metadata that one transition can compare
    arithmetic: bool = True  # True if the parser can compute sums and products


class Arithmetic(_Part):
    width_bits: int | None = None  # width of additions, subtractions and shifts
    compare_bits: int | None = None  # width of <, <=, > and >= as separate operations; 0: there are none
    condition_bits: int | None = None  # bits that one condition can read
    range_bits: int = 0  # width of <, <=, > and >= with a constant within a condition; 0: there are none
    multiply: bool = True
    variable_shift: bool = True


class Register(_Part):
    width_bits: int | None = None
    operations: int | None = None  # number of operations on one path between the read and the write of an access
    conditions: int | None = None
    compare_bits: int | None = None  # width of <, <=, > and >= in an access; default: `arithmetic.compare_bits`
    coupled: int | None = None  # number of registers whose new values depend on each other's old values
    repeated: bool = False  # True if a packet may access a register more than once
    both_pipelines: bool = False


class Functions(_Part):
    """Other capabilities of a device. `random_ranges` and `hash_ranges` allow ranges other than powers of two."""

    action_conditions: bool = True  # True if actions of tables may have conditions
    loops: bool = False
    recirculate: bool = True
    resubmit: bool = True
    clone: bool = True
    multicast: bool = True
    payload_checksum: bool = False
    random_ranges: bool = False
    hash_ranges: bool = False


class Target(_Part):
    name: str
    about: str
    sources: tuple[str, ...]
    stages: int | None = None  # shared by ingress and egress
    phv_bits: int | None = None  # bits of headers and metadata that are live at the same time
    phv_untouched_bits: int = 0
    """Additional bits for fields that are neither read nor written between parser and deparser."""
    sram: Memory | None = None
    tcam: Tcam | None = None
    stage: Stage = Stage()
    parser: Parser = Parser()
    arithmetic: Arithmetic = Arithmetic()
    register_: Register = Field(default=Register(), alias="register")
    functions: Functions = Functions()


def built_in() -> list[str]:
    """Return the names of the targets that come with p4cc."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Target:
    """Return the target with this name, or the target that a file describes.

    Raises UserError for an unknown name, and for a file that cannot be read or is invalid.
    """
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not name.endswith(".toml") and name not in built_in():
        raise UserError(f"no target {name!r}; {suggest(name, built_in())}, or give a .toml file")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{name}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{name}: {error}") from None
    return validate(Target, values, "")
