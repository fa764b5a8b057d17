"""The virtual network: event loop, links, traffic manager, PFC, records. In C, in the engine's extension module."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p4switch.fabric._fabric import NEVER_NS, Fabric

__all__ = ["NEVER_NS", "Fabric"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from p4switch import engine

        return getattr(engine.load(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
