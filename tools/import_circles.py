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
# Remaining cycles, each named by one of its files; none may be added. An extern's file names the
# types of the tools that are passed to it, and the tools name the types of externs. P4's syntax is
# recursive, so the parts of the front end's checker call each other through an object that has them
# all, and name its type.
KNOWN = ("p4switch.architectures.extern", "p4switch.compiler.semantics.context", "harness.worlds.memory")


def circles() -> list[list[str]]:
    """Return the files of each cycle that is too large, in alphabetical order."""
    graph = grimp.build_graph(*PACKAGES)
    imports = nx.DiGraph()
    imports.add_edges_from((file, used) for file in graph.modules
                           for used in graph.find_modules_directly_imported_by(file))
    return sorted(sorted(files) for files in nx.strongly_connected_components(imports) if len(files) > LARGEST)


def main() -> None:
    """Print the unknown cycles, and exit with 1 if there are any."""
    unknown = [files for files in circles() if not set(files) & set(KNOWN)]
    for files in unknown:
        print(f"{len(files)} files import each other: {', '.join(files)}")
    sys.exit(bool(unknown))


if __name__ == "__main__":
    main()
