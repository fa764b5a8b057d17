"""The compiled hosts equal the interpreted ones bit by bit; if they cannot be compiled, one line gives the reason."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import host_agents
from host_agents import native
from host_agents.compile_hosts import Objects, declarations, used
from host_agents.errors import NativeBuildError

RUN = Path(__file__).with_name("digest_run.py")
ROOT = Path(__file__).parents[2]


def python(*arguments: str, **environment: str) -> tuple[int, str, str]:
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
def test_compiled_and_interpreted_runs_are_identical() -> None:
    status, interpreted, errors = python(str(RUN))
    assert status == 0, errors
    status, compiled, errors = python(str(RUN), "--native")
    assert status == 0, errors
    assert compiled == interpreted
    assert len(set(interpreted.splitlines())) == len(interpreted.splitlines()) == 55


def test_p4cc_native_0_keeps_plain_python() -> None:
    code = "import host_agents; assert not host_agents.use_native(); import host_agents.nic as n; print(n.__file__)"
    status, output, errors = python("-c", code, P4CC_NATIVE="0")
    assert status == 0, errors
    assert output.strip() == str(ROOT / "host_agents" / "nic.py")


def test_too_late() -> None:
    code = "import host_agents, host_agents.nic; host_agents.use_native()"
    status, _, errors = python("-c", code)
    assert status == 1
    assert (
        errors.strip()
        .splitlines()[-1]
        .startswith("host_agents.errors.NativeBuildError: use_native() comes too late: host_agents.")
    )


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("P4CC_CACHE", str(tmp_path))
    return tmp_path


def test_without_a_compiler(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(NativeBuildError, match="install gcc"):
        native.build()
    assert list(empty_cache.rglob("*")) == []


def test_without_python_headers(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: "/nowhere")
    with pytest.raises(NativeBuildError, match=r"/nowhere/Python\.h.*install python3-dev"):
        native.build()
    assert list(empty_cache.rglob("*")) == []


def test_a_failed_build_leaves_nothing(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_luck = empty_cache / "no_luck.py"
    no_luck.write_text("import sys; sys.exit('no luck')")
    monkeypatch.setattr(native, "_COMPILE", no_luck)
    with pytest.raises(NativeBuildError, match="compiling the hosts failed: no luck"):
        native.build()
    assert list((empty_cache / "hosts").iterdir()) == []


def test_a_full_disk_is_named(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files of compilers are outside the cache, and their last line does not name a full disk."""
    full = empty_cache / "full.py"
    full.write_text("import sys; print('cc1: error writing to /t/x.s: No space left on device'); sys.exit('it failed')")
    monkeypatch.setattr(native, "_COMPILE", full)
    monkeypatch.setenv("TMPDIR", "/t")
    with pytest.raises(NativeBuildError, match=r"failed: No space left on device in /t or .*/hosts$"):
        native.build()


