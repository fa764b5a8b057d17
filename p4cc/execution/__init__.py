"""Execution of requests: runs are planned, made, kept and reported."""
