"""Conflicts: two policies of one review that write the same field. The stricter ``onConflict`` of the two decides.

A policy conflicts with an enforcing policy that has changed the same field before it. This holds in the second round
too, so a policy that undoes another one's change is found in the same way. (There are at most two rounds, so two
policies that undo each other still end.) A policy never conflicts with itself. A policy in mode warn or audit conflicts
with no other, because it changes nothing.

* ``deny``: the later change is not applied and becomes a failure ``PATCH_CONFLICT``, which no failurePolicy ignores:
  the operator has stated that one of the two policies would be wrong.
* ``warn``: the change is applied, with a warning to the user and an audit annotation.
* ``allow``: the change is applied; only the record has the conflict.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from gateway.engine.plan import Member
from gateway.engine.verdicts import Failure
from gateway.patching.field_ownership import Overwrite
from gateway.policies.field_errors import field_path
from gateway.policies.model import OnConflict
from gateway.quoting import quoted
from gateway.reasons import Reason
from gateway.scopes.pointer import parse_pointer

CONFLICTS_KEPT: Final = 100
"""How many conflicts of one change are recorded, the strictest first: a patch of 10,000 operations can have as
many."""

PLACES_LISTED: Final = 3
"""How many places a message names: at 200 characters each, and the two policies, some 1 KB."""

_STRICTNESS: Final = (OnConflict.ALLOW, OnConflict.WARN, OnConflict.DENY)


class Conflict(Struct, frozen=True, kw_only=True):
    """A field that this policy wrote, or would have written, after other policies.

    ``path`` is a JSON Pointer over the object at that moment. ``with_policies`` are the labels of the other policies,
    in chain order. ``rule`` is the strictest ``onConflict`` of them all.
    """

    path: str
    with_policies: tuple[str, ...]
    rule: OnConflict


def conflicts_of(index: int, overwrites: Sequence[Overwrite], members: Sequence[Member]) -> tuple[Conflict, ...]:
    """The conflicts of the policy at ``index`` with the policies whose fields it overwrites, the strictest first."""
    found = [
        _conflict(members[index], each.pointer, [members[author] for author in sorted(each.authors)])
        for each in overwrites
    ]
    found.sort(key=lambda conflict: -_STRICTNESS.index(conflict.rule))
    return tuple(found[:CONFLICTS_KEPT])


def conflict_failure(conflicts: Sequence[Conflict]) -> Failure | None:
    """The failure that replaces the later change if a conflict's rule is deny, else None."""
    denied = [each for each in conflicts if each.rule is OnConflict.DENY]
    if not denied:
        return None
    return Failure(
        reason=Reason.PATCH_CONFLICT,
        message=(
            f"the policy changes what {others(denied)} wrote in this review: {places(denied)}; onConflict is deny: "
            "change one of the policies not to write the field, or set onConflict to warn on each of them"
        ),
        ignorable=False,
    )


def others(conflicts: Sequence[Conflict]) -> str:
    """The other policies' names."""
    return _listed(dict.fromkeys(name for each in conflicts for name in each.with_policies))


def places(conflicts: Sequence[Conflict]) -> str:
    """The JSON Pointers of the fields in conflict."""
    return _listed_places(conflicts, [each.path for each in conflicts])


def fields(conflicts: Sequence[Conflict]) -> str:
    """The same, as Kubernetes writes paths of fields: for users."""
    return _listed_places(conflicts, [field_path(parse_pointer(each.path)) for each in conflicts])


def _listed_places(conflicts: Sequence[Conflict], texts: Iterable[str]) -> str:
    least = "at least " if len(conflicts) == CONFLICTS_KEPT else ""
    return _listed(dict.fromkeys(map(quoted, texts)), least)


def _listed(texts: Iterable[str], least: str = "") -> str:
    """The first ``PLACES_LISTED`` texts and how many more; ``least`` goes in front of a number that is a minimum."""
    listed = list(texts)
    more = [f"and {least}{len(listed) - PLACES_LISTED} more"] if len(listed) > PLACES_LISTED else []
    return ", ".join([*listed[:PLACES_LISTED], *more])


def _conflict(member: Member, path: str, earlier: Sequence[Member]) -> Conflict:
    rules = [each.policy.on_conflict for each in (member, *earlier)]
    return Conflict(
        path=path, with_policies=tuple(each.label for each in earlier), rule=max(rules, key=_STRICTNESS.index)
    )
