"""Lexer: from preprocessed text to tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

KEYWORDS = frozenset(
    re.findall(
        r"\S+",
        """
        abstract action actions apply bit bool break const continue control default else entries enum error exit extern
        false for header header_union if in inout int key list match_kind out package parser priority return select
        state string struct switch table this transition true tuple type typedef value_set varbit void _
        """,
    )
)

_BLANKS = " \t\r\n\f\v"
# Alternatives are ordered by frequency, and a match includes the blanks before the token. `>` is always a single token,
# so that types can nest; the parser combines `>>` and `>>=`. The parser also turns `@pragma` lines into annotations.
_TOKEN = re.compile(
    r"""
    [ \t\r\n\f\v]*
    (?: ([A-Za-z_]\w*)
    | ([;(),}@?~\[\]] | \{\#\} | \|\+\|= | \|-\|= | <<= | &&& | \.\.\. | \|\+\| | \|-\|
       | << | \+\+ | \.\. | && | \|\| | == | != | <= | >= | \+: | \+= | -= | \*= | /= | %= | &= | \|= | \^=
       | [-{.<>=:+!&|*^/%])
    | ([0-9]+[ws]0[xX][0-9a-fA-F_]+ | [0-9]+[ws]0[oO][0-7_]+ | [0-9]+[ws]0[bB][01_]+ | [0-9]+[ws]0[dD][0-9_]+
       | [0-9]+[ws][0-9][0-9_]*
       | 0[xX][0-9a-fA-F_]+ | 0[oO][0-7_]+ | 0[bB][01_]+ | 0[dD][0-9_]+ | [0-9][0-9_]*)
    | "((?:\\.|[^"\\])*)"
    | (.))
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
LOOKAHEAD = 2
"""Number of tokens that the parser looks ahead. As many tokens are added after the end."""
_IDENTIFIER, _OPERATOR, _INTEGER, _STRING, _OTHER = range(1, 6)


@dataclass(slots=True)
class Tokens:
    """Tokens as parallel lists.

    The kind of a keyword or an operator is its text. Other kinds are `identifier`, `integer`, `string literal`,
    `unexpected character` and, at the end, `end of file`.
    """

    kinds: list[str]
    texts: list[str]
    positions: list[int]


def tokenize(text: str) -> Tokens:
    """Split `text` into tokens.

    A character that starts no token becomes a token, too, because annotations may contain any text.
    """
    kinds: list[str] = []
    texts: list[str] = []
    positions: list[int] = []
    keywords = KEYWORDS
    add_kind, add_text, add_position = kinds.append, texts.append, positions.append
    for match in _TOKEN.finditer(text, 0, len(text.rstrip(_BLANKS))):
        group = match.lastindex
        assert group is not None
        token = match.group(group)
        if group == _IDENTIFIER:
            add_kind(token if token in keywords else "identifier")
        elif group == _OPERATOR:
            add_kind(token)
        elif group == _INTEGER:
            add_kind("integer")
        elif group == _STRING:
            add_kind("string literal")
        else:
            add_kind("unexpected character")
        add_text(token)
        add_position(match.start(group) - (group == _STRING))
    for _ in range(LOOKAHEAD + 1):
        add_kind("end of file")
        add_text("")
        add_position(len(text.rstrip()))
    return Tokens(kinds, texts, positions)
