"""What matching can come to. Exactly one of these is the answer for a policy and a request."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.cel.program import NeedsAuthorization
from gateway.reasons import Reason
from gateway.review.request import GroupVersionKind, GroupVersionResource


class Matched(Struct, frozen=True, kw_only=True):
    """The policy judges this request."""


class NotMatched(Struct, frozen=True, kw_only=True):
    """The policy has nothing to do with this request; ``why`` names the field that says so."""

    why: str


class WrongVersion(Struct, frozen=True, kw_only=True):
    """The policy judges this request in another version: a failure ``WRONG_VERSION``.

    kube-apiserver would convert the object to ``kind`` and call a webhook with ``resource``; what came here is another
    version, and only the API server can convert. ``kind`` is None where no table of equivalent resources says it: the
    table knows the resource and not its kind, or it does not know the resource, and then ``resource`` is what came.
    """

    resource: GroupVersionResource
    kind: GroupVersionKind | None
    message: str


class NeedsNamespace(Struct, frozen=True, kw_only=True):
    """It depends on the labels of this namespace."""

    namespace: str


class Undecidable(Struct, frozen=True, kw_only=True):
    """The policy is meant, or may be, but nobody can tell.

    ``message`` is in kube-apiserver's own words, and ``details`` the StatusDetails that it gives with them; ``hint``
    is what to do about it here. ``ignorable`` is False for what it refuses whatever failurePolicy says.
    """

    reason: Reason
    message: str
    hint: str = ""
    details: Mapping[str, Any] | None = None
    ignorable: bool = True


Ruled = Matched | WrongVersion
"""What rules come to for a policy that has one about the request."""

Matching = Matched | NotMatched | WrongVersion | NeedsNamespace | NeedsAuthorization | Undecidable
"""``NeedsAuthorization`` is that of ``gateway.cel``: it depends on the answer to its ``check``."""

MATCHED: Final = Matched()
"""The one value of its type: whoever matches is compared with it."""

RULES: Final = NotMatched(why="rules")
"""No rule is about the request."""
