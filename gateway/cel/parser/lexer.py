"""The tokens of CEL (cel-spec, "Syntax"; cel-go's CEL.g4). The longest token wins, as in every lexer.

A text that is no token ends the lexing: ``Unlexable`` says where.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

_ESCAPE: Final = r"\\(?:[abfnrtv\"'?`\\]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"

_STRING: Final = "|".join(
    (
        r"[rR]\"\"\"(?s:.)*?\"\"\"",
        r"[rR]'''(?s:.)*?'''",
        r"[rR]\"[^\"\n\r]*\"",
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)

_TOKENS: Final = re.compile(
    rf"""(?P<blank>[\t\r\n\f\ ]+|//[^\n]*)
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>0x[0-9a-fA-F]+[uU]|\d+[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<bytes>[bB](?:{_STRING}))
    |(?P<string>{_STRING})
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    |(?P<symbol>==|!=|<=|>=|&&|\|\||[<>\[\](){{}}.,\-!?:+*/%])
    """,
    re.VERBOSE | re.ASCII,
)

KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
"""Names that are tokens of their own: not even a member may have them."""


class Token(msgspec.Struct, frozen=True, gc=False):
    """``kind`` is float, uint, int, bytes, string, name, quoted, end, or the symbol or keyword itself."""

    kind: str
    text: str
    offset: int


class Unlexable(Exception):  # noqa: N818 - it is named after what the text is
    """No token begins at ``offset``."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of ``text`` without blanks and comments, and an ``end``; raises Unlexable."""
    position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            raise Unlexable(position)
        kind, found = match.lastgroup or "", match.group()
        if kind != "blank":
            yield Token(found if kind == "symbol" or found in KEYWORDS else kind, found, position)
        position = match.end()
    yield Token("end", "", position)
