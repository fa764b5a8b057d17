"""P4Runtime: the messages, the device that they control, and the server around it.

    device = Device(build, device_id=1)     # build: ir.Program -> engine Switch
    device.set_forwarding_pipeline_config(request)
    device.write(request)
    for response in device.read(request): ...

Errors are `P4RuntimeError`, with the canonical codes of the P4Runtime specification.
"""
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p4switch.p4runtime.device import Device
    from p4switch.p4runtime.errors import P4RuntimeError

__all__ = ["Device", "P4RuntimeError"]


def __getattr__(name: str) -> Any:
    # Imported on demand, so that the compiler can import the messages without the device.
    if name == "Device":
        from p4switch.p4runtime.device import Device
        return Device
    if name == "P4RuntimeError":
        from p4switch.p4runtime.errors import P4RuntimeError
        return P4RuntimeError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
