"""The compiled hosts: bit by bit what the interpreted ones are, and a clear line where they cannot be had."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import host_agents
from host_agents import native
from host_agents.errors import NativeBuildError

RUN = Path(__file__).with_name("digest_run.py")
ROOT = Path(__file__).parents[2]


def python(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=800,  # compiling takes a minute of one core, and the machine may be busy
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.timeout(900)
def test_compiled_and_interpreted_runs_are_identical():
    status, interpreted, errors = python(str(RUN))
    assert status == 0, errors
    status, compiled, errors = python(str(RUN), "--native")
    assert status == 0, errors
    assert compiled == interpreted
    assert len(set(interpreted.splitlines())) == len(interpreted.splitlines()) == 49


def test_p4cc_native_0_keeps_plain_python():
    code = "import host_agents; assert not host_agents.use_native(); import host_agents.nic as n; print(n.__file__)"
    status, output, errors = python("-c", code, P4CC_NATIVE="0")
    assert status == 0, errors
    assert output.strip() == str(ROOT / "host_agents" / "nic.py")


def test_too_late():
    code = "import host_agents, host_agents.nic; host_agents.use_native()"
    status, _, errors = python("-c", code)
    assert status == 1
    assert (
        errors.strip()
        .splitlines()[-1]
        .startswith("host_agents.errors.NativeBuildError: use_native() comes too late: host_agents.")
    )


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path))
    return tmp_path


def test_without_a_compiler(empty_cache, monkeypatch):
    monkeypatch.setattr(native.shutil, "which", lambda name: None)
    with pytest.raises(NativeBuildError, match="install gcc"):
        native.build()
    assert list(empty_cache.rglob("*")) == []


def test_without_python_headers(empty_cache, monkeypatch):
    monkeypatch.setattr(native.sysconfig, "get_path", lambda name: "/nowhere")
    with pytest.raises(NativeBuildError, match=r"/nowhere/Python\.h.*install python3-dev"):
        native.build()
    assert list(empty_cache.rglob("*")) == []


def test_a_failed_build_leaves_nothing(empty_cache, monkeypatch):
    monkeypatch.setattr(native, "_BUILD", "import sys; sys.exit('no luck')")
    with pytest.raises(NativeBuildError, match="compiling the hosts failed: no luck"):
        native.build()
    assert list((empty_cache / "hosts").iterdir()) == []


def test_a_damaged_copy_is_built_anew(empty_cache, monkeypatch):
    built = []

    def compile_(work, compiler):
        built.append(work)
        (work / "host_agents").mkdir()
        (work / "host_agents" / "nic.so").write_bytes(b"library" * 100)
        (work / "host_agents" / "qp.py").write_bytes(b"source")

    monkeypatch.setattr(native, "_compile", compile_)
    folder = native.build()
    (folder / "host_agents" / "__pycache__").mkdir()
    (folder / "host_agents" / "__pycache__" / "qp.pyc").touch()
    assert native.build() == folder
    assert len(built) == 1
    library = folder / "host_agents" / "nic.so"
    damages = (
        lambda: library.write_bytes(b"library" * 99),
        lambda: library.write_bytes(b"librarz" + b"library" * 99),
        library.unlink,
        lambda: (folder / "host_agents" / "more.py").touch(),
        (folder / "sha256").unlink,
        lambda: (folder / "sha256").write_bytes(b"\xff"),
    )
    for count, damage in enumerate(damages, 2):
        damage()
        assert native.build() == folder
        assert len(built) == count
        assert library.read_bytes() == b"library" * 100
        assert [path.name for path in (empty_cache / "hosts").iterdir()] == [folder.name]
        assert not (folder / "damaged").exists()


def test_the_cache_key_covers_every_source(monkeypatch):
    before = native._digest()
    assert native._digest() == before
    monkeypatch.setattr(native, "FLAGS", (*native.FLAGS, "-g"))
    assert native._digest() != before


def test_every_module_is_either_compiled_or_known_to_stay_python():
    stays = {
        *("__init__.py", "config.py", "errors.py", "host_cost.py", "native.py", "ranges.py", "registry.py"),
        "testing.py",
    }
    found = {path.name for path in Path(host_agents.__file__).parent.glob("*.py")}
    assert found == stays | set(native.COMPILED)


def test_a_disk_that_is_full_is_one_line(tmp_path):
    """A limit on the size of files does what a full disk does: writing fails, in the middle of a file."""
    code = (
        "import resource, host_agents.native as native; resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000));"
        "native.build()"
    )
    status, _, errors = python("-c", code, P4CC_CACHE=str(tmp_path))
    last = errors.strip().splitlines()[-1]
    assert status == 1
    assert last.endswith(f"NativeBuildError: folder {tmp_path}/hosts: File too large; P4CC_CACHE names another folder")
    assert list((tmp_path / "hosts").iterdir()) == []


@pytest.fixture
def copy(empty_cache):
    """Sources as a copy that was compiled has them."""
    folder = empty_cache / "hosts" / native._digest()
    shutil.copytree(native.SOURCES, folder / "host_agents", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def seal(folder):
    (folder / "sha256").write_text("".join(f"{digest} {name}\n" for name, digest in native._digests(folder)))


@pytest.mark.parametrize(
    ("changed", "interpreted"),
    [
        ((), []),
        (("cc/timely.py",), ["cc/timely.py"]),
        (("lb/plb.py", "cc/timely.py"), ["cc/timely.py", "lb/plb.py"]),
        # The others stand on them: no compiled code may know another class by that name.
        (("cc/dctcp.py",), ["cc/dctcp.py"]),
        (("cc/sperc_link.py",), ["cc/sperc.py", "cc/sperc_link.py"]),
        (("cc/base.py",), None),  # and so does the transport
        (("nic.py",), None),
    ],
)
def test_what_a_compiled_copy_needs_interpreted_when_files_were_edited(copy, changed, interpreted):
    for name in changed:
        (copy / "host_agents" / name).write_text("# as it was\n")
    seal(copy)
    found = native._kept()
    assert (found and [str(file.relative_to(native.SOURCES)) for file in found[1]]) == interpreted
    assert found is None or found[0] == copy


def test_a_copy_is_kept_only_whole_and_of_the_same_tools(copy, monkeypatch):
    seal(copy)
    assert native._kept() == (copy, [])
    with monkeypatch.context() as patch:
        patch.setattr(native, "FLAGS", ("-O0",))
        assert native._kept() is None
    (copy / "host_agents" / "cc" / "new.py").touch()
    seal(copy)
    assert native._kept() is None
    (copy / "host_agents" / "cc" / "new.py").unlink()
    (copy / "host_agents" / "nic.py").write_text("")  # damaged
    assert native._kept() is None


def test_an_edited_protocol_runs_interpreted_on_the_compiled_hosts(tmp_path):
    tree = tmp_path / "tree"
    for package in ("host_agents", "p4switch"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    protocol = tree / "host_agents" / "cc" / "timely.py"
    protocol.write_text(protocol.read_text() + "\nEDITED = True\n")
    code = (
        "import host_agents; assert host_agents.use_native()\n"
        "from host_agents import native, nic\nfrom host_agents.cc import hpcc, timely\n"
        "print(timely.EDITED, timely.__file__, nic.__file__.endswith('.so'), hpcc.__file__.endswith('.so'))\n"
        "print(*native.edited())"
    )
    status, _, errors = python("-c", "import host_agents; host_agents.use_native()")  # those that are kept
    assert status == 0, errors
    status, output, errors = python("-c", f"import sys; sys.path.insert(0, {str(tree)!r})\n{code}", P4CC_NATIVE="keep")
    assert status == 0, errors
    assert output.splitlines() == [f"True {protocol} True True", str(protocol)]
