"""Runs cases of every kind, whatever file they come from: one by one, and none of them ends the others."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.conformance import (
    chains,
    conditions,
    hook_answers,
    hook_configurations,
    hook_conversations,
    matchings,
    patches,
    values,
)
from tests.conformance.cases import Case, CaseError, Result, read_cases

ADAPTERS: tuple[ModuleType, ...] = (
    matchings,
    chains,
    conditions,
    patches,
    values,
    hook_answers,
    hook_configurations,
    hook_conversations,
)
"""Each has KIND, ``recognizes(case)`` and ``run(case)``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """What is printed of one case."""

    id: Any
    kind: str
    result: Result

    @property
    def ok(self) -> bool:
        """Whether the gateway does what was expected, or differs deliberately."""
        return self.result.agrees or bool(self.result.difference)

    def as_json(self) -> dict[str, Any]:
        """The members of the line."""
        line = {
            "id": self.id,
            "kind": self.kind,
            "expected": self.result.expected,
            "got": self.result.got,
            "agrees": self.result.agrees,
        }
        return line | ({"difference": self.result.difference} if self.result.difference else {})


def run_file(path: Path) -> Iterator[Line]:
    """A line for each case that is not disabled. Raises FileError."""
    for case in read_cases(path):
        # As the JSON Patch suite marks cases that are not required.
        if not case.members.get("disabled"):
            yield run_case(case)


def run_case(case: Case) -> Line:
    """The line of one case, whatever it is."""
    adapter = next((each for each in ADAPTERS if each.recognizes(case)), None)
    if adapter is None:
        return _unusable(case, "unknown", "no kind of case has these members: " + ", ".join(sorted(case.members)))
    try:
        return Line(id=case.id, kind=adapter.KIND, result=adapter.run(case))
    except CaseError as error:
        return _unusable(case, adapter.KIND, str(error))
    except Exception as error:  # noqa: BLE001 - the next case must run whatever this one did, and this one is reported
        return _unusable(case, adapter.KIND, f"{type(error).__name__}: {error}")


def _unusable(case: Case, kind: str, message: str) -> Line:
    expected = case.members.get("expected", case.members.get("outcome"))
    return Line(id=case.id, kind=kind, result=Result(expected=expected, got={"unusable": message}, agrees=False))
