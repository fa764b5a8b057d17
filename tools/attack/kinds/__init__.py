"""Kinds of attack, one file each with one subclass of `Attack`, found by being here."""
