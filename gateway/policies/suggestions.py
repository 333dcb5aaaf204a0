"""Suggestions for an unknown name: did you mean ...?"""

from collections.abc import Iterable
from difflib import get_close_matches

from gateway.policies.field_errors import quote

_CLOSE = 0.7
"""Similar enough to be a misspelling: ``labls`` is of ``labels`` (0.91), ``pdos`` of ``pods`` (0.75), ``mode`` not of
``node`` where it should be (0.75, so a hint may be wrong; it is a question)."""

_MOST_COMPARED = 300
"""Known names, with which a name is compared at 10 µs each: a configuration may have thousands of workers, and as many
policies that name another."""

_LONGEST = 253
"""Characters of a name that can be meant: no name in Kubernetes is longer."""

_MOST_LISTED = 12
"""Known names that a message lists."""


def similar(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, whatever the letters' case; "" if none is, or if that would take
    long.
    """
    known = list(known)
    if len(name) > _LONGEST or len(known) > _MOST_COMPARED:
        return ""
    by_folded = {each.casefold(): each for each in sorted(known, reverse=True)}
    found = get_close_matches(name.casefold(), by_folded, n=1, cutoff=_CLOSE)
    return by_folded[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str], *, listed: str = "") -> str:
    """``did you mean "labels"?`` if a known name is like it, and behind it the known ones, called ``listed``.

    Returns:
        Text to follow a message; "" if there is no suggestion.
    """
    names = sorted(set(known))
    close = similar(name, names)
    parts = [f"did you mean {quote(close)}?"] if close else []
    if listed:
        more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
        parts.append(f"{listed}: {', '.join(map(quote, names[:_MOST_LISTED])) or 'none'}{more}")
    return " ".join(parts)
