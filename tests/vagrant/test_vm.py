"""The VM's files, as far as they can be checked without a VM."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "vagrant"
SCRIPT = FOLDER / "provision.sh"
VAGRANTFILE = FOLDER / "Vagrantfile"


def settings() -> dict[str, str]:
    lines = (FOLDER / "versions.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_the_script_is_clean() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", "-x", SCRIPT], cwd=FOLDER.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_script_can_be_run() -> None:
    assert SCRIPT.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", SCRIPT], check=True)


def test_settings_read_the_same_in_shell_and_ruby() -> None:
    """The Vagrantfile splits lines at the first =; the shell also interprets quotes, spaces, $ and so on."""
    for name, value in settings().items():
        assert re.fullmatch(r"[A-Z][A-Z0-9_]*", name)
        assert re.fullmatch(r"[A-Za-z0-9._:/+-]+", value), f"{name}: {value}"


def test_every_setting_is_used() -> None:
    used = SCRIPT.read_text() + VAGRANTFILE.read_text()
    for name in settings():
        assert re.search(rf"\$\{{?{name}\b|versions\.fetch\(\"{name}\"\)", used), name


def test_versions_and_addresses_are_in_one_place() -> None:
    files = [path for path in FOLDER.iterdir() if path.is_file() and path.name != "versions.env"]
    files.append(FOLDER.parent / "docs" / "vm.md")
    assert len(files) == 3
    for path in files:
        text = path.read_text()
        for name, value in settings().items():
            assert value not in text, f"{path.name} repeats {name}"
        assert "://" not in text, f"{path.name} has an address of its own"
        assert not re.search(r"(?<!Ubuntu )\b\d+\.\d+\.\d+", text), f"{path.name} has a version of its own"


def test_only_an_ubuntu_that_is_new_enough_is_touched(tmp_path: Path) -> None:
    """Check that no command that changes the system is called: PATH contains none."""
    if Path("/etc/os-release").read_text().find("ID=ubuntu") >= 0:
        pytest.skip("this is an Ubuntu")
    for tool in ("dirname", "id", "bash"):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    done = subprocess.run([tmp_path / "bash", SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert "expected" in done.stderr
    assert len(done.stderr.splitlines()) == 1
