"""Fields whose feature this version does not have: an error when loaded, never ignored.

A field that was accepted and had no effect would be a rule that somebody believes to be in force. One table for each
object; where a value of the field asks for nothing new, that value is accepted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.policies import wording
from gateway.policies.fields import Field


@dataclass(frozen=True, kw_only=True, slots=True)
class Later:
    """Why the field is refused and what to do, and the values that are accepted all the same."""

    because: str
    accepted: tuple[str | bool | list[object], ...] = ()


POLICY: Final[Mapping[str, Later]] = {
    "matchConditions": Later(
        because="conditions are not evaluated in this version; remove the field, and let the worker decide",
        accepted=([],),
    ),
    "inputs": Later(because="a policy is sent the whole request in this version; remove the field"),
    "writes": Later(because="what a policy changes cannot be limited in this version; remove the field"),
    "cache": Later(because="verdicts cannot be cached in this version; remove the field"),
    "isolate": Later(
        because="a policy cannot have a registration entry of its own in this version; remove the field",
        accepted=(False,),
    ),
    "onConflict": Later(because="conflicts between policies are not looked for in this version; remove the field"),
    "mode": Later(
        because="every policy is enforced in this version; remove the field, or write enforce", accepted=("enforce",)
    ),
    "shadow": Later(because="a policy cannot be compared with another one in this version; remove the field"),
    # These two will never come: they are a webhook's.
    "clientConfig": Later(because="a policy has no address of its own; remove the field, and name a worker instead"),
    "admissionReviewVersions": Later(because="the gateway itself speaks with the API server; remove the field"),
}

WORKER: Final[Mapping[str, Later]] = {
    "queue": Later(because="a worker cannot be asked over Redis Streams in this version; use grpc"),
    "webhook": Later(because="an existing webhook cannot be asked in this version; use grpc"),
    "hook": Later(because="a shell-operator hook cannot be run in this version; use grpc"),
}

GRPC: Final[Mapping[str, Later]] = {
    "tls": Later(because="a worker cannot be asked over TLS in this version; remove the field"),
}


def refuse_later(owner: Field, table: Mapping[str, Later]) -> None:
    """Report each field of the table that stands in ``owner`` with a value that is not accepted."""
    for name, later in table.items():
        field = owner.get(name)
        if field.absent or field.node is None:
            continue
        value = field.node.value
        # 0 == False: the type has to be the same as well.
        if not any(type(value) is type(accepted) and value == accepted for accepted in later.accepted):
            field.refuse(wording.forbidden(later.because))
