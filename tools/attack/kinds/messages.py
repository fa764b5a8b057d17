"""P4Runtime batches, reads, programs and stream messages: the switch process has to answer, continue and end."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import grpc

from p4switch.compiler import compile_program
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, p4info_pb2, p4runtime_pb2
from tools.attack.attack import P4SRC, ROOT, Attack, Finding
from tools.attack.filling import Filler, spoilt

_REQUESTS = 150  # an attempt
_STREAMS = 20
_CALL_S = 120.0  # limit of a call on a busy machine; some read a million cells
_END_S = 20.0
_MAIN = "from p4cc.cli import main; main()"
_SERVICE = "/p4.v1.P4Runtime/"
_REQUEST_OF = {
    "Write": p4runtime_pb2.WriteRequest,
    "Read": p4runtime_pb2.ReadRequest,
    "SetForwardingPipelineConfig": p4runtime_pb2.SetForwardingPipelineConfigRequest,
    "GetForwardingPipelineConfig": p4runtime_pb2.GetForwardingPipelineConfigRequest,
    "Capabilities": p4runtime_pb2.CapabilitiesRequest,
}
_SERVERS_OWN = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class _Maker(Filler):
    """Generator of random messages that are mostly valid for a program's P4Info."""

    def __init__(self, info: Message, rng: random.Random) -> None:
        kinds = ("tables", "actions", "action_profiles", "counters", "direct_counters", "meters", "direct_meters",
                 "registers", "value_sets", "digests")  # fmt: skip
        super().__init__([item.preamble.id for kind in kinds for item in getattr(info, kind)], rng)
        self._info = info

    def updates(self) -> list[Message]:
        """Return updates of existing entities, mostly valid ones."""
        generated = []
        for _ in range(self.rng.choice((1, 1, 3, 20))):
            update = p4runtime_pb2.Update(type=self.rng.randrange(4))
            if self.rng.random() < 0.6 and self._info.tables:
                self._entry(update.entity.table_entry)
            else:
                self.fill(update.entity)
            generated.append(update)
        return generated

    def _entry(self, entry: Message) -> None:
        rng = self.rng
        table = rng.choice(self._info.tables)
        entry.table_id = table.preamble.id
        for key in table.match_fields:
            if rng.random() < 0.1:
                continue
            match = entry.match.add(field_id=key.id)
            value = rng.randbytes(-(-key.bitwidth // 8)) if rng.random() < 0.3 else bytes([rng.randrange(4)])
            kind = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}.get(key.match_type, "exact")
            part = getattr(match, kind)
            if kind == "range":
                part.low, part.high = sorted((value, rng.randbytes(len(value))))
            else:
                part.value = value
            if kind == "lpm":
                part.prefix_len = rng.choice((0, 8, key.bitwidth, key.bitwidth + 1))
            if kind == "ternary":
                part.mask = b"\xff" * len(value)
        entry.priority = rng.choice((0, 1, 1, 2, 2**31 - 1))
        if table.action_refs:
            action_id = rng.choice(table.action_refs).id
            entry.action.action.action_id = action_id
            for action in self._info.actions:
                for parameter in action.params if action.preamble.id == action_id else ():
                    entry.action.action.params.add(param_id=parameter.id, value=bytes([rng.randrange(3)]))
        if rng.random() < 0.1:
            self.fill(entry)


class Messages(Attack):
    units = "requests"
    short_turns = 8
    memory_bytes = None
    patience_s = 600

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        own = [*P4SRC.glob("*.p4"), ROOT / "tests" / "p4switch" / "p4runtime" / "everything.p4"]
        self._programs = [compile_program(path, [path.parent]) for path in sorted(own)]
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def attempt(self, rng: random.Random) -> int:
        program = rng.choice(self._programs)
        (self.folder / "program.json").write_text(program._json_text)
        (self.folder / "p4info.bin").write_bytes(program._p4info_bytes)
        socket, log = self.folder / "socket", self.folder / "log"
        socket.unlink(missing_ok=True)
        log.unlink(missing_ok=True)
        arguments = [
            "switch", str(self.folder / "program.json"), "--p4info", str(self.folder / "p4info.bin"),
            "--device-id", "1", "--cpu-port", "510", "--log-file", str(log), "--grpc-server-addr", f"unix:{socket}",
        ]  # fmt: skip
        self._process = process = subprocess.Popen([sys.executable, "-c", _MAIN, *arguments], stderr=subprocess.PIPE)
        end = time.monotonic() + _CALL_S
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise Finding(f"the switch does not start: {self._told()}")
            time.sleep(0.02)
        last = b""
        try:
            with GrpcClient(f"unix:{socket}", 1, election_id=1 << 64, timeout_s=_CALL_S) as client:
                for _ in range(_REQUESTS):
                    method, last = self._request(program.p4info, rng)
                    self._call(client._channel, method, last)
            for _ in range(_STREAMS):
                last = self._stream(f"unix:{socket}", program.p4info, rng)
            with GrpcClient(f"unix:{socket}", 1, election_id=2 << 64, timeout_s=_CALL_S) as client:
                client.set_pipeline(program.p4info, program._json_text.encode())
                list(client.read([p4runtime_pb2.Entity(table_entry={})]))
        except P4RuntimeError as error:
            raise Finding(f"a request that is right is refused: {error}; {self._told()}", {"last": last}) from None
        except Finding as finding:
            raise Finding(f"{finding}; {self._told()}", {"request": last, **finding.files}) from None
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            raise Finding(f"SIGTERM does not end it within {_END_S:g} s") from None
        if process.returncode or "an error of the server's own" in log.read_text():
            raise Finding(f"exit status {process.returncode}: {self._told()}")
        return _REQUESTS + _STREAMS

    def _told(self) -> str:
        log = self.folder / "log"
        return f"its log: {log.read_text()[-2000:]}" if log.exists() else "it has no log"

    def _request(self, info: Message, rng: random.Random) -> tuple[str, bytes]:
        maker = _Maker(info, rng)
        method = rng.choices(list(_REQUEST_OF), (24, 10, 1, 1, 1))[0]
        message = _REQUEST_OF[method](**({} if method == "Capabilities" else {"device_id": 1}))
        if method == "Write":
            message.updates.extend(maker.updates())
            message.atomicity = rng.randrange(3)
        elif method == "Read":
            for _ in range(rng.choice((1, 2))):
                maker.fill(message.entities.add())
        elif method == "SetForwardingPipelineConfig":
            message.action = rng.choice((1, 2, 3, 3, 4, 5))
            program = rng.choice(self._programs)
            message.config.p4_device_config = program._json_text.encode()
            message.config.p4info.CopyFrom(program.p4info)
            if rng.random() < 0.7:
                changed = spoilt(program._p4info_bytes, rng)
                try:
                    message.config.p4info.CopyFrom(p4info_pb2.P4Info.FromString(changed))
                except Exception:
                    maker.fill(message.config.p4info)
        if method in ("Write", "SetForwardingPipelineConfig"):
            message.election_id.high = 1
        data = message.SerializeToString()
        return method, spoilt(data, rng) if rng.random() < 0.1 else data

    @staticmethod
    def _call(channel: grpc.Channel, method: str, data: bytes) -> None:
        try:
            if method == "Read":
                for _ in channel.unary_stream(_SERVICE + method)(data, timeout=_CALL_S):
                    pass
            else:
                channel.unary_unary(_SERVICE + method)(data, timeout=_CALL_S)
        except grpc.RpcError as error:
            if error.code() in _SERVERS_OWN and "deserializ" not in (error.details() or ""):
                raise Finding(f"{method}: {error.code().name}: {error.details()}") from None

    @staticmethod
    def _stream(address: str, info: Message, rng: random.Random) -> bytes:
        """Open a stream with a few messages, most of which are left without waiting for answers."""
        sent = _Maker(info, rng).stream(p4runtime_pb2.StreamMessageRequest)
        channel = grpc.insecure_channel(address)
        call = channel.stream_stream(_SERVICE + "StreamChannel")(iter(sent))
        if rng.random() < 0.5:
            try:
                for _ in call:
                    pass
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.INTERNAL and "deserializ" not in (error.details() or ""):
                    files = {"stream": b"".join(sent)}
                    raise Finding(f"stream: {error.code().name}: {error.details()}", files) from None
        call.cancel()
        channel.close()
        return b"".join(sent)
