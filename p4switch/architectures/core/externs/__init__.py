"""The externs of `core.p4`, one file each."""
