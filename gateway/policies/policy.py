"""One entry of ``policies``: the schema of a webhook, with ``clientConfig`` replaced by a worker's name.

It is judged as a webhook of admissionregistration.k8s.io/v1 is, at ``policies[0]…``, and has a few fields of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.policies import wording
from gateway.policies.cache import read_cache
from gateway.policies.fields import Field, Findings
from gateway.policies.inputs import read_inputs
from gateway.policies.later import POLICY, refuse_fields
from gateway.policies.model import Mode, OnConflict, Phase, Worker
from gateway.policies.names import dns_label, dns_subdomain
from gateway.policies.settings import read_settings
from gateway.policies.webhook import COMMON, MUTATING, Asked, Seat
from gateway.policies.writes import read_writes
from gateway.scopes import Writes

_OF_CHANGES: Final[Mapping[str, str]] = {
    "writes": "a validating policy changes nothing, so there is nothing to grant; remove the field",
    "onConflict": "a validating policy changes nothing, so it cannot conflict with another one; remove the field",
}
"""Fields that only a mutating policy has, and why. They are known in both phases, to be told from misspelt ones."""

_FIELDS: Final = (
    *(*COMMON, "worker", "policy", "settings", "inputs", "cache", "mode", "isolate"),
    *_OF_CHANGES,
    *POLICY,
)
_KNOWN: Final = {Phase.MUTATING: (*_FIELDS, *MUTATING), Phase.VALIDATING: _FIELDS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """The Workers of the whole source: those that can be asked, and why the others cannot, by name."""

    sound: Mapping[str, Worker]
    broken: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnTarget:
    """What a policy of ours has besides (a Target): ``workers`` are those that it may name.

    ``warnings`` is where it goes what is no mistake.
    """

    phase: Phase
    workers: Workers
    warnings: Findings

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields of an entry."""
        return _KNOWN[self.phase]

    def asked(self, entry: Field, seat: Seat) -> Asked:
        """The worker that it names, which of its policies, with which settings; what it may see, change and keep."""
        is_mutating = self.phase is Phase.MUTATING
        return Asked(
            worker=self._worker(entry.get("worker")),
            policy=_worker_policy(entry.get("policy"), seat),
            settings=read_settings(entry.get("settings")),
            inputs=read_inputs(entry.get("inputs"), self.warnings),
            writes=read_writes(entry.get("writes"), self.warnings) if is_mutating else Writes.DEFAULT,
            cache=read_cache(entry.get("cache")),
            on_conflict=_on_conflict(entry.get("onConflict")) if is_mutating else OnConflict.WARN,
            # What cannot be read is in force.
            mode=entry.get("mode").word(Mode) or Mode.ENFORCE,
            isolate=entry.get("isolate").flag() or False,
        )

    def finish(self, entry: Field) -> None:
        """Refuse what this phase and this version do not have."""
        if self.phase is Phase.VALIDATING:
            refuse_fields(entry, _OF_CHANGES)
        refuse_fields(entry, POLICY)

    def _worker(self, field: Field) -> str:
        name = field.name(dns_subdomain)
        if name is None:
            return ""
        if name in self.workers.broken:
            field.refuse(f"worker {wording.quote(name)} is invalid: {self.workers.broken[name]}")
        elif name not in self.workers.sound:
            field.refuse(wording.not_found(name))
        return name


def _on_conflict(field: Field) -> OnConflict:
    return OnConflict.WARN if field.absent else field.word(OnConflict) or OnConflict.DENY


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
