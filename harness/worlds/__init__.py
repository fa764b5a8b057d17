"""Worlds in which a run can take place.

Each takes a `Run` and returns a `Recording`.
"""
