"""Attacks on the compiler, the switch, the hosts and the harness: fuzzers and killers, one file a kind.

    python -m tools.attack [KIND...] [--minutes N | --short] [--seed N] [--jobs N]

docs/security.md says what each kind does.
"""
