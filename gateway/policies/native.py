"""One webhook of a native configuration: an entry that is isolated, and a worker of its own that it asks.

The worker is named ``KIND/CONFIGURATION/WEBHOOK``, and ``…[INDEX]`` where a webhook before it has the same name: no
Worker document can be called so, since a name holds no slash.
"""

from dataclasses import dataclass, replace
from typing import Final

from gateway.policies import wording
from gateway.policies.client_config import read_ca_bundle, read_service, read_url
from gateway.policies.decoding import GoPlace, decode
from gateway.policies.fields import Field, Findings
from gateway.policies.model import Policy, WebhookTarget, Worker
from gateway.policies.names import dns_label_1035
from gateway.policies.schema import WEBHOOKS
from gateway.policies.versions import NATIVE, Version
from gateway.policies.webhook import Asked, Seat, read_webhook

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
"""AcceptedAdmissionReviewVersions: those that the API server, and so the gateway, speaks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _NativeTarget:
    """What a webhook has besides (a Target)."""

    fields: tuple[str, ...]
    kind: str
    version: Version

    def asked(self, entry: Field, seat: Seat) -> Asked:
        """The webhook itself."""
        _client(entry)
        name = f"{self.kind}/{seat.configuration}/{seat.called}"
        return Asked(worker=f"{name}[{seat.index}]" if seat.namesake else name, isolate=True)

    def finish(self, entry: Field) -> None:
        """The versions of the review that the webhook speaks."""
        _review_versions(entry.get("admissionReviewVersions"), self.version)


def read_native(entry: Field, seat: Seat, kind: str, version: str, warnings: Findings) -> tuple[Policy, Worker | None]:
    """The policy of one webhook, and the worker that it asks (None if there is a mistake in the webhook).

    Args:
        entry: the element of ``webhooks``, not decoded yet, with findings of its own.
        seat: where in the chain it stands.
        kind: of the configuration.
        version: of the configuration, without its group.
        warnings: where it goes what is no mistake.
    """
    struct = WEBHOOKS[seat.phase, version]
    decoded = decode(entry, struct, GoPlace(struct=kind, fields=("webhooks",)))
    target = _NativeTarget(fields=tuple(struct.fields), kind=kind, version=NATIVE[version])
    policy = read_webhook(decoded, seat, target.version, target, warnings)
    if policy.fault is not None:
        return policy, None
    # Nothing is wrong with any of it, so that reading it again reports nothing.
    webhook = replace(
        _client(decoded), review_versions=_review_versions(decoded.get("admissionReviewVersions"), target.version)
    )
    return policy, Worker(name=policy.worker, webhook=webhook, place=entry.place)


def _client(entry: Field) -> WebhookTarget:
    config = entry.get("clientConfig")
    url, service = config.get("url"), config.get("service")
    if url.absent == service.absent:
        config.refuse(wording.required("exactly one of url or service is required"))
        return WebhookTarget()
    return WebhookTarget(
        url=read_url(url), service=read_service(service), ca_bundle=read_ca_bundle(config.get("caBundle"))
    )


def _review_versions(field: Field, version: Version) -> tuple[str, ...]:
    versions = field.texts()
    if versions is None:
        return ()
    if not versions and version.default_review_versions is not None:
        return version.default_review_versions
    if not versions:
        field.refuse(wording.required("must specify one of " + ", ".join(REVIEW_VERSIONS)))
        return ()
    seen: set[str] = set()
    for item, text in versions:
        if text in seen:
            item.refuse(wording.invalid(text, "duplicate version"))
            continue
        seen.add(text)
        item.refuse_each(text, dns_label_1035(text))
    if seen.isdisjoint(REVIEW_VERSIONS):
        detail = "must include at least one of " + ", ".join(REVIEW_VERSIONS)
        field.refuse(wording.invalid([text for _, text in versions], detail))
    return tuple(text for _, text in versions)
