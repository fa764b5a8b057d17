"""Search for import cycles of more than two files: `python -m tools.import_circles`, part of `make lint`.

Imports for type checkers count, because readers of one file have to read the other.
"""

from __future__ import annotations

import sys

import grimp
import networkx as nx

PACKAGES = (
    "p4cc", "p4switch", "topologies", "host_agents", "wireformats", "control_plane", "harness", "reports", "papers",
)  # fmt: skip
LARGEST = 2  # largest permitted number of files that import each other
# Remaining cycles, each named by one of its files, with a number of files that may not grow. An
# extern's file names the types of the tools that are passed to it, and the tools name the types of
# externs (decision 6).
KNOWN = {"p4switch.architectures.extern": 72}


def circles() -> list[list[str]]:
    """Return the files of each cycle that is too large, in alphabetical order."""
    graph = grimp.build_graph(*PACKAGES)
    imports = nx.DiGraph()
    imports.add_edges_from((file, used) for file in graph.modules
                           for used in graph.find_modules_directly_imported_by(file))
    return sorted(sorted(files) for files in nx.strongly_connected_components(imports) if len(files) > LARGEST)


def main() -> None:
    """Print unknown cycles, and known ones that no longer exist, and exit with 1 if there are any."""
    found = circles()
    known = [max(KNOWN.get(file, 0) for file in files) for files in found]
    mistakes = [f"{len(files)} files import each other{f' instead of {most}' if most else ''}: {', '.join(files)}"
                for files, most in zip(found, known, strict=True) if len(files) != most]
    mistakes += [f"KNOWN: {file} is in no cycle any more" for file in set(KNOWN).difference(*found)]
    print(*mistakes, sep="\n", end="\n" if mistakes else "")
    sys.exit(bool(mistakes))


if __name__ == "__main__":
    main()
