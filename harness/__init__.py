"""Scenarios, workloads, worlds, metrics, reports and the command line."""
