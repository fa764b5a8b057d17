"""Names for completion in the shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _complete(names: Callable[[], Iterable[str]]) -> Complete:
    """Return a completion of names, and of files if no name matches."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        completions: list[Any] = [CompletionItem(name) for name in sorted(names()) if name.startswith(begun)]
        return completions or [CompletionItem(begun, type="file")]

    return complete


def _scenarios() -> Iterable[str]:
    from harness.plan import scenario

    return scenario.built_in()


def _protocols() -> Iterable[str]:
    from host_agents import registry

    return registry.protocols()


def _load_balancers() -> Iterable[str]:
    from host_agents import registry

    return registry.load_balancers()


scenarios, protocols, load_balancers = map(_complete, (_scenarios, _protocols, _load_balancers))
