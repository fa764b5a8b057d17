"""Fuzzer for generated pipelines, which is a separate program.

It sends random packets and control-plane calls, under AddressSanitizer and UndefinedBehaviorSanitizer.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from p4switch import engine, native
from p4switch.bmv2 import read
from p4switch.errors import UserError

_FUZZ_C = Path(__file__).parent / "fuzz.c"


class FuzzError(UserError):
    """Error that the fuzzer found: the report of a sanitizer, or packets that are not accounted for."""


def build(document: Mapping[str, Any]) -> Path:
    """Return the fuzzer of the pipeline of a BMv2 JSON.

    Raises ProgramError, native.BuildError.
    """
    pipeline = engine.generated(read(document), traced=True)
    headers = [*engine.C_FOLDER.glob("*.h"), *pipeline.program.path.headers]
    flags = [*native.SANITIZE, "-O1", "-Wno-unused", "-DP4_TRACE", engine.abi_flag()]
    return native.build_text(
        "fuzzer", pipeline.text, headers=headers, sources=[_FUZZ_C, *engine.RUNTIME_SOURCES], flags=flags, suffix="",
    )


def constants(document: Any) -> set[bytes]:
    """Return the numbers in the JSON, which are useful inputs because parsers and tables match on them."""
    numbers: set[bytes] = set()
    if isinstance(document, Mapping):
        for item in document.values():
            numbers |= constants(item)
    elif isinstance(document, list):
        for item in document:
            numbers |= constants(item)
    elif isinstance(document, str) and re.fullmatch("0x[0-9a-fA-F]+", document):
        digits = document[2:]
        numbers.add(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits))
    return numbers


def run(document: Mapping[str, Any], *, seed: int, packets: int, frames: Iterable[bytes] = (),
        timeout_s: float = 300) -> str:
    """Send random packets, some of which contain `frames`, through the pipeline.

    Returns a line with the numbers of forwarded, dropped and other packets. Raises FuzzError with the
    report of a failure.
    """
    whole = list(frames)
    words = [*sorted(constants(document)), *whole]
    with tempfile.NamedTemporaryFile(suffix=".words") as file:
        for word in words:
            file.write(len(word).to_bytes(2, "big") + word)
        file.flush()
        try:
            done = subprocess.run(
                [str(build(document)), str(seed), str(packets), file.name, str(len(whole))],
                capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise FuzzError(f"seed {seed}: {packets} packets took over {timeout_s:g} s") from error
    if done.returncode:
        report = done.stderr.strip() or f"status {done.returncode}"
        raise FuzzError(f"seed {seed}: {report}")
    return done.stdout.strip()
