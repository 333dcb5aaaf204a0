"""One entry of ``policies``: the schema of a webhook, with ``clientConfig`` replaced by a worker's name.

It is judged as a webhook of admissionregistration.k8s.io/v1 is, at ``policies[0]…``, and has a few fields of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.policies import wording
from gateway.policies.fields import Field
from gateway.policies.later import POLICY, refuse_later
from gateway.policies.model import Mode, Phase, Worker
from gateway.policies.names import dns_label, dns_subdomain
from gateway.policies.settings import read_settings
from gateway.policies.webhook import COMMON, MUTATING, Asked, Seat

_FIELDS: Final = (*COMMON, "worker", "policy", "settings", "mode", "isolate", *POLICY)
_KNOWN: Final = {Phase.MUTATING: (*_FIELDS, *MUTATING), Phase.VALIDATING: _FIELDS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """The Workers of the whole source: those that can be asked, and why the others cannot, by name."""

    sound: Mapping[str, Worker]
    broken: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnTarget:
    """What a policy of ours has besides (a Target): ``workers`` are those that it may name."""

    phase: Phase
    workers: Workers

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields of an entry."""
        return _KNOWN[self.phase]

    def asked(self, entry: Field, seat: Seat) -> Asked:
        """The worker that it names, which of its policies, with which settings."""
        return Asked(
            worker=self._worker(entry.get("worker")),
            policy=_worker_policy(entry.get("policy"), seat),
            settings=read_settings(entry.get("settings")),
            # What cannot be read is in force.
            mode=entry.get("mode").word(Mode) or Mode.ENFORCE,
            isolate=entry.get("isolate").flag() or False,
        )

    def finish(self, entry: Field) -> None:
        """Refuse what this version does not have."""
        refuse_later(entry, POLICY)

    def _worker(self, field: Field) -> str:
        name = field.name(dns_subdomain)
        if name is None:
            return ""
        if name in self.workers.broken:
            field.refuse(f"worker {wording.quote(name)} is invalid: {self.workers.broken[name]}")
        elif name not in self.workers.sound:
            field.refuse(wording.not_found(name))
        return name


def _worker_policy(field: Field, seat: Seat) -> str:
    """Which of the worker's policies; "default: the first segment of name"."""
    if not field.absent:
        return field.name(dns_label) or ""
    if not seat.is_named:
        return ""
    segment = seat.called.partition(".")[0]
    # A segment may be longer than a label: Kubernetes checks the name's length as a whole.
    field.refuse_each(segment, dns_label(segment))
    return segment
