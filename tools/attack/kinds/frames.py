"""Malformed and forged frames on real interfaces: the switch process must continue, and its counts must balance."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from p4switch.compiler import compile_program
from p4switch.engine import pipeline_cost
from tests.p4switch.daemon.conftest import Daemon, Namespace
from tools.attack.attack import P4SRC, Attack, Finding

_FRAMES = 3_000  # an attempt
_LINKS = 3
_PFC = {"pfc": {"priorities": [3, 6], "xoff_bytes": 20_000}, "all_ports": {"rate_bps": 10**8}}
_PAUSE = bytes.fromhex("0180c2000001 020000000001 8808 0101")


def _forged(models: Sequence[bytes], rng: random.Random) -> bytes:
    choice = rng.random()
    if choice < 0.1:
        return rng.randbytes(rng.choice((14, 15, 33, 34, 53, 60, 61, 1500, 9014)))
    if choice < 0.2:
        return (_PAUSE + rng.randbytes(rng.choice((2, 4, 18, 42)))).ljust(rng.choice((16, 34, 60)), b"\0")
    frame = bytearray(rng.choice(models))
    for _ in range(rng.choice((0, 1, 1, 3, 20))):
        frame[rng.randrange(12, len(frame))] = rng.randrange(256)
    if rng.random() < 0.3:
        del frame[rng.randrange(14, len(frame)) :]
    if rng.random() < 0.1:
        frame += rng.randbytes(rng.choice((1, 100, 4000)))
    return bytes(frame)


class Frames(Attack):
    units = "frames"
    short_turns = 12
    memory_bytes = None

    @classmethod
    def missing(cls) -> str | None:
        return "it needs root and iproute2" if os.geteuid() or not shutil.which("ip") else None

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        self._namespace = Namespace(_LINKS)
        self._sockets = [self._namespace.raw_socket(f"h{i}") for i in range(1, _LINKS + 1)]
        self._programs = sorted(P4SRC.glob("*.p4"))
        self._models = [*pipeline_cost.frames(4, None), *pipeline_cost.frames(0xC4, 3), *pipeline_cost.frames(0xC4, 7)]

    def close(self) -> None:
        self._namespace.close()

    def attempt(self, rng: random.Random) -> int:
        path = rng.choice(self._programs)
        compiled = compile_program(path, [path.parent])
        (self.folder / "program.json").write_text(compiled._json_text)
        ports = [text for i in range(1, _LINKS + 1) for text in ("-i", f"{i}@s{i}")]
        for name in ("p4rt", "stats.json", "log"):
            (self.folder / name).unlink(missing_ok=True)
        daemon = Daemon(
            self._namespace, self.folder, str(self.folder / "program.json"), *ports,
            traffic=rng.choice((None, _PFC)),
        )  # fmt: skip
        try:
            daemon.client()
            sent = 0
            for _ in range(_FRAMES):
                with contextlib.suppress(OSError):  # too long for the interface
                    rng.choice(self._sockets).send(_forged(self._models, rng))
                    sent += 1
            time.sleep(0.2)
            if daemon.process.poll() is not None:
                status = daemon.process.returncode
                how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
                raise Finding(f"{path.name}: the switch process ended: {how}: {daemon.log.read_text()[-1000:]}")
            stats = daemon.stop()
        except (AssertionError, subprocess.TimeoutExpired):
            log = daemon.log.read_text()[-2000:] if daemon.log.exists() else ""
            raise Finding(f"{log}{traceback.format_exc()}{path.name}: it does not end as it should") from None
        finally:
            daemon.kill()
        received = sum(port["rx_packets"] for port in stats["ports"])
        if not received:
            raise Finding(f"{path.name}: of {sent} frames none is counted")
        return sent
