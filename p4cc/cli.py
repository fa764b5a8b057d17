"""Command line `p4cc`.

Exit status: 0 for success; 1 if a run or one of its checks failed; 2 if the request was wrong.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import click

from harness.errors import CheckError, CodeError, out_of_memory
from p4cc import commands
from p4cc.commands import _debugging
from p4cc.commands._extras import missing
from p4switch import interruption
from p4switch.errors import Doubt, UserError, suggest
from p4switch.memory import keep_reserve
from p4switch.printable import printable, tell


class _Commands(click.Group):
    """Commands that are imported when they are named, so that each one loads only what it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__) if module.name[0] != "_")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"p4cc.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            raise click.UsageError(f"no command {args[0]!r}; {suggest(args[0], names)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="p4cc")
def cli() -> None:
    """Testbed for datacenter RDMA congestion control: switches in P4-16, hosts in Python."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    A mistake of the user is reported in one line on stderr. Signals are handled if the command is
    the whole program. With `args` they are left to the calling program.
    """
    # The network ends with the process, so the garbage collector need not traverse it again.
    atexit.register(gc.freeze)
    with interruption.listening() if args is None else contextlib.nullcontext():
        _main(args)


def _main(args: Sequence[str] | None) -> None:
    with _doubts_printed():
        _carry_out(args)


@contextlib.contextmanager
def _doubts_printed() -> Iterator[None]:
    """Print doubts about the input on stderr during the block, without their position in p4cc's code."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def tell_doubt(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, Doubt):
                tell(f"warning: {message}", err=True)
            else:
                show(message, category, *where, **more)

        warnings.showwarning = tell_doubt
        yield


def _carry_out(args: Sequence[str] | None) -> None:
    try:
        keep_reserve()
        # Click's own error handling is off, because it would print the usage before the error.
        sys.exit(cli.main(args, standalone_mode=False) or 0)
    except click.exceptions.Exit as exit_:
        sys.exit(exit_.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 1)
    except UserError as error:
        _fail(str(error), 2, error.starts_with_place)
    except CodeError as error:
        _fail(f"{error}" if _debugging.wanted() else f"{error}\n(--debug shows the whole traceback)", 1)
    except CheckError as error:
        _fail(str(error), 1)
    except Exception as error:
        if interruption.came():
            _fail("interrupted", 1)
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            _fail(f"{error.strerror}; expected more file descriptors: ulimit -n", 1)
        if (full := out_of_memory(error)) is not None:
            _fail(str(full), 2)
        if not isinstance(error, ModuleNotFoundError) or not (explanation := missing(error)):
            raise
        _fail(explanation, 2)


def _fail(message: str, status: int, starts_with_place: bool = False) -> None:
    error = sys.exc_info()[1]
    if _debugging.wanted() and error is not None:
        whole = getattr(error, "whole", "") or "".join(traceback.format_exception(error))
        click.echo(whole.rstrip(), err=True)
    message = printable(message)  # The text may contain content of a file that somebody else wrote.
    click.echo(message if starts_with_place else f"p4cc: error: {message}", err=True)
    sys.exit(status)
