"""What p4cc does only with more than it pulls: which extra a missing package belongs to."""

from __future__ import annotations

# By module. The packages are those of pyproject.toml.
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
    """What to say of a package that is not there; "": it belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    return f"{package} is not installed; install it with: pip install 'p4cc[{extra}]'" if extra else ""
