"""Annotations of a program's controls, found without parsing, for decisions before the compilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from p4switch.compiler.lexer import Tokens, tokenize
from p4switch.compiler.preprocessor import Preprocessor

_CLOSING = {"(": ")", "[": "]"}


def of_controls(
    path: Path, include_dirs: Sequence[Path] = (), defines: Mapping[str, str] | None = None
) -> dict[str, frozenset[str]]:
    """Return the names of each control's annotations, for a program or a part of one.

    Parameters
    ----------
    path
        The file. Controls in included files are found, too.
    include_dirs
        Folders that are searched for include files.
    defines
        Texts of macros by name.

    Raises
    ------
    p4switch.errors.UserError
        If a file cannot be read or preprocessed.
    """
    text = Preprocessor(include_dirs, defines or {}).run(path).text
    return _of_controls(tokenize(text))


def _of_controls(tokens: Tokens) -> dict[str, frozenset[str]]:
    by_control: dict[str, frozenset[str]] = {}
    names: list[str] = []
    kinds = tokens.kinds
    i = 0
    while kinds[i] != "end of file":
        if kinds[i] == "@":
            names.append(tokens.texts[i + 1])
            i = _behind_arguments(kinds, i + 2)
            continue
        if kinds[i] == "control":
            by_control[tokens.texts[i + 1]] = frozenset(names)
        names = []
        i += 1
    return by_control


def _behind_arguments(kinds: Sequence[str], i: int) -> int:
    """Return the number of the token after an annotation's arguments.

    The arguments, if there are any, begin at token `i`.
    """
    if kinds[i] not in _CLOSING:
        return i
    opening, closing, depth = kinds[i], _CLOSING[kinds[i]], 0
    while kinds[i] != "end of file":
        depth += (kinds[i] == opening) - (kinds[i] == closing)
        i += 1
        if not depth:
            break
    return i
