"""The benchmarks of `p4cc bench`: what packets, flows and workers cost on a machine."""
