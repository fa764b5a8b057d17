"""The one kind of exception that is the user's to mend."""


class UserError(Exception):
    """A request that cannot be carried out: one line that names the thing and what was expected.

    The command line prints it without a traceback and exits with status 2.
    """
