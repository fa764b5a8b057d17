"""Commands, one module each: `p4cc NAME` is the click command called `command` in `NAME.py` here."""
