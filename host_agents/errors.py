"""Errors for users of the hosts; each has one line with the wrong object and the expected values."""

from __future__ import annotations


class HostError(ValueError):
    """A request to the hosts that cannot be met."""


class UnknownNameError(HostError):
    """Unknown protocol, mechanism or load balancer."""


class ParameterError(HostError):
    """A parameter is unknown, of the wrong type or out of range."""


class LimitError(HostError):
    """A reaction point, `point`, has an invalid rate or window."""

    def __init__(self, text: str, point: object = None) -> None:
        super().__init__(text)
        self.point = point

    def __reduce__(self) -> tuple[type[LimitError], tuple[object, ...]]:
        return type(self), self.args  # the point is not pickled


class NativeBuildError(HostError):
    """The compiled hosts cannot be built on this machine."""


class PacketError(HostError):
    """A packet's declaration is invalid, its opcode is taken, or a value does not fit its field."""
