"""Replay of a run: one page with the network, its links, queues and flows over time."""

from reports.replay.page import recorded_page, shell, small_data
from reports.replay.recorded import choose

__all__ = ["choose", "recorded_page", "shell", "small_data"]
