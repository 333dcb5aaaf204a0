"""The name of an entry: a webhook's name in Kubernetes, and a segment of the gateway's path.

A path must never silently come to mean another set of policies, as numbers would when a policy is put in between, and a
small change must not rename everything. So an entry is named after its first member: a policy that joins it at the end
changes nothing, and an entry that has another first member has another name, under which the old registration finds 404
and no verdict.

====================  ====================  ================================================================
entry                 name                  why
====================  ====================  ================================================================
a mutating run        ``chain.POLICY``      also of one policy, which another may join
a validating set      ``group.POLICY``      likewise
an isolated policy    ``POLICY``            a webhook that moved here keeps its name in messages
====================  ====================  ================================================================

If entries would have the same name, each of them is qualified: if they are in both phases, ``mutate.`` or
``validate.`` is put in front; if in one, ``.CONFIGURATION`` at the end, and where that is not enough (v1beta1 permits
one name twice in one configuration, where only the place in its list differs), a digest of the qualified name.
All of them and not the later ones only: were the first to keep the plain name, its removal would hand that name to the
second.

A name is a DNS-1123 subdomain of three segments and 253 bytes at most; where it is cut, a digest makes up for it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.policies.model import Phase, Policy
from gateway.policies.names import SUBDOMAIN_MAX

_RUN: Final = {Phase.MUTATING: "chain", Phase.VALIDATING: "group"}
_PHASE: Final = {Phase.MUTATING: "mutate", Phase.VALIDATING: "validate"}

_DIGEST_DIGITS: Final = 16
"""64 bits in hexadecimal: of a million names, two are equal once in 37 million times."""


class _Draft(Struct, frozen=True, kw_only=True):
    """A name, and which qualifications it has got so far."""

    first: Policy
    isolated: bool
    phase: bool = False
    configuration: bool = False
    digest: bool = False

    def __str__(self) -> str:
        policy = self.first
        segments = [
            _PHASE[policy.phase] if self.phase else "",
            "" if self.isolated else _RUN[policy.phase],
            policy.name,
            policy.configuration if self.configuration else "",
            _digest(f"{policy.phase}/{policy.qualified_name}") if self.digest else "",
        ]
        return _cut(".".join(filter(None, segments)))


def entry_names(firsts: Sequence[tuple[Policy, bool]]) -> list[str]:
    """A name for each entry of both phases, all different.

    Args:
        firsts: each entry's first policy, and whether it is isolated.
    """
    drafts = [_Draft(first=first, isolated=isolated) for first, isolated in firsts]
    while True:
        called: dict[str, list[int]] = defaultdict(list)
        for index, draft in enumerate(drafts):
            called[str(draft)].append(index)
        alike = [indices for indices in called.values() if len(indices) > 1]
        # It ends: a draft can be qualified three times, and one that has a digest is like no other.
        if not alike or all(drafts[index].digest for indices in alike for index in indices):
            return [str(draft) for draft in drafts]
        for indices in alike:
            both_phases = len({drafts[index].first.phase for index in indices}) > 1
            for index in indices:
                drafts[index] = _qualified(drafts[index], both_phases=both_phases)


def _qualified(draft: _Draft, *, both_phases: bool) -> _Draft:
    if both_phases and not draft.phase:
        return replace(draft, phase=True)
    if not draft.configuration:
        return replace(draft, configuration=True)
    return replace(draft, digest=True)


def _cut(name: str) -> str:
    if len(name) <= SUBDOMAIN_MAX:
        return name
    # "cut" is a segment of its own, so that there are three even where the cut went through the first.
    end = f".cut.{_digest(name)}"
    return name[: SUBDOMAIN_MAX - len(end)].rstrip("-.") + end


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]
