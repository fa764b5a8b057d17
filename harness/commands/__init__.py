"""One module a command: `p4cc NAME` is the click command called `command` in `NAME.py` here."""
