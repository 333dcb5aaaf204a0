"""JSON (RFC 8259) with the line of each value; several documents may follow one another, as kubectl allows.

YAML is not a superset that could read it: YAML 1.1 refuses tabs between tokens and escaped surrogate pairs, and takes
1e3 for a string. The standard library's decoder knows no lines. So the grammar is here, its strings and numbers are
Python's.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from gateway.policies.decoding.nodes import MAX_NUMBER, Broken, Builder, Node, Scalar, TextError

_BLANK = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(
    r"""(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")"""
    r"""|(?P<number>-?(?:0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))"""
    r"""|(?P<word>true|false|null)"""
    r"""|(?P<mark>[][{},:])""",
    re.DOTALL,
)
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}

# What may come next. After "[" and "{" the end may come at once; after a comma it may not.
_VALUE: Final = "a value"
_VALUE_OR_END: Final = "a value or ]"
_NAME: Final = "a string"
_NAME_OR_END: Final = "a string or }"
_COLON: Final = "a colon"
_COMMA_OR_END: Final = "a comma or the end of the container"


def read_json(text: str) -> Iterator[Node]:
    """The documents of a JSON text, in order.

    Raises:
        TextError: where the text stops being JSON, or is too deep or too large. The documents before were yielded.
    """
    reader = _Reader(text)
    while reader.more():
        yield reader.document()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._builder = Builder()

    def more(self) -> bool:
        """Whether something stands behind the blanks, which are skipped."""
        match = _BLANK.match(self._text, self._at)
        self._move(match.end() if match else self._at)
        return self._at < len(self._text)

    def document(self) -> Node:
        builder = self._builder
        builder.next()
        expected = _VALUE
        nesting: list[str] = []
        while builder.root is None:
            line, token = self._token(expected)
            expected = self._take(builder, nesting, expected, token, line)
        return builder.root

    def _take(self, builder: Builder, nesting: list[str], expected: str, token: re.Match[str], line: int) -> str:
        """Hand one token to the builder; what may follow it."""
        mark = token["mark"]
        if mark is None:
            return self._take_scalar(builder, expected, token, line)
        if mark in "[{" and expected in {_VALUE, _VALUE_OR_END}:
            nesting.append("]" if mark == "[" else "}")
            builder.open(mapping=mark == "{", line=line)
            return _VALUE_OR_END if mark == "[" else _NAME_OR_END
        if (
            mark in "]}"
            and nesting
            and nesting[-1] == mark
            and expected in {_VALUE_OR_END, _NAME_OR_END, _COMMA_OR_END}
        ):
            nesting.pop()
            builder.close()
            return _COMMA_OR_END
        if mark == "," and expected == _COMMA_OR_END:
            return _VALUE if nesting[-1] == "]" else _NAME
        if mark == ":" and expected == _COLON:
            return _VALUE
        raise TextError(line, f"expected {expected}, found {mark!r}")

    @staticmethod
    def _take_scalar(builder: Builder, expected: str, token: re.Match[str], line: int) -> str:
        is_name = expected in {_NAME, _NAME_OR_END}
        if expected in {_COLON, _COMMA_OR_END} or (is_name and token["string"] is None):
            raise TextError(line, f"expected {expected}, found {token[0][:20]!r}")
        builder.scalar(_scalar(token, line), line=line)
        return _COLON if is_name else _COMMA_OR_END

    def _token(self, expected: str) -> tuple[int, re.Match[str]]:
        if not self.more():
            raise TextError(self._line, f"expected {expected}, found the end of the text")
        line = self._line
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            raise TextError(line, f"expected {expected}, found {self._text[self._at : self._at + 20]!r}")
        self._move(token.end())
        return line, token

    def _move(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to


def _scalar(token: re.Match[str], line: int) -> Scalar:
    if token["word"] is not None:
        return _WORDS[token[0]]
    if token["string"] is not None:
        try:
            return str(json.loads(token[0]))
        except ValueError as error:
            raise TextError(line, f"not a JSON string: {error}") from error
    if len(token[0]) > MAX_NUMBER:
        return Broken(message=f"is a number of more than {MAX_NUMBER} characters")
    return float(token[0]) if token["fraction"] else int(token[0])
