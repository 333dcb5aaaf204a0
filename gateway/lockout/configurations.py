"""Webhook configurations of kube-apiserver, as webhooks with rules, selectors and conditions to match probes with."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.model import FailurePolicy, Phase, Policy

_KINDS = {Phase.MUTATING: "MutatingWebhookConfiguration", Phase.VALIDATING: "ValidatingWebhookConfiguration"}


class Webhook(Struct, frozen=True, kw_only=True):
    """One registered webhook. ``own``: it leads to the gateway; ``policies`` are then those of its entry, by name."""

    policy: Policy
    own: bool
    policies: tuple[Policy, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of its configuration."""
        return _KINDS[self.policy.phase]

    @property
    def fails_closed(self) -> bool:
        """Whether a request is refused if it cannot be called."""
        return self.policy.failure_policy is FailurePolicy.FAIL


def read_webhooks(
    objects: Iterable[Mapping[str, Any]], entries: Mapping[str, tuple[Policy, ...]] | None = None
) -> tuple[Webhook, ...]:
    """The webhooks of some configuration objects (v1), in the order in which kube-apiserver calls them.

    Args:
        objects: as JSON values.
        entries: of the gateway's own objects: the policies of each entry by its name; None: others' objects.
    """
    text = "\n".join(json.dumps(each) for each in objects)
    if not text:
        return ()
    found = load([SourceText(name="webhooks.json", content=text.encode())])
    return tuple(
        Webhook(policy=policy, own=entries is not None, policies=(entries or {}).get(policy.name, ()))
        for policy in found.mutating + found.validating
    )
