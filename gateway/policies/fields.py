"""A typed look at one place of a document, which collects the mistakes instead of stopping at the first.

* Every reader returns None for a value that is absent (or null, which Kubernetes takes for absent) and for one that is
  wrong; a wrong one has been reported by then, at its path and line. Defaults are the caller's, and so is what is
  strictest.
* A field is to be read once: reading it again would report it again.
* An element of an array, or of an object whose names are data, is never absent: null is wrong there.
* ``Field.get`` works on whatever is there: what is absent has only absent members.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from gateway.policies import wording
from gateway.policies.model import ConfigurationError, Place
from gateway.policies.nodes import Broken, Node, type_name

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")

Word = TypeVar("Word", bound=StrEnum)
Findings = list[ConfigurationError]


MAX_SUMMARIZED: Final = 20
"""Mistakes in a summary: it ends in the message of every request that the policy matches; ``errors`` has them all."""


def summary(findings: Findings) -> str:
    """``PATH: MESSAGE`` of each, joined by ``; ``; empty if there are none."""
    mistakes = [f"{finding.place.path}: {finding.message}" for finding in findings[:MAX_SUMMARIZED]]
    if len(findings) > MAX_SUMMARIZED:
        mistakes.append(f"and {len(findings) - MAX_SUMMARIZED} more mistakes")
    return "; ".join(mistakes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One value or its absence, its place (its owner's if it is absent), and where mistakes about it go."""

    node: Node | None
    place: Place
    findings: Findings

    @property
    def absent(self) -> bool:
        """Whether nothing is said here: no such member, or null."""
        return self.node is None or self.node.value is None

    @property
    def is_mapping(self) -> bool:
        """Whether an object stands here; reports nothing."""
        return self.node is not None and isinstance(self.node.value, dict)

    def refuse(self, message: str) -> None:
        """Report a mistake at this place."""
        self.findings.append(ConfigurationError(place=self.place, message=message))

    def refuse_each(self, value: str, details: Collection[str]) -> None:
        """Report an invalid value, once for each reason."""
        for detail in details:
            self.refuse(wording.invalid(value, detail))

    def get(self, name: str) -> "Field":
        """The member of this name."""
        members = self.node.value if self.node is not None else None
        node = members.get(name) if isinstance(members, dict) else None
        return self._child(node, _join(self.place.path, name))

    def at(self, trail: Sequence[str | int], node: Node) -> "Field":
        """What is found at the end of a trail of names and indexes that begins here."""
        path = self.place.path
        for step in trail:
            path = _join(path, step) if isinstance(step, str) else f"{path}[{step}]"
        return self._child(node, path)

    def mapping(self, known: Collection[str] | None = None) -> bool:
        """Whether an object stands here. With ``known``, members of any other name are reported as unknown fields."""
        if self.node is None or not self._is(dict, "object"):
            return False
        if known is not None and isinstance(self.node.value, dict):
            for name, node in self.node.value.items():
                if name not in known:
                    self.get(name).refuse(_stranger(name, node))
        return True

    def members(self) -> Iterator[tuple[str, "Field"]]:
        """The members of an object whose names are data; nothing if there is none."""
        if self.node is not None and isinstance(self.node.value, dict):
            for name, node in self.node.value.items():
                yield name, self._child(_solid(node), _join(self.place.path, name))

    def items(self) -> list["Field"] | None:
        """The elements of an array; none if it is absent."""
        if self.absent:
            return []
        if not self._is(list, "array") or self.node is None or not isinstance(self.node.value, list):
            return None
        path = self.place.path
        return [self._child(_solid(node), f"{path}[{index}]") for index, node in enumerate(self.node.value)]

    def text(self, default: str | None = None) -> str | None:
        """A string; ``default`` if it is absent."""
        if self.absent:
            return default
        return self.node.value if self._is(str, "string") and self.node and isinstance(self.node.value, str) else None

    def texts(self) -> list[tuple["Field", str]] | None:
        """The elements of an array of strings, each with its place; none if it is absent."""
        items = self.items()
        if items is None:
            return None
        found = [(item, item.text()) for item in items]
        texts = [(item, text) for item, text in found if text is not None]
        return texts if len(texts) == len(found) else None

    def number(self) -> float | None:
        """A number, an int where it is written as one; may be infinite or no number (``.inf``, ``.nan``)."""
        if self.absent or self.node is None:
            return None
        value = self.node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong("number")
            return None
        return value

    def word(self, words: type[Word]) -> Word | None:
        """One of an enumeration's words."""
        text = self.text()
        if text is None:
            return None
        supported = [word.value for word in words]
        if text not in supported:
            self.refuse(wording.unsupported(text, supported))
            return None
        return words(text)

    def name(self, syntax: Callable[[str], list[str]]) -> str | None:
        """A string that must be there, not empty, and of this syntax (see ``names``)."""
        text = self.text("")
        if text is None:
            return None
        if not text:
            self.refuse(wording.required())
            return None
        errors = syntax(text)
        self.refuse_each(text, errors)
        return None if errors else text

    def _child(self, node: Node | None, path: str) -> "Field":
        line = self.place.line if node is None else node.line
        return Field(node=node, place=Place(file=self.place.file, line=line, path=path), findings=self.findings)

    def _is(self, kind: type, expected: str) -> bool:
        """Whether the value is of this type; reports any other, but not absence."""
        if self.absent or self.node is None:
            return False
        if isinstance(self.node.value, kind):
            return True
        self._wrong(expected)
        return False

    def _wrong(self, expected: str) -> None:
        value = self.node.value if self.node is not None else None
        self.refuse(value.message if isinstance(value, Broken) else wording.wrong_type(type_name(value), expected))


def _solid(node: Node) -> Node:
    return (
        node if node.value is not None else Node(Broken(message=wording.invalid(None, "must not be null")), node.line)
    )


def _stranger(name: str, node: Node) -> str:
    return node.value.message if isinstance(node.value, Broken) else wording.unknown_field(name)


def _join(path: str, name: str) -> str:
    """Kubernetes' field paths: ``a.b``, and ``a[b.c/d]`` for names that are data."""
    if not _PLAIN.fullmatch(name):
        return f"{path}[{wording.quote(name)[1:-1]}]"
    return f"{path}.{name}" if path else name
