"""Pass that gives a table the same successors in all its applications, as BMv2 requires.

If the applications have different successors, a field records which one is executed, and conditions after the table
test that field.
"""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler.diagnostics import UnsupportedError
from p4switch.compiler.midend import fold
from p4switch.ir.graph import reverse_postorder


def run(program: ir.Program) -> None:
    for pipeline in program.pipelines:
        sites: dict[ir.Table, list[ir.Block]] = {}
        for block in reverse_postorder(pipeline.start):
            if isinstance(block.end, ir.Apply):
                sites.setdefault(block.end.table, []).append(block)
        for table, blocks in sites.items():
            applies = [b.end for b in blocks if isinstance(b.end, ir.Apply)]
            if any(a.on != applies[0].on or a.default is not applies[0].default for a in applies):
                _dispatch(program, table, blocks, applies)


def _dispatch(program: ir.Program, table: ir.Table, blocks: list[ir.Block], applies: list[ir.Apply]) -> None:
    name = f"{table.name}.$site"
    t = ir.Bits(32)
    program.scalars[name] = t
    site = ir.FieldRef("scalars", name, t)
    labels = {label for a in applies for label in a.on}
    # Labels are compared one by one, because `False` and the number 0 of an action are equal in a set.
    if len({isinstance(label, bool) for a in applies for label in a.on}) > 1:
        raise UnsupportedError(
            f"table '{table.name}' is applied both for its hit or miss and for its action: "
            "this target can only continue by one of them",
            table.span,
        )
    for i, block in enumerate(blocks):
        block.ops.append(ir.Assign(site, ir.Const(i, t)))

    def choose(targets: list[ir.Block]) -> ir.Block:
        result = targets[-1]
        for i in reversed(range(len(targets) - 1)):
            if targets[i] is not result:
                test = fold.make("==", ir.BOOL, site, ir.Const(i, t))
                result = ir.Block(end=ir.Branch(test, targets[i], result))
        return result

    on = {label: choose([a.on.get(label, a.default) for a in applies]) for label in sorted(labels)}
    default = choose([a.default for a in applies])
    for block in blocks:
        block.end = ir.Apply(table, on, default)
