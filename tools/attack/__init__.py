"""Attacks on the compiler, the switch, the hosts and the harness: fuzzers and killers, a file for each kind.

    python -m tools.attack [KIND...] [--minutes N | --short] [--seed N] [--jobs N]

The file of a kind describes its actions and its checks; docs/security.md has the commands.
"""
