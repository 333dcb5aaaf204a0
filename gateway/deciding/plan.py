"""Who is to judge: all policies of one phase (or entry) in chain order, matched or not, each with its standing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.deciding.verdicts import Failure
from gateway.policies import Phase, Policy
from gateway.reasons import Reason


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One policy in a plan.

    ``label`` names it to people: its name, or ``CONFIGURATION/NAME`` where two members have the same name. With
    ``standing`` it cannot be asked (its own mistake, or its worker's), and fails with that whenever it matches.
    ``version`` is the one that its worker described. ``registered``: its rules, selectors and conditions stand in a
    registration of its own, so that the API server has checked them before it asked, and nobody does it again.
    """

    policy: Policy
    label: str
    standing: Failure | None = None
    version: str = ""
    registered: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The members of one phase, in chain order."""

    phase: Phase
    members: tuple[Member, ...]

    def failing(self, failure: Failure) -> "Plan":
        """The same plan in which nobody can be asked, for this reason (such as OVERLOADED)."""
        return replace(self, members=tuple(replace(member, standing=failure) for member in self.members))


def make_plan(
    phase: Phase, policies: Sequence[Policy], standings: Mapping[str, Failure | str], *, registered: bool = False
) -> Plan:
    """The plan over ``policies``: all of a phase, or those of one entry.

    Args:
        phase: of all of them.
        policies: in chain order.
        standings: by qualified name: the version that the worker described, or why the policy cannot be asked. A policy
            that is not in here has not been described, and cannot be asked: not knowing is not allowing.
        registered: this is the entry of one isolated policy, which is asked for whatever comes through it.
    """
    names = Counter(policy.name for policy in policies)
    return Plan(
        phase=phase,
        members=tuple(
            replace(member, registered=registered)
            for member in (
                _member(policy, policy.name if names[policy.name] == 1 else policy.qualified_name, standings)
                for policy in policies
            )
        ),
    )


def _member(policy: Policy, label: str, standings: Mapping[str, Failure | str]) -> Member:
    if policy.fault is not None:
        return Member(policy=policy, label=label, standing=_configuration(f"{policy.place.file}: {policy.fault}"))
    standing = standings.get(policy.qualified_name)
    if standing is None:
        standing = _configuration(f"worker {policy.worker!r} has not been described yet")
    if isinstance(standing, Failure):
        return Member(policy=policy, label=label, standing=standing)
    return Member(policy=policy, label=label, version=standing)


def _configuration(message: str) -> Failure:
    return Failure(reason=Reason.CONFIGURATION, message=message)
