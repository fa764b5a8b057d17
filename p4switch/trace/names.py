"""Conversion of names in BMv2 JSON to names in the P4 source."""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler.types import width_of
from p4switch.engine.program import Header, Program
from p4switch.ir.printer import text

_DEFAULTS = {"headers": "hdr", "metadata": "meta"}
_METADATA = "userMetadata."


class SourceNames:
    """Source names of one program.

    p4cc's compiler records the names of the parser's parameters. For other compilers the usual names are assumed.
    """

    def __init__(self, program: Program) -> None:
        self._names = {**_DEFAULTS, **program.nodes.source_names}
        self._program = program
        self._emitted = {header.name for deparser in program.nodes.deparsers for header in deparser.order}

    def header(self, header: Header) -> str:
        """Return the name of a header. Local variables and metadata keep their name in the JSON."""
        if header.metadata:
            return header.name
        if header.name.startswith(_METADATA):
            return self._of_metadata(header.name)
        local = "." in header.name and header.name not in self._emitted
        return header.name if local else f"{self._names['headers']}.{header.name}"

    def _of_metadata(self, name: str) -> str:
        return f"{self._names['metadata']}.{name[len(_METADATA) :]}"

    def field(self, header: Header, name: str) -> str:
        if header.name == "scalars":
            if name.startswith(_METADATA):
                return self._of_metadata(name)
            return name
        return f"{self.header(header)}.{name}"

    def dotted(self, name: str) -> str:
        """Return the name in the source of HEADER.FIELD in the JSON."""
        header, _, field = name.rpartition(".")
        known_header = self._program.headers.get(header)
        return self.field(known_header, field) if known_header is not None else name

    def element(self, element: ir.Expr) -> tuple[str, int]:
        """Return name and width of an element of a field list."""
        if isinstance(element, ir.Valid):
            return f"{self.header(self._program.header(element.header.name))}.isValid()", 1
        width = width_of(element.type) or 1
        if isinstance(element, ir.FieldRef):
            return self.field(self._program.header(element.header), element.name), width
        return text(element), width

    def digest_element(self, digest: str, element: ir.Expr) -> tuple[str, int]:
        """Return name and width of an element of a digest. p4c names its struct after the digest."""
        name, width = self.element(element)
        before, separator, member = name.rpartition(f"{digest}.")
        return (member if separator and (not before or before.endswith(".")) else name), width
