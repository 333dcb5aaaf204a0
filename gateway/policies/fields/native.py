"""One webhook of a native configuration: an entry that is isolated, and a worker of its own that it calls.

The worker is named ``KIND/CONFIGURATION/WEBHOOK``, and ``…[INDEX]`` where a webhook before it has the same name: no
Worker document can be called so, since a name holds no slash.
"""

from msgspec import Struct
from msgspec.structs import replace

from gateway.gotypes.places import Place
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.native_types import WEBHOOKS
from gateway.policies.decoding.strict import decode
from gateway.policies.errors import Findings
from gateway.policies.fields.versions import NATIVE, Version
from gateway.policies.fields.webhook import Slot, TargetFields, read_webhook
from gateway.policies.model import Policy
from gateway.policies.workers.client_config import read_client_config, read_review_versions
from gateway.policies.workers.targets import Worker


class _NativeTarget(Struct, frozen=True, kw_only=True):
    """The fields that only a webhook has (a Target)."""

    fields: tuple[str, ...]
    kind: str
    version: Version

    def read(self, entry: Field, slot: Slot) -> TargetFields:
        """The webhook itself."""
        read_client_config(entry.get("clientConfig"))
        name = f"{self.kind}/{slot.configuration}/{slot.called}"
        return TargetFields(worker=f"{name}[{slot.index}]" if slot.namesake else name, isolate=True, is_existing=True)

    def finish(self, entry: Field) -> None:
        """The versions of the review that the webhook speaks."""
        read_review_versions(entry.get("admissionReviewVersions"), self.version.default_review_versions)


def read_native(entry: Field, slot: Slot, kind: str, version: str, warnings: Findings) -> tuple[Policy, Worker | None]:
    """The policy of one webhook, and the worker that it calls (None if there is an error in the webhook).

    Args:
        entry: the element of ``webhooks``, not decoded yet, with findings of its own.
        slot: its place in the chain.
        kind: of the configuration.
        version: of the configuration, without its group.
        warnings: takes what is no error.
    """
    struct = WEBHOOKS[slot.phase, version]
    decoded = decode(entry, struct, Place(struct=kind, names=("webhooks",)))
    target = _NativeTarget(fields=tuple(struct.fields), kind=kind, version=NATIVE[version])
    policy = read_webhook(decoded, slot, target.version, target, warnings)
    if policy.fault is not None:
        return policy, None
    # Nothing is wrong with any of it, so that reading it again reports nothing.
    webhook = replace(
        read_client_config(decoded.get("clientConfig")),
        review_versions=read_review_versions(
            decoded.get("admissionReviewVersions"), target.version.default_review_versions
        ),
    )
    return policy, Worker(name=policy.worker, webhook=webhook, place=entry.place)
