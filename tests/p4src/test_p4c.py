"""p4c accepts the programs, and both compilers generate the same P4Info."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from control_plane import load_balancing, programs
from control_plane.pipelines import P4C
from p4switch import processes
from p4switch.compiler import ast, types
from p4switch.compiler.frontend import parse_and_check
from p4switch.compiler.walk import walk
from tests.p4src.rigs import build_of, compiled

needs_p4c = pytest.mark.skipif(shutil.which(P4C) is None, reason=f"{P4C} is not installed")

# p4c gives every table a default action, and then gives this warning for tables with an action selector.
EXPECTED = "Target does not support default_action for "


@needs_p4c
@pytest.mark.parametrize("load_balancer", [None, *load_balancing.names()])
@pytest.mark.parametrize("name", programs.names())
def test_p4c_has_nothing_to_say(name: str, load_balancer: str | None, tmp_path: Path) -> None:
    command = [P4C, str(programs.program(name).source), "-o", str(tmp_path / "program.json")]
    if load_balancer:
        command += ["-I", str(load_balancing.DIRECTORY), f"-DLOAD_BALANCER={load_balancer}"]
    done = processes.run(command, timeout_s=60)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "warning:" in line or "error:" in line]
    assert [line for line in said if EXPECTED not in line or "ecmp_group" not in line] == []


@needs_p4c
@pytest.mark.parametrize("name", programs.names())
def test_the_control_plane_is_the_same(name: str) -> None:
    """Compare P4Info, including ids. The order of its parts does not matter."""
    own, theirs = compiled(name, "builtin").p4info, compiled(name, "p4c").p4info
    for kind in ("tables", "actions", "action_profiles", "counters", "registers"):
        by_id = [{part.preamble.id: part for part in getattr(p4info, kind)} for p4info in (own, theirs)]
        assert by_id[0] == by_id[1], kind


@pytest.mark.parametrize("name", programs.names())
def test_what_p4c_refuses_for_bmv2(name: str) -> None:
    """These are shifts by amounts of more than 8 bits, and a table with different successors in two places."""
    what = build_of(name, "ecmp")
    program = parse_and_check(what.source, what.include_dirs)
    facts = program.facts
    nodes = [node for top in program.declarations for node in walk(top, facts)]
    amounts = [facts.types[node.right] for node in nodes if isinstance(node, ast.Binary) and node.op in ("<<", ">>")]
    assert [str(t) for t in amounts if isinstance(t, types.Bits) and t.width > 8] == []
    called = [facts.bindings[node].decl for node in nodes if isinstance(node, ast.Call)]
    applied = Counter(decl.name for decl in called if isinstance(decl, ast.TableDecl))
    assert applied
    assert [table for table, times in applied.items() if times > 1] == []


@pytest.mark.parametrize("name", programs.names())
def test_no_program_divides(name: str) -> None:
    """Hardware has no divider, so no `/` and `%` may be left in a program."""
    text = str(compiled(name, "builtin").json)
    assert "'op': '/'" not in text
    assert "'op': '%'" not in text


def test_accurate_does_not_multiply_but_to_choose_a_path() -> None:
    """As the header states, the only product is that of the ECMP hash and a constant."""
    assert str(compiled("accurate", "builtin").json).count("'op': '*'") == str(compiled("ecn", "builtin").json).count(
        "'op': '*'"
    )
