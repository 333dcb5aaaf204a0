"""Errors of a configuration: where each stands and what is wrong; and a summary of several on one line."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.policies.field_errors import duplicate_field, one_line, unknown_field


class Place(Struct, frozen=True, kw_only=True):
    """Where something stands in a source, for error messages: file, line from 1, and Kubernetes' field path."""

    file: str
    line: int
    path: str = ""

    def __str__(self) -> str:
        """``FILE:LINE: PATH``, as compilers write it."""
        return f"{self.file}:{self.line}: {self.path}" if self.path else f"{self.file}:{self.line}"


class ConfigurationError(Struct, frozen=True, kw_only=True):
    """One error: where, and what in Kubernetes' words (``policies[0].rules[0].operations: Required value``).

    ``hint`` is not in Kubernetes' message: what was probably meant, or the place of the first of two duplicates.
    """

    place: Place
    message: str
    hint: str = ""

    @property
    def lines(self) -> list[str]:
        """``FILE:LINE: PATH: MESSAGE; HINT``, on as many lines as the message has: a CEL error shows the place in the
        expression. What would break a line otherwise is escaped.
        """
        hint = f"; {self.hint}" if self.hint else ""
        return [one_line(line) for line in f"{replace(self.place, path='')}: {self.text}{hint}".split("\n")]

    @property
    def text(self) -> str:
        """``PATH: MESSAGE``; the message alone if it contains the path, and at the root."""
        path = self.place.path
        return f"{path}: {self.message}" if path and self.message not in _saying(path) else self.message

    def __str__(self) -> str:
        """The same on one line, for logs."""
        return "\\n".join(self.lines)


def _saying(path: str) -> tuple[str, ...]:
    """The messages of strict decoding, which contain the path."""
    return unknown_field(path), duplicate_field(path)


Findings = list[ConfigurationError]

MAX_SUMMARIZED: Final = 20
"""Errors in a summary, which ends in the message of every request that the policy matches; ``errors`` has them all."""

MAX_ERROR: Final = 1000
"""Characters of each there: 20 of them stay below the 64 KiB that any log takes as one line."""


def summary(findings: Findings) -> str:
    """``PATH: MESSAGE`` of each on one line, joined by ``; ``; empty if there are none."""
    errors = [one_line(finding.text[:MAX_ERROR]) for finding in findings[:MAX_SUMMARIZED]]
    if len(findings) > MAX_SUMMARIZED:
        errors.append(f"and {len(findings) - MAX_SUMMARIZED} more errors")
    return "; ".join(errors)
