"""Extras: sets of optional dependencies, found by a missing package."""

from __future__ import annotations

# Extras by module. The packages are those of pyproject.toml.
EXTRAS = {
    "dask": "cluster",
    "distributed": "cluster",
    "matplotlib": "viz",
    "mpi4py": "mpi",
    "mpld3": "viz",
    "scipy": "viz",
    "thriftpy2": "mininet",
    "z3": "testgen",
}


def missing(error: ModuleNotFoundError) -> str:
    """Return the message for a missing package; "" if it belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    return f"{package} is not installed; install it with: pip install 'p4cc[{extra}]'" if extra else ""
