"""One entry of ``policies``: the schema of a webhook, with ``clientConfig`` replaced by a worker's name.

It is judged as a webhook of admissionregistration.k8s.io/v1 is, at ``policies[0]…``, and has a few fields of its own.

An error in any of them is the policy's fault, but for ``shadow``: a shadow must never take the policy down. It is an
error like all others (``check`` exits with 1, a reload is refused); a start serves the policy without its shadow.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.errors import Findings
from gateway.policies.fields.cache import read_cache
from gateway.policies.fields.inputs import read_inputs
from gateway.policies.fields.settings import read_settings
from gateway.policies.fields.webhook import COMMON, MUTATING, Slot, TargetFields
from gateway.policies.fields.writes import read_writes
from gateway.policies.model import Mode, OnConflict, Phase, Shadow
from gateway.policies.names import dns_label, dns_subdomain
from gateway.policies.suggestions import did_you_mean
from gateway.policies.workers.targets import Worker
from gateway.scopes.writes import Writes

_OF_CHANGES: Final[Mapping[str, str]] = {
    "writes": "a validating policy changes nothing, so there is nothing to grant; remove the field",
    "onConflict": "a validating policy changes nothing, so it cannot conflict with another one; remove the field",
}
"""Fields that only a mutating policy has, and why. They are known in both phases: they are not misspelt."""

_OF_WEBHOOKS: Final[Mapping[str, str]] = {
    "clientConfig": "a policy has no address of its own; remove the field, and name a worker instead",
    "admissionReviewVersions": "the gateway itself speaks with the API server; remove the field",
}
"""Fields that only a webhook has, which a policy of ours is not."""

_NOT_OF_WEBHOOKS: Final[Mapping[str, str]] = {
    "policy": "a webhook holds no policies of its own; remove the field, and give the webhook another path instead",
    "settings": "a webhook is sent an AdmissionReview, in which there is no place for settings; remove the field",
}

_FIELDS: Final = (
    *COMMON,
    *("worker", "policy", "settings", "inputs", "cache", "mode", "isolate", "shadow", "contact", "documentation"),
)
FIELDS: Final[Mapping[Phase, tuple[str, ...]]] = {
    Phase.MUTATING: (*_FIELDS, *MUTATING, *_OF_CHANGES),
    Phase.VALIDATING: _FIELDS,
}
"""The names of the fields that a policy may have."""

MAX_CONTACT: Final = 256
MAX_DOCUMENTATION: Final = 1_024
"""Characters. Each denial has both, beside the message."""

URL: Final = "must be an absolute URL that begins with https:// or http://"
PRINTABLE: Final = "must be one line of printable characters"
"""Kubernetes has no words for these."""

SHADOW: Final = ("worker", "policy", "settings")
"""The names of those of its shadow."""

_KNOWN: Final = {phase: tuple({*fields, *_OF_CHANGES, *_OF_WEBHOOKS}) for phase, fields in FIELDS.items()}


class Workers(Struct, frozen=True, kw_only=True):
    """The Workers of the whole source: those that can be called, and why the others cannot, by name."""

    sound: Mapping[str, Worker]
    broken: Mapping[str, str]


class OwnTarget(Struct, frozen=True, kw_only=True):
    """The fields that only a policy of ours has (a Target): ``workers`` are those that it may name.

    ``warnings`` takes what is no error, ``asides`` the errors that are not the policy's fault.
    """

    phase: Phase
    workers: Workers
    warnings: Findings
    asides: Findings = field(default_factory=list)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of all fields of an entry."""
        return _KNOWN[self.phase]

    def read(self, entry: Field, slot: Slot) -> TargetFields:
        """The worker that it names, which of its policies, with which settings; what it may see, change and keep."""
        is_mutating = self.phase is Phase.MUTATING
        name = self._worker(entry.get("worker"))
        policy = _worker_policy(entry, slot, self.workers.sound.get(name))
        settings = read_settings(entry.get("settings"))
        own = Shadow(worker=name, policy=policy, settings=settings)
        is_existing = self._is_existing(name)
        return TargetFields(
            worker=name,
            policy=policy,
            settings=settings,
            inputs=read_inputs(entry.get("inputs"), self.warnings),
            writes=self._writes(entry.get("writes"), is_existing=is_existing) if is_mutating else Writes.DEFAULT,
            cache=read_cache(entry.get("cache")),
            on_conflict=_on_conflict(entry.get("onConflict")) if is_mutating else OnConflict.WARN,
            # What cannot be read is in force.
            mode=entry.get("mode").word(Mode) or Mode.ENFORCE,
            isolate=entry.get("isolate").flag() or False,
            shadow=self._shadow(replace(entry.get("shadow"), findings=self.asides), slot, own),
            is_existing=is_existing,
            contact=_line(entry.get("contact"), MAX_CONTACT),
            documentation=_documentation(entry.get("documentation")),
        )

    def finish(self, entry: Field) -> None:
        """Refuse what this phase and our kinds do not have."""
        if self.phase is Phase.VALIDATING:
            refuse_fields(entry, _OF_CHANGES)
        refuse_fields(entry, _OF_WEBHOOKS)

    def _shadow(self, entry: Field, slot: Slot, own: Shadow) -> Shadow | None:
        """The shadow; ``own`` is what the policy itself calls."""
        if not entry.mapping(SHADOW, advice="such as {worker: labels-next}"):
            return None
        name = self._worker(entry.get("worker"))
        worker, obeyed = self.workers.sound.get(name), self.workers.sound.get(own.worker)
        alike = worker is not None and obeyed is not None and (worker.hook is None) == (obeyed.hook is None)
        settings = entry.get("settings")
        shadow = Shadow(
            worker=name,
            policy=_worker_policy(entry, slot, worker, default=own.policy if alike else ""),
            settings=own.settings if settings.absent and _takes_settings(worker) else read_settings(settings),
        )
        if shadow == own and not entry.findings:
            entry.refuse(
                field_errors.forbidden(
                    "is the same call as the policy's own; name another worker, policy or other settings"
                )
            )
        return None if entry.findings else shadow

    def _is_existing(self, worker: str) -> bool:
        """Whether it is a webhook or hook that was written for kube-apiserver or shell-operator."""
        named = self.workers.sound.get(worker)
        return named is not None and (named.hook is not None or named.webhook is not None)

    def _writes(self, field: Field, *, is_existing: bool) -> Writes:
        """What it may change. An existing webhook or hook keeps its rights: kube-apiserver and shell-operator protect
        nothing.
        """
        return Writes.EVERYTHING if field.absent and is_existing else read_writes(field, self.warnings)

    def _worker(self, field: Field) -> str:
        name = field.name(dns_subdomain)
        if name is None:
            return ""
        if name in self.workers.broken:
            field.refuse(f"worker {field_errors.quote(name)} is invalid: {self.workers.broken[name]}")
        elif name not in self.workers.sound:
            known = (*self.workers.sound, *self.workers.broken)
            field.refuse(field_errors.not_found(name), did_you_mean(name, known, listed="known workers"))
        return name


