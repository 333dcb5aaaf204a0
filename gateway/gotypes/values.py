"""JSON values that remember of their text what Go's decoder makes something of."""

from collections.abc import Iterable
from typing import Any, Self


class Repeated(dict[str, Any]):
    """An object in whose text a member stands more than once; ``pairs`` are all of them, in their order.

    Go decodes them one after another into the same place: a later value replaces an earlier one, two objects are put
    together, and a wrong type is an error wherever it stands.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


class Fraction(float):
    """A number that is written with a fraction or an exponent, which is no integer to Go; errors repeat its text."""

    def __new__(cls, text: str) -> Self:
        """The number that the text is."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __str__(self) -> str:
        """As it is written."""
        return self.text


def json_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, for a parser's ``object_pairs_hook``."""
    made = dict(members)
    return made if len(made) == len(members) else Repeated(members)


def pairs(value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The members of an object, in their order, repeated ones too."""
    return value.pairs if isinstance(value, Repeated) else value.items()


def again(old: Any, new: Any) -> Any:
    """What the second of two members of the same name makes of the first."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return {**old, **{name: again(old.get(name), each) for name, each in new.items()}}
