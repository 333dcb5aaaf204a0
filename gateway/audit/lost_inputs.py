"""Which policies cannot judge a request again, because they see something that the log of it has not.

=================  ===================================================================================================
lost               seen by a policy
=================  ===================================================================================================
oldObject          with an input there, whose conditions name it, or whose objectSelector does not select the object as
                   it is now: a request that matched may have matched by the old one
userInfo.groups    with an input there, or whose conditions name ``userInfo`` or ``authorizer``
userInfo.extra     as well
=================  ===================================================================================================

A verdict on something else in its place would be wrong in the worst way: with the object as its own old one, every
policy that forbids a change allows it.
"""

from collections.abc import Iterable
from typing import Any

from gateway.audit.unjudged_lines import OLD_OBJECT
from gateway.engine.plan import Member
from gateway.matching.selectors import object_selected

_USER = ("userInfo", "authorizer")


def needed(member: Member, lost: Iterable[str], obj: Any) -> str:
    """What a policy needs to judge a request again, and the log has not: ``oldObject, userInfo.extra``; "" if nothing.

    Args:
        member: the policy, and what its worker claims to see.
        lost: what the log has not.
        obj: the object as it is now.
    """
    return ", ".join(place for place in lost if _sees(member, place, obj))


def _sees(member: Member, place: str, obj: Any) -> bool:
    name, _, part = place.partition(".")
    shown = member.inputs.shown(name)
    if shown is not None and (not part or shown.whole or shown.below(part) is not None):
        return True
    conditions = [each.condition for each in member.policy.match_conditions]
    if place == OLD_OBJECT:
        is_named = any(OLD_OBJECT in each.variables for each in conditions)
        return is_named or not object_selected(member.policy.object_selector, obj, None)
    return any(name in each.expression for each in conditions for name in _USER)