def _line(field: Field, limit: int) -> str:
    """One line of text; "" if it is absent or refused."""
    text = field.text("") or ""
    if len(text) > limit:
        field.refuse(field_errors.too_long(limit))
        return ""
    if not text.isprintable() or text != text.strip():
        field.refuse(field_errors.invalid(text, PRINTABLE))
        return ""
    return text


def _documentation(field: Field) -> str:
    url = _line(field, MAX_DOCUMENTATION)
    if url and not _is_url(url):
        field.refuse(field_errors.invalid(url, URL))
        return ""
    return url


def _is_url(text: str) -> bool:
    try:
        return text.startswith(("https://", "http://")) and bool(urlsplit(text).hostname) and " " not in text
    except ValueError:
        return False


def _on_conflict(field: Field) -> OnConflict:
    return OnConflict.WARN if field.absent else field.word(OnConflict) or OnConflict.DENY


def _takes_settings(worker: Worker | None) -> bool:
    return worker is None or worker.webhook is None


def _worker_policy(entry: Field, slot: Slot, worker: Worker | None, *, default: str = "") -> str:
    """Which of the worker's policies; "default: the first segment of name". Of a hook it is a binding, which has a name
    like ours; a webhook has none.
    """
    field = entry.get("policy")
    if worker is not None and worker.webhook is not None:
        refuse_fields(entry, _NOT_OF_WEBHOOKS)
        return ""
    if default and field.absent:
        return default
    if worker is not None and worker.hook is not None:
        return slot.called if field.absent else field.name(dns_subdomain) or ""
    if not field.absent:
        return field.name(dns_label) or ""
    if not slot.is_named:
        return ""
    segment = slot.called.partition(".")[0]
    # A segment may be longer than a label: Kubernetes checks the name's length as a whole.
    field.refuse_each(segment, dns_label(segment))
    return segment


def refuse_fields(owner: Field, table: Mapping[str, str]) -> None:
    """Report each field of the table that stands in ``owner``: its name, and why it is refused."""
    for name, because in table.items():
        if not owner.get(name).absent:
            owner.get(name).refuse(field_errors.forbidden(because))
