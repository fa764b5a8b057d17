"""Report of a fit: on a terminal, as JSON, as a drawing, and as the table of a documentation page."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from p4switch.errors import UserError
from p4switch.fit.findings import Fit
from p4switch.fit.flow import Vertex

BEGIN, END = "<!-- p4cc fit: begin -->", "<!-- p4cc fit: end -->"
_COLOURS = {"table": "#4c72b0", "condition": "#dd8452", "register": "#c44e52", "hash": "#8172b3"}
_OPERATION = "#b0b0b0"
_LABELS = 40  # with more nodes, labels would be unreadable


def lines(fit: Fit) -> list[str]:
    """Return the report on one target: needs and limits, then registers, then findings."""
    target = fit.target
    result = [f"{fit.program} on {target.name} ({target.about}): {'fits' if fit.fits else 'does not fit'}"]
    result += [f"  {name:<10} {text}" for name, text in needs(fit)]
    for access in fit.registers:
        shape = f"{access.operations} operations and {access.conditions} conditions between read and write"
        where = ", ".join(access.pipelines)
        result.append(f"  register   {access.name}: {access.accesses} accesses a packet in {where}; {shape}")
    result += [f"{finding}" for finding in fit.findings]
    return result


def needs(fit: Fit) -> list[tuple[str, str]]:
    """Return the name of each resource, and its use as USED of AVAILABLE."""
    target, parser, phv = fit.target, fit.parser, fit.phv
    live = phv.header_bits + phv.metadata_bits
    result = [("stages", stages(fit) + _of(target.stages))]
    for kind, has in (("sram", target.sram), ("tcam", target.tcam)):
        if has is not None and has.blocks:
            result.append((kind, f"{fit.memory.get(kind, 0)} blocks" + _of(has.blocks * (target.stages or 1))))
    room = None if target.phv_bits is None else target.phv_bits + target.phv_untouched_bits
    kinds = f" ({phv.header_bits} of headers, {phv.untouched_bits} of them untouched, {phv.metadata_bits} of metadata)"
    result.append(("phv", f"{live} bits live at a time" + _of(room) + kinds))
    result.append(
        (
            "parser",
            f"{parser.states} states and {parser.bytes} bytes on the longest path, "
            f"{parser.entries} transitions{_of(target.parser.entries)}",
        )
    )
    for kind, count in fit.copies.items():
        if count:
            share = 100 / (1 + count)
            result.append((kind, f"up to {count} a packet; if all did, {share:.0f}% of the line rate is left"))
    return result


def stages(fit: Fit) -> str:
    """Return the number of stages, after `<=` unless it is proven to be the minimum."""
    if fit.placement is None:
        return "none" if fit.target.stages is None else "not placed"
    return f"{'' if fit.placement.least else '<= '}{fit.placement.stages}"


def _of(limit: int | None) -> str:
    return "" if limit is None else f" of {limit}"


def as_json(fit: Fit) -> dict[str, Any]:
    """Return the whole report in a form for other tools."""
    placed = fit.placement
    return {
        "program": fit.program,
        "target": fit.target.name,
        "fits": fit.fits,
        "stages": None if placed is None else placed.stages,
        "least": None if placed is None else placed.least,
        "needs": dict(needs(fit)),
        "registers": [
            {"name": a.name, "accesses": a.accesses, "pipelines": a.pipelines, "operations": a.operations}
            | {"conditions": a.conditions, "coupled": a.coupled}
            for a in fit.registers
        ],
        "findings": [
            {"rule": f.rule, "lacks": f.lacks, "instead": f.instead}
            | ({} if f.location is None else {"file": f.location.file, "line": f.location.line})
            for f in fit.findings
        ],
    }


def svg(fit: Fit) -> bytes:
    """Return a drawing of the dependency graph with its stages from left to right.

    Successor and reverse dependencies are dashed. Raises UserError if the program could not be placed.
    """
    import matplotlib
    import networkx as nx
    from matplotlib.figure import Figure

    if fit.placement is None:
        raise UserError(f"{fit.target.name}: no table was placed into stages, so there is no graph to draw")
    graph = fit.graph.copy()
    for node in graph:
        graph.nodes[node]["stage"] = fit.placement.first[node]
    rows = max((sum(1 for n in graph if fit.placement.first[n] == s) for s in range(fit.placement.stages)), default=1)
    size = (max(6.0, 1.2 * fit.placement.stages), max(4.0, 0.5 * rows))
    figure = Figure(figsize=size)
    axes = figure.add_subplot()
    position = nx.multipartite_layout(graph, subset_key="stage")
    strict = [(a, b) for a, b, data in graph.edges(data=True) if data["kind"] in ("match", "action")]
    other = [(a, b) for a, b, data in graph.edges(data=True) if data["kind"] not in ("match", "action")]
    nx.draw_networkx_edges(graph, position, strict, ax=axes, width=0.6, node_size=60, arrowsize=6)
    nx.draw_networkx_edges(graph, position, other, ax=axes, width=0.4, style="dashed", node_size=60, arrowsize=5)
    colours = [_COLOURS.get(n.kind, _OPERATION) for n in graph]
    nx.draw_networkx_nodes(graph, position, ax=axes, node_color=colours, node_size=60)
    named = {n: _label(n) for n in graph if n.kind in ("table", "register") or len(graph) <= _LABELS}
    nx.draw_networkx_labels(graph, position, named, ax=axes, font_size=6, verticalalignment="bottom")
    axes.set_title(f"{Path(fit.program).name} on {fit.target.name}: {stages(fit)} stages")
    axes.set_axis_off()
    text = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "p4cc"}):
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    return text.getvalue()


def _label(vertex: Vertex) -> str:
    return vertex.name.rpartition(".")[2] or vertex.op


def table(rows: Sequence[Sequence[Fit]], names: Sequence[str]) -> list[str]:
    """Return a Markdown table of programs by targets, with the stages that each program needs."""
    head = ["program", *(fit.target.name for fit in rows[0])]
    fits = [[name, *map(_cell, row)] for name, row in zip(names, rows, strict=True)]
    return markdown(head, fits)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def _cell(fit: Fit) -> str:
    count = "" if fit.placement is None else f", {stages(fit)} stages"
    return f"{'fits' if fit.fits else 'no'}{count}"


def updated(page: str, rows: Sequence[str]) -> str:
    """Return `page` with `rows` between its two markers.

    Raises UserError if the page has no markers.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise UserError(f"the page needs the lines {BEGIN} and {END}")
    return "\n".join([head + BEGIN, "", *rows, "", END + tail])
