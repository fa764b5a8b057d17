"""Base of packages of an architecture: their blocks, and the lowering of the program between them to IR."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from p4switch.errors import UserError

if TYPE_CHECKING:
    from p4switch import ir
    from p4switch.bfrt.schema import Schema
    from p4switch.compiler.facts import Facts
    from p4switch.compiler.midend.elaborate import Block
    from p4switch.tool_types import Lowering, Machine, Prover, Walk, ast


@dataclass(frozen=True)
class Site:
    """Position of a block in a package, and the code that the target accepts there."""

    name: str
    parses: bool = False
    branches: bool = True
    """True if conditions are allowed."""
    statements: bool = True
    """True if statements are allowed, and so temporaries for the parts of an expression."""
    aside: bool = False
    """True if no packet passes through the block; programs may leave it out, behind all others."""


Tell = Callable[["ast.Node", str, str], None]
"""Callback that reports a warning: its node, text and name."""


class Package(ABC):
    """A package that programs instantiate as `main`; it is registered by its name in P4."""

    include: ClassVar[str]
    """Include file that declares the package."""
    sites: ClassVar[tuple[Site, ...]]
    """Blocks of the package in order; the blocks of a nested package take its position."""
    takes: ClassVar[str]
    """`sites` in words."""
    parameters: ClassVar[Mapping[str, range]]
    """Allowed numbers of parameters of each block, by its name, as a program may declare such a package itself."""
    path: ClassVar[str] = ""
    """Packet path that BMv2 JSON names (`__meta__.package`); empty: it is recognised by the names of the blocks."""
    tools: ClassVar[frozenset[str]] = frozenset()
    """Tools that know the rules of the package, besides the compiler and the built-in switch."""

    leads_to: ClassVar[tuple[str, ...]] = ()
    """Metadata fields, as `instance.field`, that decide where a packet goes; they are read after a control."""
    replicates: ClassVar[tuple[str, ...]] = ()
    """Fields of `leads_to` that create copies."""
    bridges: ClassVar[bool] = False
    """True if egress receives the metadata of ingress; otherwise ingress hands over bytes only."""

    pipelined: ClassVar[bool] = False
    """True if the arguments are pipelines, which are programs of their own; a pipe of the switch runs one of them."""

    bfrt: ClassVar[bool] = False
    """True if programs of the package have a `bf-rt.json`."""

    def __init__(self, low: Lowering) -> None:
        self.low = low

    @abstractmethod
    def begin(self, blocks: list[Block]) -> None:
        """Allocate what outlives the blocks: headers and metadata."""

    @abstractmethod
    def lower(self, site: Site, block: Block) -> None:
        """Lower one of the blocks into the program."""

    def packet_length(self, call: ast.Call) -> ir.Expr:
        """Return the value of `packet_in.length()`. Raises CompileError where the target does not know it."""
        raise self.low.error(call, "'length' is not supported on this target")

    @abstractmethod
    def emit_header(self, header: ir.HeaderRef) -> None:
        """Add `header` to the headers that the deparser being lowered appends to the packet."""

    def way(self, machine: Machine) -> Walk:
        """Return the test generator's path of packets through the blocks. Raises UserError where there is none."""
        raise UserError(f"tests cannot be generated for programs of '{type(self).__name__}'")

    def prove(self, prover: Prover) -> None:
        """Compute which packets reach which statements. Raises UserError where the package has no proofs."""
        raise UserError(f"there are no proofs for programs of '{type(self).__name__}'")

    def bfrt_names(self, blocks: list[Block]) -> list[tuple[int, str]]:
        """Return the package's names with an id in `bf-rt.json`, and its highest byte."""
        return []

    def publish(self, blocks: list[Block], schema: Schema) -> None:
        """Add the package's own tables to `bf-rt.json`. Raises UserError if BfRuntime does not know the package."""
        raise UserError(f"programs of '{type(self).__name__}' have no bf-rt.json")

    @staticmethod
    def source_names(blocks: list[Block]) -> dict[str, str]:
        """Return the source names of the target's storage for the blocks: those of the first parser's parameters."""
        params = blocks[0].decl.params
        return {"headers": params[1].name, "metadata": params[2].name}

    @staticmethod
    @abstractmethod
    def warn(blocks: Sequence[ast.ControlDecl | ast.ParserDecl], facts: Facts, tell: Tell) -> None:
        """Warn about differences between the target and the specification of the architecture."""
