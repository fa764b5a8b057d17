"""`p4cc completion`: shell completion of commands, options, scenarios, protocols and load balancers."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from p4switch.errors import UserError

_VARIABLE = "_P4CC_COMPLETE"
# Folders in which each shell looks by default; zsh needs the folder in its configuration.
_FILES = {
    "bash": ".local/share/bash-completion/completions/p4cc",
    "zsh": ".zfunc/_p4cc",
    "fish": ".config/fish/completions/p4cc.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_FILES)), required=False)
@click.option("--install", is_flag=True, help="Write the script to where the shell looks for it.")
@click.pass_context
def command(context: click.Context, shell: str | None, install: bool) -> None:
    """Print the completion script of a SHELL, or install it. Default: the shell that $SHELL names."""
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in _FILES:
        raise UserError(f"no completion for the shell {name!r}; expected one of {', '.join(_FILES)}")
    kind = get_completion_class(name)
    assert kind is not None
    script = kind(context.find_root().command, {}, "p4cc", _VARIABLE).source()
    if not install:
        click.echo(script)
        return
    target = Path.home() / _FILES[name]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(script, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{target}: {error.strerror}") from None
    hint = "; put 'fpath+=~/.zfunc; autoload -Uz compinit; compinit' into ~/.zshrc" if name == "zsh" else ""
    click.echo(f"{target}: written; a new {name} completes p4cc{hint}")
