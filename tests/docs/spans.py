"""The spans that docs/observe.md lists, with the attributes of ours that they may have."""

import re
from functools import cache

from tests.docs.pages import pages

_ROW = re.compile(r"^\| (`[^|]+) \| [^|]+ \|([^|]*)\|$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_VARIABLE = re.compile(r"\b[A-Z]{4,}$")

PREFIX = "admission."


@cache
def documented():
    """A pattern of spans' names, and the names of their attributes, for each row."""
    _, table = pages()["docs/observe.md"].text.split("| Span | Means |")
    return [
        (re.compile("|".join(_pattern(name) for name in _full(names))), frozenset(_full(attributes)))
        for names, attributes in _ROW.findall(table.split("\n\n")[0])
    ]


def attributes_of(name):
    """The attributes that a span of this name may have."""
    found = [attributes for pattern, attributes in documented() if pattern.fullmatch(name)]
    assert found, f"docs/observe.md has no span {name}"
    return frozenset[str]().union(*found)


def _full(text):
    """The names in a cell: ``.decode`` is ``admission.decode``."""
    return [f"admission{name}" if name.startswith(".") else name for name in _CODE.findall(text)]


def _pattern(name):
    if name.startswith("POST /"):
        return "POST /(mutate|validate)(/.+)?"
    return _VARIABLE.sub("<>", name).replace(".", "[.]").replace("<>", ".+")
