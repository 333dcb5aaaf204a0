"""Two policies of one review that write the same field: found, named, and ruled by the stricter one's ``onConflict``.

A field is one that an enforcing policy has changed before; the policy that changes it now is the later one, in the
second round too, where a policy that undoes what another did is found in the same way. (There are two rounds at most,
so two policies that undo each other end all the same.) A policy is never in conflict with itself, and one whose mode is
warn or audit with nobody, since it changes nothing.

* ``deny``: the later change is not applied, and is a failure ``PATCH_CONFLICT``, which no failurePolicy ignores: the
  operator has said that one of the two would be wrong.
* ``warn``: it is applied; the user and the audit log are told.
* ``allow``: it is applied; the record says so.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from gateway.engine.plan import Member
from gateway.engine.verdicts import Failure
from gateway.patching.field_ownership import Overwrite
from gateway.policies.field_errors import field_path
from gateway.policies.model import OnConflict
from gateway.reasons import Reason
from gateway.scopes.pointer import parse_pointer
from gateway.wording import shown

CONFLICTS_KEPT: Final = 100
"""How many conflicts of one change are recorded, the strictest first: a patch of 10,000 operations can have as many,
and nobody reads more than a few."""

PLACES_LISTED: Final = 3
"""How many places a message names: at 200 characters each, and the two policies, some 1 KB."""

_STRICTNESS: Final = (OnConflict.ALLOW, OnConflict.WARN, OnConflict.DENY)


class Conflict(Struct, frozen=True, kw_only=True):
    """A field that this policy wrote, or would have, and others before it.

    ``path`` is a JSON Pointer over the object, as it is at that moment. ``with_policies`` are their labels, in chain
    order. ``rule`` is the strictest ``onConflict`` of them all.
    """

    path: str
    with_policies: tuple[str, ...]
    rule: OnConflict


def conflicts_of(index: int, overwrites: Sequence[Overwrite], members: Sequence[Member]) -> tuple[Conflict, ...]:
    """The conflicts of the policy at place ``index`` with those whose work it overwrites, the strictest first."""
    found = [
        _conflict(members[index], each.pointer, [members[author] for author in sorted(each.authors)])
        for each in overwrites
    ]
    found.sort(key=lambda conflict: -_STRICTNESS.index(conflict.rule))
    return tuple(found[:CONFLICTS_KEPT])


def conflict_failure(conflicts: Sequence[Conflict]) -> Failure | None:
    """What the later change comes to instead, if somebody's rule is deny."""
    denied = [each for each in conflicts if each.rule is OnConflict.DENY]
    if not denied:
        return None
    return Failure(
        reason=Reason.PATCH_CONFLICT,
        message=(
            f"the policy changes what {others(denied)} wrote in this review: {places(denied)}; onConflict is deny: let "
            "one of them leave the field alone, or set onConflict to warn on each of them"
        ),
        ignorable=False,
    )


def others(conflicts: Sequence[Conflict]) -> str:
    """The other policies' names."""
    return _listed(dict.fromkeys(name for each in conflicts for name in each.with_policies))


def places(conflicts: Sequence[Conflict]) -> str:
    """The places in conflict."""
    return _listed_places(conflicts, [each.path for each in conflicts])


def fields(conflicts: Sequence[Conflict]) -> str:
    """The same, as Kubernetes writes paths of fields: for users."""
    return _listed_places(conflicts, [field_path(parse_pointer(each.path)) for each in conflicts])


def _listed_places(conflicts: Sequence[Conflict], texts: Iterable[str]) -> str:
    least = "at least " if len(conflicts) == CONFLICTS_KEPT else ""
    return _listed(dict.fromkeys(map(shown, texts)), least)


def _listed(texts: Iterable[str], least: str = "") -> str:
    """The first few of them, and how many more; with ``least`` in front where not all were kept."""
    listed = list(texts)
    more = [f"and {least}{len(listed) - PLACES_LISTED} more"] if len(listed) > PLACES_LISTED else []
    return ", ".join([*listed[:PLACES_LISTED], *more])


def _conflict(member: Member, path: str, earlier: Sequence[Member]) -> Conflict:
    rules = [each.policy.on_conflict for each in (member, *earlier)]
    return Conflict(
        path=path, with_policies=tuple(each.label for each in earlier), rule=max(rules, key=_STRICTNESS.index)
    )
