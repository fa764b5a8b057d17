"""Random packets and control-plane calls under AddressSanitizer and UndefinedBehaviorSanitizer."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from p4switch import ir, native
from p4switch.bmv2 import read
from p4switch.compiler import compile_program
from p4switch.engine import build, fuzz, load, pipeline_cost
from tests.p4switch.engine.test_json_errors import everything

if TYPE_CHECKING:
    from p4switch.engine.codegen import Generated

P4SRC = Path(__file__).parents[3] / "p4src"


def test_a_bit_of_everything() -> None:
    line = fuzz.run(everything(), seed=1, packets=20_000)
    assert line.startswith("20000 packets: ")
    assert fuzz.run(everything(), seed=1, packets=20_000) == line


@pytest.mark.parametrize("name", ["ecn", "int", "trim", "accurate"])
def test_programs(name: str) -> None:
    frames = pipeline_cost.frames(4, None) + pipeline_cost.frames(0xC4, 3) + pipeline_cost.frames(0xC4, 7)
    document = compile_program(P4SRC / f"{name}.p4").json
    line = fuzz.run(document, seed=2, packets=10_000, frames=frames)
    assert line.startswith("10000 packets: ")


def test_the_fuzzer_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer finds that a pipeline reads beyond its headers, so a run without findings is meaningful."""
    from p4switch import engine

    right = engine.generated

    def wrong(program: ir.Program, *, traced: bool) -> "Generated":
        extract, copy = r"p4_extract\((.*), frame, &at, len, have, \d+\)", r"memcpy(\1, frame->data + at, 2000)"
        made = right(program, traced=traced)
        text, count = re.subn(extract, copy, made.text)
        assert count
        return replace(made, text=text)

    monkeypatch.setattr(engine, "generated", wrong)
    with pytest.raises(fuzz.FuzzError, match=r"AddressSanitizer|runtime error"):
        fuzz.run(everything(), seed=1, packets=2000)


def test_benchmark_compares_equals() -> None:
    for name in ("ecn", "int", "collective"):
        compiled = compile_program(P4SRC / f"{name}.p4").program
        generated, baseline = pipeline_cost.outputs(name, compiled)
        assert generated == baseline
        assert len(generated[0]) == 1


def test_libraries_of_another_version_are_refused(tmp_path: Path) -> None:
    program = read(everything())
    from p4switch import engine

    with pytest.raises(OSError, match=r"none\.so: cannot open shared object file"):  # the message of the dynamic loader
        load().Switch(str(tmp_path / "none.so"))
    with pytest.raises(ValueError, match="not a compiled pipeline"):
        load().Switch("libm.so.6")
    made = engine.generated(program)
    library = native.build_text("old", made.text, headers=[*engine.PIPELINE_HEADERS, *made.program.path.headers],
                                flags=["-DP4_ABI=1", "-Wno-unused"])
    with pytest.raises(ValueError, match="another version"):
        load().Switch(str(library))
    load().Switch(str(build(program)))
