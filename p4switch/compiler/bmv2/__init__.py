"""BMv2 JSON from a lowered program (format: behavioral-model's docs/JSON_format.md)."""

from p4switch.compiler.bmv2.program import to_json

__all__ = ["to_json"]
