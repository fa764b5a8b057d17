"""Priority pause frames (802.1Qbb), as a switch sends them."""

_DESTINATION = bytes.fromhex("0180c2000001")
_MAC_CONTROL = bytes.fromhex("8808 0101")
_LEAST_BYTES = 60  # shortest Ethernet frame, without its checksum


def pause_frame(source_mac: bytes, quanta: dict[int, int]) -> bytes:
    """Return a priority pause frame: class -> quanta of 512 bit times; 0 quanta resume."""
    enabled = sum(1 << priority for priority in quanta)
    times = b"".join(quanta.get(priority, 0).to_bytes(2, "big") for priority in range(8))
    return (_DESTINATION + source_mac + _MAC_CONTROL + enabled.to_bytes(2, "big") + times).ljust(_LEAST_BYTES, b"\0")
