"""p4runtime-shell, an independent client, with a built-in switch process and packets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from p4switch.compiler import compile_program
from p4switch.errors import UserError
from p4switch.p4runtime import shell
from tests.p4switch.daemon.conftest import Namespace, wait_until
from tests.p4switch.daemon.test_process import PROGRAM, frame


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return shell.environment()
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.timeout(900)  # the first run installs the shell
def test_session(python: Path, start: Any, namespace: Namespace, tmp_path: Path) -> None:
    compiled = compile_program(PROGRAM)
    program, p4info = tmp_path / "program.json", tmp_path / "p4info.txtpb"
    program.write_text(json.dumps(compiled.json))
    p4info.write_text(text_format.MessageToString(compiled.p4info))
    daemon = start("--no-p4", "--cpu-port", "510")
    wait_until(lambda: Path(daemon.address.partition(":")[2]).exists(), 60)
    session = subprocess.Popen(
        [str(python), str(Path(__file__).with_name("shell_session.py")), daemon.address, str(p4info), str(program)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert session.stdin is not None
    assert session.stdout is not None
    h1, h2 = namespace.raw_socket("h1"), namespace.raw_socket("h2")
    try:
        for line in session.stdout:
            if line == "send\n":
                h1.send(frame(0x0A000001, e=0x1234))
                assert h2.recv(10000) == frame(0x0A000001, e=0x1234)
                session.stdin.write("sent\n")
                session.stdin.flush()
            elif line == "packet out\n":
                assert h2.recv(10000) == bytes(range(60))
                session.stdin.write("received\n")
                session.stdin.flush()
            elif line == "done\n":
                break
        _, errors = session.communicate(timeout=30)
        assert session.returncode == 0, errors
        assert line == "done\n"
    finally:
        session.kill()
