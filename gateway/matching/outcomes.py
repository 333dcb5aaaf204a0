"""What matching can come to. Exactly one of these is the answer for a policy and a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.cel.program import NeedsAuthorization
from gateway.reasons import Reason
from gateway.review.request import GroupVersionKind, GroupVersionResource


@dataclass(frozen=True, kw_only=True, slots=True)
class Matched:
    """The policy judges this request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotMatched:
    """The policy has nothing to do with this request; ``why`` names the field that says so."""

    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WrongVersion:
    """The policy judges this request in another version: a failure ``WRONG_VERSION``.

    kube-apiserver would convert the object to ``kind`` and call a webhook with ``resource``; what came here is another
    version, and only the API server can convert. ``kind`` is None where no table of equivalent resources says it: the
    table knows the resource and not its kind, or it does not know the resource, and then ``resource`` is what came.
    """

    resource: GroupVersionResource
    kind: GroupVersionKind | None
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NeedsNamespace:
    """It depends on the labels of this namespace."""

    namespace: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Undecidable:
    """The policy is meant, or may be, but nobody can tell.

    ``message`` is in kube-apiserver's own words, and ``details`` the StatusDetails that it gives with them; ``hint``
    is what to do about it here. ``ignorable`` is False for what it refuses whatever failurePolicy says.
    """

    reason: Reason
    message: str
    hint: str = ""
    details: Mapping[str, Any] | None = None
    ignorable: bool = True


Matching = Matched | NotMatched | WrongVersion | NeedsNamespace | NeedsAuthorization | Undecidable
"""``NeedsAuthorization`` is that of ``gateway.cel``: it depends on the answer to its ``check``."""

MATCHED: Final = Matched()
"""The one value of its type: whoever matches is compared with it."""
