"""Arrays and their description in one buffer, from which a browser reads without copying.

    u32 length of the head | head (JSON) | spaces up to a multiple of 8 | arrays, each at a multiple of 8

All is little-endian, and compressed with gzip. The head's key `arrays` has the type, offset and count of each array.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_ALIGNED = 8
_WHOLE = ((np.uint8, "u1"), (np.uint16, "u2"), (np.uint32, "u4"))


def packed(head: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return the packed arrays.

    Non-negative integers take as few bytes as they need, all others 8 or 4.
    """
    index: dict[str, tuple[str, int, int]] = {}
    body = bytearray()
    for name, values in arrays.items():
        kind, raw = _raw(np.ascontiguousarray(values).ravel())
        index[name] = (kind, len(body), values.size)
        body += raw
        body += bytes(-len(body) % _ALIGNED)
    text = json.dumps({**head, "arrays": index}, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 4) % _ALIGNED)
    return gzip.compress(len(text).to_bytes(4, "little") + text + bytes(body), compresslevel=6, mtime=0)


def unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the unpacked arrays in the same way as the browser."""
    raw = gzip.decompress(content)
    length = int.from_bytes(raw[:4], "little")
    head: dict[str, Any] = json.loads(raw[4 : 4 + length])
    arrays = {
        name: np.frombuffer(raw, f"<{kind}", count, 4 + length + offset)
        for name, (kind, offset, count) in head.pop("arrays").items()
    }
    return head, arrays


def _raw(values: Array) -> tuple[str, bytes]:
    if values.dtype == np.float32:
        return "f4", values.astype("<f4").tobytes()
    if values.dtype.kind in "iub":
        low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
        for dtype, kind in _WHOLE:
            if low >= 0 and high <= np.iinfo(dtype).max:
                return kind, values.astype(f"<{kind}").tobytes()
        if low >= -(2**31) and high < 2**31:
            return "i4", values.astype("<i4").tobytes()
    return "f8", values.astype("<f8").tobytes()
