"""Forged frames at two hosts of each protocol: they are counted, without crash, growth or endless activity."""

from __future__ import annotations

import random
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.worlds.native_hosts import prefer_native_hosts
from tools.attack.attack import Attack, Finding

prefer_native_hosts()

from host_agents import registry, wire  # noqa: E402  (once it is known whether they are compiled)
from host_agents.config import SleekConfig  # noqa: E402
from host_agents.errors import HostError, ParameterError  # noqa: E402
from host_agents.timers import NEVER  # noqa: E402
from p4cc._link import connect, pair, trimmed  # noqa: E402
from tools.attack.forging import forged  # noqa: E402

_ROUNDS = 1_000  # an attempt
_LAST_HOP_DSCP = 50
# Steps after the last forged frame. In EQDS a forged RTS requests a window of pulls, and so does
# each RTS of the sender itself.
_AFTERWARDS = 300_000


class Hosts(Attack):
    units = "forged frames"
    short_turns = 1_300

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        self._protocols = sorted(registry.protocols())
        self._balancers = sorted(registry.load_balancers())

    def attempt(self, rng: random.Random) -> int:
        cc, lb = rng.choice(self._protocols), rng.choice(self._balancers)
        try:
            return self._one(cc, lb, rng)
        except Finding:
            raise
        except Exception:
            raise Finding(f"{cc}, {lb}: {traceback.format_exc()}") from None

    def _one(self, cc: str, lb: str, rng: random.Random) -> int:
        reliability = rng.choice(("go-back-n", "selective-repeat"))
        config: dict[str, Any] = {}
        if reliability == "selective-repeat" and rng.random() < 0.5:
            config = {"loss_packets": 0, "last_hop_dscp": _LAST_HOP_DSCP}
            config["ack_every_bytes"] = rng.choice((0, 1, 4_000, 100_000))
            config["sleek"] = SleekConfig(windows=rng.choice((0.0, 1.5)), as_simulated_resend=rng.random() < 0.5)
        parameters = {"oversubscription": 4} if cc == "rccc" and rng.random() < 0.5 else None
        try:
            a, b = pair(cc, parameters, load_balancer=lb, reliability=reliability, **config)
            qa, qb = connect(a, b)
        except (ParameterError, HostError):  # the protocol is for another
            return 0
        qa.post(10_000)
        qb.post(10_000)
        now_ns, count = 0, 0
        seen: list[bytes] = []
        for _ in range(_ROUNDS):
            now_ns += rng.choice((0, 1, 500, 500, 500, 20_000))
            for sender, receiver in ((a, b), (b, a)):
                if (frame := sender.next_frame(now_ns)) is not None:
                    seen.append(frame)
                    fate = rng.random()
                    if fate < 0.8:
                        receiver.receive(now_ns, frame)
                    elif fate < 0.9 and frame[wire.BTH] <= wire.SEND_ONLY:
                        seen.append(trimmed(frame))
                        receiver.receive(now_ns, seen[-1])
                for _ in range(rng.randrange(4) if seen else 0):
                    count += 1
                    receiver.receive(now_ns, forged(rng.choice(seen[-50:]), rng))
        # After a forged ACK a sender may drop data that its peer lacks. Then it resends the rest at
        # each time-out, until its retries are used up. So in the end nothing is sent, whatever was
        # forged.
        frames, before = 0, qa.stats.timeouts + qb.stats.timeouts
        for _ in range(_AFTERWARDS):
            wakeups = (a.next_wakeup_ns(), b.next_wakeup_ns())
            if min(wakeups) >= NEVER:
                return count
            now_ns = max(now_ns + 100, min(wakeups))
            for sender, receiver in ((a, b), (b, a)):
                if (frame := sender.next_frame(now_ns)) is not None:
                    frames += 1
                    receiver.receive(now_ns, frame)
        timeouts = qa.stats.timeouts + qb.stats.timeouts - before
        sent = f"no silence, {frames} frames and {timeouts} time-outs after the last forged one"
        raise Finding(f"{cc}, {lb}, {reliability}: {sent}")
