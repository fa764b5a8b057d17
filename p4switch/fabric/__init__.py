"""The virtual network: event loop, links, traffic manager, PFC, records. In C, in the engine's extension module."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p4switch.fabric._fabric import Fabric

__all__ = ["Fabric"]


def __getattr__(name: str) -> Any:
    if name == "Fabric":
        from p4switch import engine

        return engine.load().Fabric
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
