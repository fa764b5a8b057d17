"""p4cc installed from a wheel, and an extension in another folder, in both worlds."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from harness.measure.results import load_all
from tests.mininet.networks import alone, needs_mininet

ROOT = Path(__file__).parents[2]
NOT_SOURCES = shutil.ignore_patterns(".*", "tests", "docs", "build", "runs", "demo", "*.egg-info", "__pycache__")
SMALL = ("--set", "workload.size_bytes=50000", "--set", "workload.waves=1", "--set", "workload.senders=2")


def done(command: list[str], cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ended = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `bin` folder of an environment with the wheel. It has the dependencies of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "source", ignore=NOT_SOURCES)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps"]
    pip = [sys.executable, "-m", "pip"]
    done([*pip, "wheel", *quiet, "--no-build-isolation", "-w", str(folder), str(folder / "source")], folder)
    shutil.rmtree(folder / "source")
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", symlinks=True)
    python = folder / "env" / "bin" / "python"
    done([*pip, "--python", str(python), "install", *quiet, str(wheel)], folder)
    (libraries,) = (folder / "env" / "lib").glob("python*/site-packages")
    # Behind its own, and without their .pth files, one of which would lead back to the repository.
    (libraries / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return python.parent


@pytest.fixture
def extension(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples" / "quell", tmp_path / "mine"))


def test_the_extension_in_virtual_time(installed: Path, extension: Path, tmp_path: Path) -> None:
    where = done(
        [str(installed / "python"), "-c", "import p4cc, harness; print(p4cc.__file__, harness.__file__)"], tmp_path
    )
    assert all(file.startswith(str(installed.parent)) for file in where.split())
    done([str(installed / "p4cc"), "run", "mine/quell.toml", *SMALL, "--out", "out"], tmp_path)
    quell, dcqcn = load_all(tmp_path / "out")
    assert (quell.summary["protocol"], dcqcn.summary["protocol"]) == ("quell", "dcqcn")
    assert quell.summary["flows_delivered"] == dcqcn.summary["flows_delivered"] == 2
    assert quell.table("port_delay")["value"].max() > 0
    assert "Smoothed queueing delay of the busiest port" in (tmp_path / "out" / "report.html").read_text()
    done([str(installed / "p4cc"), "replay", "out", "--run", "quell-seed1"], tmp_path)
    assert "class Recording" in (tmp_path / "replay.html").read_text()


def test_its_notebook(installed: Path, extension: Path, tmp_path: Path) -> None:
    told = done([str(installed / "python"), "mine/notebook.py"], tmp_path)
    assert "leaves port 2 with a delay of 1234 units" in told
    assert (tmp_path / "port-delay.svg").is_file()


@needs_mininet
def test_the_extension_on_real_frames(installed: Path, extension: Path, tmp_path: Path) -> None:
    with alone():
        command = [str(installed / "p4cc"), "run", "mine/quell.toml", *SMALL, "--world", "mininet"]
        done([*command, "--cc", "mine/quell.py", "--out", "out"], tmp_path)
    (result,) = load_all(tmp_path / "out")
    assert (result.summary["protocol"], result.summary["flows_delivered"]) == ("quell", 2)
    assert result.table("port_delay")["value"].max() > 0
