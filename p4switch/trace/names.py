"""How the P4 source names what the BMv2 JSON names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p4switch.engine.program import Header, Program

_DEFAULTS = {"headers": "hdr", "metadata": "meta"}
_METADATA = "userMetadata."


class SourceNames:
    """Names of one program. p4cc's compiler writes down those of the parser's parameters; else they are the usual."""

    def __init__(self, program: Program) -> None:
        self._names = {**_DEFAULTS, **program.json.meta.source_names}
        self._program = program
        self._emitted = {name for deparser in program.json.deparsers for name in deparser.order}

    def header(self, header: Header) -> str:
        """Local variables that are headers, and metadata, keep the JSON's name."""
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
        """Of "header.field" of the JSON."""
        header, _, field = name.rpartition(".")
        found = self._program.headers.get(header)
        return self.field(found, field) if found is not None else name

    def element(self, element: Mapping[str, Any]) -> tuple[str, int]:
        """Name and width of an element of a field list."""
        value = element.get("value")
        if element.get("type") == "field" and isinstance(value, list) and value[0] in self._program.headers:
            header = self._program.headers[value[0]]
            if value[1] == "$valid$":
                return f"{self.header(header)}.isValid()", 1
            return self.field(header, value[1]), header.type.field(value[1]).width
        return str(value), int(element.get("bitwidth") or 8)

    def digest_element(self, digest: str, element: Mapping[str, Any]) -> tuple[str, int]:
        """As `element`, of what a digest has: members of its struct, which p4cc's compiler names after the digest."""
        name, width = self.element(element)
        before, found, member = name.rpartition(f"{digest}.")
        return (member if found and (not before or before.endswith(".")) else name), width
