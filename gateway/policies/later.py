"""Fields whose feature this version does not have: an error when loaded, never ignored.

A field that was accepted and had no effect would be a rule that somebody believes to be in force. One table for each
object: the field, and why it is refused and what to do.
"""

from collections.abc import Mapping
from typing import Final

from gateway.policies import wording
from gateway.policies.fields import Field

POLICY: Final[Mapping[str, str]] = {
    "shadow": "a policy cannot be compared with another one in this version; remove the field",
    # These two will never come: they are a webhook's.
    "clientConfig": "a policy has no address of its own; remove the field, and name a worker instead",
    "admissionReviewVersions": "the gateway itself speaks with the API server; remove the field",
}

WORKER: Final[Mapping[str, str]] = {
    "queue": "a worker cannot be asked over Redis Streams in this version; use grpc",
    "webhook": "an existing webhook cannot be asked in this version; use grpc",
    "hook": "a shell-operator hook cannot be run in this version; use grpc",
}


def refuse_fields(owner: Field, table: Mapping[str, str]) -> None:
    """Report each field of the table that stands in ``owner``."""
    for name, because in table.items():
        if not owner.get(name).absent:
            owner.get(name).refuse(wording.forbidden(because))
