"""What ends a command with exit status 1."""


class CheckError(Exception):
    """The request was carried out, and a check of its result did not hold."""
