"""C with if and switch takes the same path through a graph as the graph itself."""

import random
import subprocess
from pathlib import Path

from p4switch import native
from p4switch.engine import cexpr, flow
from p4switch.engine.cexpr import C
from p4switch.engine.cnodes import Do, Function, source

_GRAPHS = 200
_STEPS = 40
_HEAD = """\
#include <setjmp.h>
#include <stdio.h>
static jmp_buf enough;
static unsigned state, steps;
static int draw(int n) { state = state * 1103515245u + 12345u; return (int)(state >> 16) % n; }
static void seen(int n)
{
    printf("%d ", n);
    if (++steps == STEPS)
        longjmp(enough, 1);
}
"""


def seen(number: int) -> Do:
    return Do(cexpr.call("seen", "", number))


def draws(count: int) -> C:
    return cexpr.call("draw", "int", count)


def _graph(rng: random.Random) -> dict[str, flow.Node]:
    """Return jumps, conditions and choices to any node or the end, with loops and endless paths."""
    names = [f"n{i}" for i in range(rng.randint(1, 9))]
    forward = rng.random() < 0.5

    def target(at: int) -> str | None:
        return rng.choice([*(names[at + 1 :] if forward else names), None])

    nodes = {}
    for at, name in enumerate(names):
        node = nodes[name] = flow.Node([seen(at)], target(at))
        kind = rng.randrange(3)
        if kind == 1:
            node.condition, node.yes = draws(2), target(at)
        elif kind == 2:
            node.value = draws(4)
            node.cases = [(cexpr.node(i), [seen(100 + i)], target(at)) for i in range(rng.randint(1, 3))]
    return nodes


def _walk(nodes: dict[str, flow.Node], seed: int) -> list[int]:
    state = seed
    out: list[int] = []

    def draw(n: int) -> int:
        nonlocal state
        state = (state * 1103515245 + 12345) % (1 << 32)
        return (state >> 16) % n

    place: str | None = "n0"
    while place is not None and len(out) < _STEPS:
        node = nodes[place]
        out.append(int(place[1:]))
        place = node.next
        if node.condition:
            place = node.yes if draw(2) else node.next
        elif node.cases:
            chosen = draw(4)
            if chosen < len(node.cases):
                out.append(100 + chosen)
                place = node.cases[chosen][2]
    return out[:_STEPS]


def test_text_goes_where_the_graph_goes(tmp_path: Path) -> None:
    rng = random.Random(1)
    graphs = [_graph(rng) for _ in range(_GRAPHS)]
    text = [f"#define STEPS {_STEPS}\n", _HEAD]
    for i, nodes in enumerate(graphs):
        body = flow.statements(nodes, "n0", lambda name: f"label_{name}")
        text.append(source([Function("static void", f"graph_{i}", (), body)]))
    text.append("int main(void)\n{\n")
    for i in range(_GRAPHS):
        text += [f"    state = {i}u + seed; steps = 0;\n    if (!setjmp(enough)) graph_{i}();\n    puts(\"\");\n"
                 .replace("seed", str(seed)) for seed in (0, 1000, 2000)]
    text.append("    return 0;\n}\n")
    (tmp_path / "graphs.c").write_text("".join(text))
    program = str(tmp_path / "graphs")
    subprocess.run([*native.compiler(), "-O0", str(tmp_path / "graphs.c"), "-o", program], check=True, timeout=60)
    lines = subprocess.run([program], check=True, capture_output=True, text=True, timeout=20).stdout.splitlines()
    want = [_walk(nodes, i + seed) for i, nodes in enumerate(graphs) for seed in (0, 1000, 2000)]
    assert [list(map(int, line.split())) for line in lines] == want


def test_a_chain_is_no_deeper_than_compilers_allow() -> None:
    names = [f"n{i}" for i in range(400)]
    nodes = {
        name: flow.Node([seen(i)], names[i + 1] if i + 1 < len(names) else None, condition=draws(2), yes=None)
        for i, name in enumerate(names)
    }
    text = source([Function("void", "chain", (), flow.statements(nodes, "n0", lambda name: name))])
    assert max(len(line) - len(line.lstrip()) for line in text.splitlines()) < 4 * 64
    assert text.count("seen(") == 400
