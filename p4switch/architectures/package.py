"""Base of the packages of architectures: their blocks, and the lowering of these to IR."""

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
    """Place of a block in a package, and the kinds of code that the target accepts there."""

    name: str
    parses: bool = False
    branches: bool = True
    """True if conditions are allowed."""
    statements: bool = True
    """True if statements are allowed, and therefore temporaries for parts of expressions."""
    aside: bool = False
    """True if no packet passes through the block. It comes last, and programs may omit it."""


Tell = Callable[["ast.Node", str, str], None]
"""Callback that reports a warning. Its arguments are the node, the text and the name of the warning."""


class Package(ABC):
    """A package that programs instantiate as `main`; it is registered by its name in P4."""

    include: ClassVar[str]
    """Include file that declares the package."""
    sites: ClassVar[tuple[Site, ...]]
    """Blocks of the package in order; a nested package is replaced by its blocks."""
    takes: ClassVar[str]
    """`sites` in words."""
    parameters: ClassVar[Mapping[str, range]]
    """Allowed numbers of parameters, by block, because a program may declare the package itself."""
    path: ClassVar[str] = ""
    """Name of the packet path in BMv2 JSON (`__meta__.package`); empty: it is recognised by the blocks' names."""
    tools: ClassVar[frozenset[str]] = frozenset()
    """Tools that support the package, besides the compiler and the built-in switch."""

    leads_to: ClassVar[tuple[str, ...]] = ()
    """Metadata fields, as `instance.field`, that decide after a control where a packet goes."""
    replicates: ClassVar[tuple[str, ...]] = ()
    """Fields of `leads_to` that create copies."""
    bridges: ClassVar[bool] = False
    """True if egress receives the metadata of ingress; otherwise it receives only the packet's bytes."""

    pipelined: ClassVar[bool] = False
    """True if the arguments are pipelines. Each pipe of a switch runs one of them, like a program of its own."""

    bfrt: ClassVar[bool] = False
    """True if programs of the package have a `bf-rt.json`."""

    def __init__(self, low: Lowering) -> None:
        self.low = low

    @abstractmethod
    def begin(self, blocks: list[Block]) -> None:
        """Allocate the headers and metadata that several blocks share."""

    @abstractmethod
    def lower(self, site: Site, block: Block) -> None:
        """Lower one of the blocks into the program."""

    def packet_length(self, call: ast.Call) -> ir.Expr:
        """Return the value of `packet_in.length()`. Raises CompileError if the target does not know the length."""
        raise self.low.error(call, "'length' is not supported on this target")

    @abstractmethod
    def emit_header(self, header: ir.HeaderRef) -> None:
        """Add `header` to the headers that the deparser being lowered appends to the packet."""

    def way(self, machine: Machine) -> Walk:
        """Return the test generator's walk of a packet through the blocks. Raises UserError if there is none."""
        raise UserError(f"tests cannot be generated for programs of '{type(self).__name__}'")

    def prove(self, prover: Prover) -> None:
        """Compute which packets reach which statements. Raises UserError if the package does not support proofs."""
        raise UserError(f"there are no proofs for programs of '{type(self).__name__}'")

    def bfrt_names(self, blocks: list[Block]) -> list[tuple[int, str]]:
        """Return the package's names that have an id in `bf-rt.json`, each with the highest byte of the id."""
        return []

    def publish(self, blocks: list[Block], schema: Schema) -> None:
        """Add the package's own tables to `bf-rt.json`. Raises UserError if BfRuntime does not know the package."""
        raise UserError(f"programs of '{type(self).__name__}' have no bf-rt.json")

    @staticmethod
    def source_names(blocks: list[Block]) -> dict[str, str]:
        """Return the name in the source for each name of storage in the target.

        These are the names of the first parser's parameters.
        """
        params = blocks[0].decl.params
        return {"headers": params[1].name, "metadata": params[2].name}

    @staticmethod
    @abstractmethod
    def warn(blocks: Sequence[ast.ControlDecl | ast.ParserDecl], facts: Facts, tell: Tell) -> None:
        """Warn about differences between the target and the specification of the architecture."""
