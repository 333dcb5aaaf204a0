"""Typed access to one place of a document; errors are collected, and reading goes on.

* Every reader returns None for a value that is absent (or null, which Kubernetes takes for absent) and for one that is
  wrong; a wrong one has been reported by then, at its path and line. Defaults are the caller's, and so is what is
  strictest.
* A field is to be read once: reading it again would report it again.
* ``advice`` is added to the message about a wrong type: an example of what is expected.
* An element of an array, or of an object whose names are data, is never absent: null is wrong there.
* ``Field.get`` works on whatever is there: what is absent has only absent members.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gateway.enums import StrEnum
from gateway.policies import field_errors
from gateway.policies.decoding.nodes import REPORTED, Broken, Duplicate, Node, type_name
from gateway.policies.errors import ConfigurationError, Findings, Place
from gateway.policies.field_errors import field_path
from gateway.policies.suggestions import did_you_mean

Word = TypeVar("Word", bound=StrEnum)


MAX_FINDINGS: Final = 1_000
"""Errors of one policy or object that are reported, at 0.1 ms each for the search of what was meant."""


class Field(Struct, frozen=True, kw_only=True):
    """One value or its absence, its place (its owner's if it is absent), and where errors about it go."""

    node: Node | None
    place: Place
    findings: Findings

    @property
    def absent(self) -> bool:
        """Whether the field is absent or null."""
        return self.node is None or self.node.value is None

    @property
    def is_mapping(self) -> bool:
        """Whether the value is an object; reports nothing."""
        return self.node is not None and isinstance(self.node.value, dict)

    @property
    def raw_text(self) -> str | None:
        """The value if it is a string, else None; reports nothing."""
        return self.node.value if self.node is not None and isinstance(self.node.value, str) else None

    def refuse(self, message: str, hint: str = "") -> None:
        """Report an error at this place; ``hint`` is not part of Kubernetes' message. Of one policy or object,
        ``MAX_FINDINGS`` are reported, and that there are more.
        """
        if len(self.findings) >= MAX_FINDINGS:
            if len(self.findings) == MAX_FINDINGS:
                self.findings.append(ConfigurationError(place=self.place, message="more errors follow; correct these"))
            return
        self.findings.append(ConfigurationError(place=self.place, message=message, hint=hint))

    def refuse_broken(self, value: Broken) -> None:
        """Report a value that cannot be taken, unless it has been reported already."""
        if isinstance(value, Duplicate):
            self.refuse(field_errors.duplicate_field(self.place.path), value.hint)
        elif value is not REPORTED:
            self.refuse(value.message)

    def refuse_each(self, value: str, details: Collection[str]) -> None:
        """Report an invalid value, once for each reason."""
        for detail in details:
            self.refuse(field_errors.invalid(value, detail))

    def reported_at(self, owner: "Field") -> "Field":
        """The same, for errors that Kubernetes reports at the path of the owner; the line stays its own."""
        return replace(self, place=replace(self.place, path=owner.place.path))

    def get(self, name: str) -> "Field":
        """The member of this name."""
        members = self.node.value if self.node is not None else None
        node = members.get(name) if isinstance(members, dict) else None
        return self._child(node, field_path([name], self.place.path))

    def at(self, trail: Sequence[str | int], node: Node) -> "Field":
        """What is found at the end of a trail of names and indexes that begins here."""
        path = self.place.path
        for step in trail:
            path = field_path([str(step)], path)
        return self._child(node, path)

    def mapping(self, known: Collection[str] | None = None, *, advice: str = "") -> bool:
        """Whether an object stands here. With ``known``, members of any other name are reported as unknown fields."""
        if self.node is None or not self._is(dict, "object", advice):
            return False
        if known is not None and isinstance(self.node.value, dict):
            for name, node in self.node.value.items():
                if len(self.findings) > MAX_FINDINGS:
                    break
                if name not in known and node.value is not REPORTED:
                    self.get(name).refuse(*_unknown(self.strict_path(name), name, node, known))
        return True

    def has_unknown(self, known: Collection[str]) -> bool:
        """Whether an object with a member of any other name stands here; reports nothing."""
        return self.node is not None and isinstance(self.node.value, dict) and not self.node.value.keys() <= set(known)

    def strict_path(self, name: str) -> str:
        """A member's path as strict decoding writes it: names joined by dots, whatever they hold."""
        return f"{self.place.path}.{name}" if self.place.path else name

    def members(self) -> Iterator[tuple[str, "Field"]]:
        """The members of an object whose names are data; nothing if there is none."""
        if self.node is not None and isinstance(self.node.value, dict):
            for name, node in self.node.value.items():
                yield name, self._child(_solid(node), field_path([name], self.place.path))

    def named_members(self) -> Iterator[tuple[str, Node]]:
        """The members of an object as they stand, null included; nothing if there is none."""
        if self.node is not None and isinstance(self.node.value, dict):
            yield from self.node.value.items()

    def items(self, *, advice: str = "") -> list["Field"] | None:
        """The elements of an array; none if it is absent."""
        if self.absent:
            return []
        if not self._is(list, "array", advice) or self.node is None or not isinstance(self.node.value, list):
            return None
        path = self.place.path
        return [self._child(_solid(node), f"{path}[{index}]") for index, node in enumerate(self.node.value)]

    def text(self, default: str | None = None, *, advice: str = "") -> str | None:
        """A string; ``default`` if it is absent."""
        if self.absent:
            return default
        return self.raw_text if self._is(str, "string", advice) else None

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

    def integer(self) -> int | None:
        """A whole number, written as one."""
        if not self._is(int, "integer") or self.node is None:
            return None
        if isinstance(self.node.value, bool):
            self._wrong("integer")
            return None
        return self.node.value if isinstance(self.node.value, int) else None

    def flag(self) -> bool | None:
        """A boolean."""
        return (
            self.node.value if self._is(bool, "boolean") and self.node and isinstance(self.node.value, bool) else None
        )

    def word(self, words: Iterable[Word]) -> Word | None:
        """One of these words of an enumeration."""
        text = self.text()
        if text is None:
            return None
        supported = {word.value: word for word in words}
        if text not in supported:
            self.refuse(field_errors.unsupported(text, supported), did_you_mean(text, supported))
        return supported.get(text)

    def name(self, syntax: Callable[[str], list[str]], required: str = "") -> str | None:
        """A string that must be there, not empty, and of this syntax (see ``names``).

        ``required`` is appended to "Required value".
        """
        text = self.text("")
        if text is None:
            return None
        if not text:
            self.refuse(field_errors.required(required))
            return None
        errors = syntax(text)
        self.refuse_each(text, errors)
        return None if errors else text

    def _child(self, node: Node | None, path: str) -> "Field":
        line = self.place.line if node is None else node.line
        return Field(node=node, place=Place(file=self.place.file, line=line, path=path), findings=self.findings)

    def _is(self, kind: type, expected: str, advice: str = "") -> bool:
        """Whether the value is of this type; reports any other, but not absence."""
        if self.absent or self.node is None:
            return False
        if isinstance(self.node.value, kind):
            return True
        self._wrong(expected, advice)
        return False

    def _wrong(self, expected: str, advice: str = "") -> None:
        value = self.node.value if self.node is not None else None
        if isinstance(value, Broken):
            self.refuse_broken(value)
        else:
            self.refuse(field_errors.wrong_type(type_name(value), expected, advice))


def _solid(node: Node) -> Node:
    return (
        node
        if node.value is not None
        else Node(Broken(message=field_errors.invalid(None, "must not be null")), node.line)
    )


def _unknown(path: str, name: str, node: Node, known: Collection[str]) -> tuple[str, str]:
    """What is wrong with a member of an unknown name, and what was probably meant."""
    if isinstance(node.value, Broken) and not isinstance(node.value, Duplicate):
        return node.value.message, ""
    return field_errors.unknown_field(path), did_you_mean(name, known)