def test_mypy_is_not_sent_to_the_folder_of_the_packages(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that mypy gets another folder, because it refuses site-packages."""
    script = empty_cache / "looks.py"
    script.write_text("import os, sys; sys.exit(repr((os.environ['MYPYPATH'], os.path.exists('p4switch/errors.py'))))")
    monkeypatch.setattr(native, "_COMPILE", script)
    with pytest.raises(NativeBuildError, match=r"compiling the hosts failed: \('', True\)"):
        native.build()


_AS_WITH_THE_LIMIT_OVER = """
import os, resource, signal, sys
if resource.getrlimit(resource.RLIMIT_CPU)[0] != 900:
    sys.exit("another limit")
os.kill(os.getpid(), signal.SIGXCPU)
"""


def test_a_build_has_a_limit_of_its_cpu_time(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = empty_cache / "long.py"
    script.write_text(_AS_WITH_THE_LIMIT_OVER)
    monkeypatch.setattr(native, "_COMPILE", script)
    with pytest.raises(NativeBuildError, match="took over 900 s of CPU time"):
        native.build()
    assert list((empty_cache / "hosts").iterdir()) == []


def test_a_build_that_does_not_compute_ends_too(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = empty_cache / "idle.py"
    script.write_text("import time; time.sleep(600)")
    monkeypatch.setattr(native, "_COMPILE", script)
    monkeypatch.setattr(native, "BUILD_WALL_S", 0.1)
    with pytest.raises(NativeBuildError, match=r"took over 0\.1 s$"):
        native.build()


def test_a_damaged_copy_is_built_anew(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def compile_(work: Path, compiler: Sequence[str]) -> None:
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
    damages: tuple[Callable[[], object], ...] = (
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


def test_the_cache_key_covers_every_source(monkeypatch: pytest.MonkeyPatch) -> None:
    before = native._digest()
    assert native._digest() == before
    monkeypatch.setattr(native, "FLAGS", (*native.FLAGS, "-g"))
    assert native._digest() != before


def test_every_module_is_either_compiled_or_known_to_stay_python() -> None:
    stays = {
        *("__init__.py", "config.py", "errors.py", "host_cost.py", "native.py", "ranges.py", "registry.py"),
        *("assignments.py", "compile_hosts.py", "framing.py", "lengths.py", "nic_tables.py"),
    }
    found = {path.name for path in Path(host_agents.__file__).parent.glob("*.py")}
    assert found == stays | set(native.COMPILED)


def test_a_disk_that_is_full_is_one_line(tmp_path: Path) -> None:
    """A limit on file sizes has the effect of a full disk: a write fails in the middle of a file."""
    code = (
        "import resource, host_agents.native as native; resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000));"
        "native.build()"
    )
    status, _, errors = python("-c", code, P4CC_CACHE=str(tmp_path))
    last = errors.strip().splitlines()[-1]
    assert status == 1
    assert last.endswith(f"NativeBuildError: folder {tmp_path}/hosts: File too large; P4CC_CACHE names another folder")
    assert list((tmp_path / "hosts").iterdir()) == []


HEADER = """#ifndef MYPYC_H
#define MYPYC_H
extern PyObject *CPyStatics[17];
extern const char * const CPyLit_Str[];
PyObject *CPyDef_point___step(PyObject *self, tuple_T2 both);
typedef struct {
    PyObject_HEAD
    struct { int of; } inner;
    double _rate;
} PointObject;
typedef struct tuple_T2 {
    PyObject *f0;
} tuple_T2;
struct table {
    int (*call)(PointObject *);
};
typedef int (*function)(void);
#endif
"""


def test_what_a_unit_needs_of_the_headers() -> None:
    """A unit needs the declarations of its names, and what these need; every unit needs those without a name."""
    known: dict[str, list[str]] = {}
    for name, text in declarations(HEADER):
        known.setdefault(name, []).append(text)
    assert sorted(known) == ["", "CPyDef_point___step", "CPyLit_Str", "CPyStatics", "PointObject", "table", "tuple_T2"]
    assert "typedef int (*function)(void);" in known[""]
    assert known["CPyStatics"] == ["extern PyObject *CPyStatics[];"]  # their number does not matter
    own = [text for text in used("x = CPyDef_point___step(y, z);", known) if text not in known[""]]
    assert own == [*known["CPyDef_point___step"], *known["tuple_T2"]]
    assert known["PointObject"][0] in used("struct table t;", known)


class Compiler:
    compiler_so = ("cc",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.compiled: list[str] = []

    def compile(self, sources: Sequence[str], **_options: Any) -> list[str]:
        (source,) = sources
        self.compiled.append(Path(source).name)
        made = self.folder / "made.o"
        made.write_bytes(b"object " + Path(source).read_bytes())
        return [str(made)]


def test_a_unit_is_compiled_when_what_it_needs_has_changed(tmp_path: Path) -> None:
    header, source = tmp_path / "hosts.h", tmp_path / "__native_point.c"
    source.write_text('#include "__native_hosts.h"\nPointObject p;\n')
    compiler = Compiler(tmp_path)

    def compiled(text: str = HEADER) -> int:
        """Build with a header of this text and return the number of compilations so far."""
        header.write_text(text)
        Objects(tmp_path / "objects", compiler, tmp_path).of("point", [source])
        return len(compiler.compiled)

    (tmp_path / "objects").mkdir()
    assert compiled() == compiled() == 1
    assert compiled(HEADER.replace("17", "18").replace("*f0", "*f1").replace("self", "own")) == 1
    assert compiled(HEADER.replace("_rate", "_other")) == 2
    assert compiled() == 2  # known from before
    source.write_text(source.read_text() + "int more;\n")
    assert compiled() == 3
    for kept in (tmp_path / "objects").iterdir():
        kept.write_bytes(b"damaged")
    assert compiled() == compiled() == 4


def test_hosts_of_a_wheel_serve_what_they_were_made_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = tmp_path / "_compiled"
    (shipped / "host_agents").mkdir(parents=True)
    (shipped / "host_agents" / "nic.py").write_text("")
    lines = "".join(f"{digest} {name}\n" for name, digest in native._digests(shipped))
    (shipped / "sha256").write_text(lines)
    monkeypatch.setattr(native, "_SHIPPED", shipped)
    monkeypatch.setattr(native, "_root", lambda: tmp_path / "cache")
    monkeypatch.setattr(native, "_build_in", lambda root, folder, compiler: folder)
    (shipped / "made-for").write_text(native._made_for())
    assert native.build() == shipped
    (shipped / "host_agents" / "nic.py").write_text("damaged")
    assert native.build() != shipped
    (shipped / "host_agents" / "nic.py").write_text("")
    assert native.build() == shipped
    (shipped / "made-for").write_text(native._made_for().replace("librt", "another librt"))
    assert native.build() != shipped
