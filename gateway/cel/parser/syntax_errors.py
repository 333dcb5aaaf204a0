"""The messages of syntax errors.

cel-go's come out of its parser generator (``mismatched input '<EOF>' expecting {'[', ...}``) and cannot be derived by
hand; cel-expr-python (Google's cel-cpp) has the same grammar and the same generator. If it is installed (the extra
``cel-words``; there are wheels for Linux with glibc, on x86_64 and aarch64), it parses the text too, and its message is
taken if it is a syntax error as well; the few differences from cel-go are repaired. Else the message is our own.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from gateway.cel.parser.errors import Problem, describe

_SYNTAX: Final = "Syntax error: "
_STATUS: Final = "INVALID_ARGUMENT"
_MOST_CHARACTERS: Final = 10_000
"""Code points; the syntax error of a longer text has our message."""

_REPAIRS: Final = (
    (re.compile(r"\nERROR: <input>:4294967295:0: [^\n]*"), ""),
    (re.compile(r"'\\u003F'"), "'?'"),
    (
        re.compile(r"no viable alternative at input '\.(true|false|null)'"),
        r"mismatched input '\1' expecting IDENTIFIER",
    ),
    (re.compile(r"(?<=token recognition error at: ')([^\n]*?)\\n(?='\n)"), "\\1\n"),
    (re.compile(r"\A(ERROR: <input>:1:)1(: [^\n]*<EOF>[^\n]*)\Z"), r"\g<1>0\2"),
)
"""A complaint of its own about the tree, escaped characters, names that are keywords, the place in an empty text."""


@lru_cache(maxsize=1)
def _environment() -> Any:
    """An environment of cel-cpp; None where it is not installed."""
    try:
        # It comes without py.typed, and takes longer to load than the rest of the room.
        from cel_expr_python import cel  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return None
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml("extensions: [{name: optional}]"))


def reworded(expression: str, problems: Sequence[Problem]) -> str:
    """The problems as text, in cel-go's words where the package is installed."""
    ours = describe(expression, problems)
    of_syntax = any(found.message.startswith(_SYNTAX) for found in problems)
    if not of_syntax or len(expression) > _MOST_CHARACTERS or "\0" in expression:
        return ours
    environment = _environment()
    if environment is None:
        return ours
    try:
        environment.compile(expression, disable_check=True)
    except (RuntimeError, UnicodeError) as error:
        theirs = str(error).removeprefix(f"{_STATUS}: ").removesuffix(f" [{_STATUS}]")
        for pattern, repair in _REPAIRS:
            theirs = pattern.sub(repair, theirs)
        return theirs if _SYNTAX in theirs.partition("\n")[0] else ours
    return ours
