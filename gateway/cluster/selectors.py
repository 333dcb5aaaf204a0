"""The selectors of a list and a watch, as texts of its query."""

import re
from collections.abc import Iterable
from typing import Final

from gateway.policies.model import Requirement, Selector

_OF_FIELDS: Final = re.compile(r"[\\,=]")
"""What a backslash precedes in the value of a field selector (k8s.io/apimachinery/pkg/fields, EscapeValue)."""


def label_selector(selector: Selector) -> str:
    """The text of a label selector (k8s.io/apimachinery/pkg/labels); empty: it selects everything."""
    return ",".join(map(_requirement, selector.requirements))


def field_selector(requirements: Iterable[tuple[str, str, bool]]) -> str:
    """The text of a field selector: field, value, and whether it equals that value, or does not."""
    return ",".join(
        f"{field}{'=' if equals else '!='}{_OF_FIELDS.sub(lambda found: chr(92) + found[0], value)}"
        for field, value, equals in requirements
    )


def _requirement(each: Requirement) -> str:
    match each.operator:
        case "Exists":
            return each.key
        case "DoesNotExist":
            return f"!{each.key}"
        case operator:
            return f"{each.key} {operator.lower()} ({','.join(sorted(each.values))})"
