"""Benchmarks of `p4cc bench`: the cost of packets, flows and workers on a machine."""
