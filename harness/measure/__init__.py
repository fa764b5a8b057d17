"""Evaluation of recordings: metrics, checks, captures, traces and the files of a run's folder."""
