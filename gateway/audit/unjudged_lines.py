"""Reads what was admitted unjudged from logs, whatever else is in them.

========================================  ==============================================================================
line                                      names
========================================  ==============================================================================
a gateway's unjudged admission            the policies that did not judge the object (``gateway.telemetry.unjudged``)
an event of kube-apiserver's audit log    an object that passed because a webhook could not be called: none of its
with the annotation ``failed-open.…``     policies has judged it, so all that have a rule about it do
========================================  ==============================================================================

A line counts if the request was admitted by the validating phase, and left an object. An object may have several lines;
the last says who changed it last. Before an object is judged again, it is read as it is now.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from gateway.audit.targets import CREATE, OPERATIONS, UPDATE
from gateway.telemetry.unjudged import KIND

OBJECTS_KEPT: Final = 100_000
"""Objects that are judged again from one log: at 1 KB each 100 MB. A longer outage is for an audit of everything."""

DRY_RUN: Final = "a dry run, which changed nothing"
REFUSED: Final = "refused by another policy"
MUTATING: Final = "in the mutating phase: an audit judges validating policies"
NO_OBJECT: Final = "a DELETE, a CONNECT or a subresource: there is no object to judge"
NO_NAME: Final = "of an object whose name was generated: an audit log has the name only at the level RequestResponse"
UNREADABLE: Final = "a line that cannot be read"
TOO_MANY: Final = f"beyond {OBJECTS_KEPT:,} objects"

_MARK: Final = f'"{KIND}"'.encode()
_EVENT_MARK: Final = b'"failed-open.validating.webhook.admission.k8s.io/'

_VERBS: Final = {"create": CREATE, "update": UPDATE, "patch": UPDATE}
_SUCCESS: Final = range(200, 300)


class _Policy(Struct):
    name: str


class _User(Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)


class _Line(Struct, rename="camel"):
    phase: str
    allowed: bool
    operation: str
    dry_run: bool
    version: str
    resource: str
    policies: list[_Policy]
    name: str = ""
    group: str = ""
    sub_resource: str = ""
    namespace: str = ""
    object_uid: str = ""
    user: _User = field(default_factory=_User)


class _ObjectReference(Struct, rename="camel"):
    resource: str
    api_version: str
    api_group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Metadata(Struct):
    name: str = ""
    uid: str = ""


class _Object(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)


class _Status(Struct):
    code: int = 0


class _Event(Struct, rename="camel"):
    """An event of audit.k8s.io/v1."""

    stage: str
    verb: str
    object_ref: _ObjectReference
    request_uri: str = field(name="requestURI")
    user: _User = field(default_factory=_User)
    response_status: _Status = field(default_factory=_Status)
    response_object: _Object = field(default_factory=_Object)


_decode: Final = msgspec.json.Decoder(_Line).decode
_decode_event: Final = msgspec.json.Decoder(_Event).decode

_Found = dict[tuple[str, ...], "UnjudgedObject"]


class UnjudgedObject(Struct, frozen=True, kw_only=True):
    """An object that was admitted without a verdict of ``policies`` (CONFIGURATION/NAME; None: of any)."""

    group: str
    version: str
    resource: str
    namespace: str
    name: str
    uid: str
    operation: str
    user: Mapping[str, Any]
    policies: tuple[str, ...] | None


def unjudged_objects(lines: Iterable[bytes]) -> tuple[list[UnjudgedObject], dict[str, int]]:
    """The objects in a log, in the order of their first lines; and how many lines do not count, by reason."""
    found: _Found = {}
    skipped: dict[str, int] = {}
    for text in lines:
        read = _gateways if _MARK in text else _api_servers if _EVENT_MARK in text else None
        if read is None:
            continue
        try:
            # A log agent may write a prefix.
            new = read(text[text.index(b"{") :].strip())
        except (msgspec.DecodeError, ValueError, RecursionError):
            new = UNREADABLE
        why = _add(new, found) if isinstance(new, UnjudgedObject) else new
        if why:
            skipped[why] = skipped.get(why, 0) + 1
    return list(found.values()), skipped


def _gateways(text: bytes) -> UnjudgedObject | str:
    """The object of a gateway's line, or why there is none."""
    line = _decode(text)
    if line.dry_run:
        return DRY_RUN
    if not line.allowed:
        return REFUSED
    if line.phase != "validating":
        return MUTATING
    if line.operation not in OPERATIONS or line.sub_resource or not line.name:
        return NO_OBJECT
    return UnjudgedObject(
        group=line.group,
        version=line.version,
        resource=line.resource,
        namespace=line.namespace,
        name=line.name,
        uid=line.object_uid,
        operation=line.operation,
        user=_user(line.user),
        policies=tuple(dict.fromkeys(each.name for each in line.policies)),
    )


def _api_servers(text: bytes) -> UnjudgedObject | str:
    """The object of an event, or why there is none; "" if it is not the request's last one."""
    event = _decode_event(text)
    about, stored = event.object_ref, event.response_object.metadata
    if event.stage != "ResponseComplete":
        return ""
    if "dryRun=" in event.request_uri:
        return DRY_RUN
    if event.response_status.code not in _SUCCESS:
        return REFUSED
    if event.verb not in _VERBS or about.subresource:
        return NO_OBJECT
    name = about.name or stored.name
    if not name:
        return NO_NAME
    return UnjudgedObject(
        group=about.api_group,
        version=about.api_version,
        resource=about.resource,
        namespace=about.namespace,
        name=name,
        uid=about.uid or stored.uid,
        operation=_VERBS[event.verb],
        user=_user(event.user),
        policies=None,
    )


def _user(user: _User) -> dict[str, Any]:
    uid = {"uid": user.uid} if user.uid else {}
    return {"username": user.username, **uid, "groups": user.groups}


def _add(new: UnjudgedObject, found: _Found) -> str:
    """Add an object; returns why not."""
    key = (new.group, new.resource, new.namespace, new.name, new.uid)
    before = found.get(key)
    if before is None:
        if len(found) >= OBJECTS_KEPT:
            return TOO_MANY
        found[key] = new
    elif before.policies is None or new.policies is None:
        found[key] = replace(new, policies=None)
    else:
        found[key] = replace(new, policies=tuple(dict.fromkeys((*before.policies, *new.policies))))
    return ""
