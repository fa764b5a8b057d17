"""What a package of an architecture declares: its blocks, and how the program between them becomes IR."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from p4switch.compiler.midend.elaborate import Block
    from p4switch.compiler.midend.lowering import Lowering


class Package(ABC):
    """A package that programs instantiate as `main`."""

    name: ClassVar[str]
    file: ClassVar[str]
    """The include that declares it."""
    parameters: ClassVar[tuple[str, ...]]
    """What its parameters are, in order: the names of blocks."""
    takes: ClassVar[str]
    """The same in words."""

    def __init__(self, low: Lowering) -> None:
        self.low = low

    @abstractmethod
    def begin(self, blocks: list[Block]) -> None:
        """Allocate what outlives the blocks: headers, metadata."""

    @abstractmethod
    def lower(self, where: str, block: Block) -> None:
        """Lower one of the blocks, `where` being its name, into the program."""
