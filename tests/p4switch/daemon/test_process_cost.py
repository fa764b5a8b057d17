"""The benchmark of the switch process, and its baselines."""

import subprocess

from p4switch.daemon import process_cost


def test_the_plain_forwarder_is_there() -> None:
    done = subprocess.run([process_cost._tool()], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "generate INTERFACE" in done.stderr
