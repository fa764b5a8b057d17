"""One file a kind of attack; each has one subclass of `Attack`, and is found by being here."""
