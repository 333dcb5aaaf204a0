"""Files of cases, and what becomes of one case: the result that is printed.

A file is JSON Lines (``*.jsonl``): the first line says what the file is, each further line is a case. Or it is one JSON
document, as others publish their suites: an object whose ``cases`` is a list, or such a list itself. What a case may
leave to its file (``env``, ``input``) stands in the first line, or beside ``cases``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.depth import too_deep
from gateway.review.request import DEPTH


class CaseError(Exception):
    """The case cannot be run: what is missing in it, or of the wrong type."""


class FileError(Exception):
    """The file cannot be read as a file of cases."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What was expected, what came, and whether that is the same. ``difference`` names a deliberate one."""

    expected: Any
    got: Any
    agrees: bool
    difference: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One case. ``common`` is what stands beside the cases in its file."""

    id: Any
    members: Mapping[str, Any]
    common: Mapping[str, Any]

    def has(self, *names: str) -> bool:
        """Whether the case itself has all of these members."""
        return all(name in self.members for name in names)

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """A member of the case, else of its file. Raises CaseError if it is absent or not of that type."""
        value = self.members.get(name, self.common.get(name, default))
        if value is ...:
            raise CaseError(f"{name}: missing, in the case and beside the cases")
        return checked(value, kind, name) if value is not default else value


def checked(value: Any, kind: type | tuple[type, ...], name: str) -> Any:
    """``value``, if it is of that type. Raises CaseError."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise CaseError(f"{name}: found {type(value).__name__}, which is of the wrong type")
    return value


def member(container: Any, name: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
    """A member of an object within a case; ``default`` where it is absent or null. Raises CaseError."""
    value = checked(container, dict, "an object of the case").get(name)
    if value is None:
        if default is ...:
            raise CaseError(f"{name}: missing")
        return default
    return checked(value, kind, name)


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file. Raises FileError."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    common, cases = (_of_lines if path.suffix == ".jsonl" else _of_document)(path, text)
    for index, members in enumerate(cases):
        if isinstance(members, dict):
            yield Case(id=members.get("id", index), members=members, common=common)
        else:
            yield Case(id=index, members={}, common=common)


def _of_lines(path: Path, text: bytes) -> tuple[dict[str, Any], list[Any]]:
    """The first line, which must be an object, and the cases."""
    lines = [_decoded(f"{path}:{number}", line) for number, line in enumerate(text.splitlines(), 1)]
    if not lines or not isinstance(lines[0], dict):
        raise FileError(f"{path}:1: expected an object that says what the file is; each further line is a case")
    return lines[0], lines[1:]


def _of_document(path: Path, text: bytes) -> tuple[dict[str, Any], list[Any]]:
    """What stands beside the cases, and the cases."""
    content = _decoded(str(path), text)
    common = content if isinstance(content, dict) else {}
    cases = common.get("cases") if isinstance(content, dict) else content
    if not isinstance(cases, list):
        raise FileError(f'{path}: expected a list of cases, or an object with "cases"')
    return common, cases


def _decoded(place: str, text: bytes) -> Any:
    if too_deep(text, DEPTH):
        raise FileError(f"{place}: nests deeper than {DEPTH} levels, as no AdmissionReview may")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{place}: not JSON: {error}") from None


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other
