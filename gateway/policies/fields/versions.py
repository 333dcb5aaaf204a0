"""What the versions of admissionregistration.k8s.io differ in: defaults (defaults.go of each) and validation on CREATE.

v1beta1 left the API server with 1.22; its validation is what it was until then. The gateway's own kinds are v1 in
everything but timeoutSeconds, which may be a fraction.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.policies.model import FailurePolicy, MatchPolicy, SideEffects

DEFAULT_PORT: Final = 443
"""Of a Service, in every version."""


class Version(Struct, frozen=True, kw_only=True):
    """One version's defaults and rules.

    ``timeout`` is in seconds. ``default_side_effects`` and ``default_review_versions`` are None where the field is
    required. ``side_effects`` are the words that are accepted.
    """

    failure_policy: FailurePolicy
    match_policy: MatchPolicy
    timeout: float
    default_side_effects: SideEffects | None
    default_review_versions: tuple[str, ...] | None
    side_effects: tuple[SideEffects, ...]
    has_unique_names: bool
    has_fractional_timeout: bool = False


V1: Final = Version(
    failure_policy=FailurePolicy.FAIL,
    match_policy=MatchPolicy.EQUIVALENT,
    timeout=10.0,
    default_side_effects=None,
    default_review_versions=None,
    side_effects=(SideEffects.NONE, SideEffects.NONE_ON_DRY_RUN),
    has_unique_names=True,
)
_V1BETA1: Final = Version(
    failure_policy=FailurePolicy.IGNORE,
    match_policy=MatchPolicy.EXACT,
    timeout=30.0,
    default_side_effects=SideEffects.UNKNOWN,
    default_review_versions=("v1beta1",),
    side_effects=tuple(SideEffects),
    has_unique_names=False,
)
OWN: Final = replace(V1, has_fractional_timeout=True)
"""The gateway's own kinds."""

NATIVE: Final[Mapping[str, Version]] = {"v1": V1, "v1beta1": _V1BETA1}
"""By the version's name."""
