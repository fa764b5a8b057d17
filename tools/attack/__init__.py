"""Attacks on the compiler, the switch, the hosts and the harness: fuzzers and killers, one file a kind.

    python -m tools.attack [KIND...] [--minutes N | --short] [--seed N] [--jobs N]

The file of a kind says what it does and what must hold; docs/security.md lists the kinds.
"""
