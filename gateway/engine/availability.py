"""Which policies of a configuration cannot be called as configured, and why.

"A policy that is invalid, or whose worker is unknown, undescribed or rejects its settings, keeps its last good version,
else stands in the chain as a failure CONFIGURATION under its failurePolicy."
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gateway.engine.plan import ANSWERS, PolicyAvailability, Unavailable, availability_of
from gateway.policies.errors import ConfigurationError
from gateway.policies.field_errors import field_path
from gateway.policies.model import Policy


class UnavailablePolicy(Struct, frozen=True, kw_only=True):
    """A policy that cannot be called as configured. ``last_good``: its last good version is called instead."""

    policy: Policy
    availability: Unavailable
    last_good: bool = False

    @property
    def answered(self) -> bool:
        """Whether the reason comes from its worker's answer."""
        return self.availability.why in ANSWERS

    @property
    def message(self) -> str:
        """Why, and what to do: for operators."""
        return (
            f"{self.availability.message}; {self.availability.hint}"
            if self.availability.hint
            else self.availability.message
        )

    @property
    def errors(self) -> tuple[ConfigurationError, ...]:
        """The same as configuration errors: one for each place in the settings that the worker refuses, else one."""
        place, availability = self.policy.place, self.availability
        path = f"{place.path}.{availability.field}" if availability.field else place.path
        if not availability.refused:
            return (
                ConfigurationError(
                    place=replace(place, path=path), message=availability.message, hint=availability.hint
                ),
            )
        return tuple(
            ConfigurationError(
                place=replace(place, path=field_path(_tokens(pointer), path)),
                message=f"worker {self.policy.worker!r} refuses it: {message}",
            )
            for pointer, message in availability.refused
        )

    def __str__(self) -> str:
        """One line for people: the policy, the effect, the kind of reason, and the reason."""
        effect, name = "runs in its last good version" if self.last_good else "fails", self.policy.qualified_name
        return f"{self.policy.phase} policy {name} {effect} ({self.availability.why}): {self.message}"


def _tokens(pointer: str) -> list[str]:
    """The tokens of what should be a JSON Pointer; it is a worker's, so it may be none."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def unavailable_policies(
    policies: Sequence[Policy], availabilities: Mapping[str, PolicyAvailability], *, last_good: Collection[str] = ()
) -> tuple[UnavailablePolicy, ...]:
    """The policies of one phase that cannot be called as configured, in their order.

    Args:
        policies: as configured.
        availabilities: by qualified name; a policy that is missing is not described yet.
        last_good: the qualified names of the policies whose last good version is called.
    """
    return tuple(
        UnavailablePolicy(policy=policy, availability=availability, last_good=policy.qualified_name in last_good)
        for policy in policies
        if isinstance(availability := availability_of(policy, availabilities), Unavailable)
    )
