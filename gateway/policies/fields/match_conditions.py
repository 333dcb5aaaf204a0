"""matchConditions: read, with Kubernetes' validation. The expressions are compiled here, once and for all requests.

Conditions are ANDed: one that cannot be read at all is left out, and the policy is called more often, never less. One
that does not compile stays; its value is an error, which the policy's failurePolicy answers.
"""

from typing import Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.model import MatchCondition
from gateway.policies.names import label_key

MAX_CONDITIONS: Final = 64
"""Conditions of one webhook ("must have at most 64 items")."""

MAX_COMPILED: Final = 4 * MAX_CONDITIONS
"""Of a list that is far too long, the rest is not compiled: a millisecond each, and a text has room for a million."""

FIELDS: Final = ("name", "expression")
_SPACES: Final = "".join(filter(str.isspace, map(chr, range(0x3001)))).translate(dict.fromkeys(range(0x1C, 0x20)))
"""What Go's strings.TrimSpace removes, Unicode's White_Space; Python counts four separators more."""


def read_match_conditions(field: Field) -> tuple[MatchCondition, ...]:
    """The conditions that stand here."""
    items = field.items() or []
    if len(items) > MAX_CONDITIONS:
        field.refuse(field_errors.too_many(len(items), MAX_CONDITIONS))
    names: dict[str, str] = {}
    conditions = []
    for index, item in enumerate(items):
        condition = _condition(item, compiled=index < MAX_COMPILED)
        name = item.get("name").raw_text
        if name and names.setdefault(name, item.place.path) != item.place.path:
            item.get("name").refuse(field_errors.duplicate(name), f"the first is {names[name]}")
        if condition is not None:
            conditions.append(condition)
    return tuple(conditions)


def _condition(field: Field, *, compiled: bool) -> MatchCondition | None:
    if not field.mapping(FIELDS):
        return None
    # Most policies have no conditions, and CEL takes longer to load than all else that `check` needs.
    from gateway.cel.match_conditions import compile_condition  # noqa: PLC0415

    text = field.get("expression").text("")
    expression = (text or "").strip(_SPACES)
    condition = compile_condition(expression) if expression and compiled else None
    if condition is not None:
        if condition.error is not None:
            field.get("expression").refuse(field_errors.invalid(expression, condition.error))
        elif text is not None and text != expression:
            # Kubernetes judges the expression without the blanks around it, and evaluates it, and names it, with them.
            condition = compile_condition(text)
    elif text is not None and not expression:
        field.get("expression").refuse(field_errors.required())
    name = field.get("name").name(label_key)
    return (
        None
        if condition is None
        else MatchCondition(name=name or field.get("name").raw_text or "", condition=condition)
    )
