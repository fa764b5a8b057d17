"""`p4cc switch`: the built-in switch as a process."""

from p4switch.daemon.command import command

__all__ = ["command"]
