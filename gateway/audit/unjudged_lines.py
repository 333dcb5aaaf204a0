"""Reads what was admitted unjudged from logs, whatever else is in them.

========================================  ==============================================================================
line                                      names
========================================  ==============================================================================
a gateway's unjudged admission            the policies that did not judge the object (``gateway.telemetry.unjudged``)
an event of kube-apiserver's audit log    an object that passed because a webhook could not be called: none of its
with the annotation ``failed-open.…``     policies has judged it, so all that have a rule about it do
========================================  ==============================================================================

A line counts if the request was admitted by the validating phase. An object may have several lines, and a policy
several of them: the last says who changed the object last. Before an object is judged again, it is read as it is now.

What a line has not, a policy that sees it cannot judge again (``Unjudged.lost``): the old object of an UPDATE, and of
the user what the line omits. A DELETE, a CONNECT and a request for a subresource leave no object that could be judged:
the policies that did not judge them are reported with the line (``PastAdmission``).
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
NO_OBJECT: Final = "a DELETE, a CONNECT or a subresource: there is no object to judge again"
NO_NAME: Final = "of an object whose name was generated: an audit log has the name only at the level RequestResponse"
ALL: Final = ""
"""Stands for the name of each policy: none has judged the object."""

OLD_OBJECT: Final = "oldObject"
GROUPS: Final = "userInfo.groups"
EXTRA: Final = "userInfo.extra"
UNREADABLE: Final = "a line that cannot be read"
TOO_MANY: Final = f"beyond {OBJECTS_KEPT:,} objects"
NO_POLICIES: Final = "a DELETE, a CONNECT or a subresource in an audit log, which does not name the policies"
NOT_JUDGED_AGAIN: Final = frozenset({NO_POLICIES, NO_NAME, UNREADABLE, TOO_MANY})
"""Lines of which it is not known whether a policy would have refused the request."""

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
    extra: dict[str, list[str]] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)


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
    object_kind: str = ""
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


class Unjudged(Struct, frozen=True, kw_only=True):
    """How a policy did not judge an object: in which operation, of which user, and what the log has not of it."""

    operation: str
    user: Mapping[str, Any]
    lost: tuple[str, ...] = ()


class UnjudgedObject(Struct, frozen=True, kw_only=True):
    """An object that was admitted without a verdict of ``policies`` (by CONFIGURATION/NAME, or ``ALL``)."""

    group: str
    version: str
    resource: str
    namespace: str
    name: str
    uid: str
    policies: Mapping[str, Unjudged]

    def by(self, policy: str) -> Unjudged | None:
        """How this policy did not judge it; None: it did, or was not about it."""
        own, every = self.policies.get(policy), self.policies.get(ALL)
        return own if every is None else every if own is None else _later(own, every)


class PastAdmission(Struct, frozen=True, kw_only=True):
    """A request that left no object, and that these policies have not judged."""

    group: str
    version: str
    resource: str
    kind: str
    sub_resource: str
    namespace: str
    name: str
    uid: str
    operation: str
    policies: tuple[str, ...]


class UnjudgedLines(Struct, kw_only=True):
    """What a log has: objects, in the order of their first lines; admissions that left none, at most
    ``OBJECTS_KEPT``; and how many lines do not count, by reason.
    """

    objects: list[UnjudgedObject] = field(default_factory=list)
    past: list[PastAdmission] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)


def unjudged_lines(lines: Iterable[bytes]) -> UnjudgedLines:
    """What a log has, line by line."""
    found: _Found = {}
    read = UnjudgedLines()
    for text in lines:
        reader = _gateways if _MARK in text else _api_servers if _EVENT_MARK in text else None
        if reader is None:
            continue
        try:
            # A log agent may write a prefix.
            new = reader(text[text.index(b"{") :].strip())
        except (msgspec.DecodeError, ValueError, RecursionError):
            new = UNREADABLE
        if isinstance(new, UnjudgedObject):
            new = _add(new, found)
        elif isinstance(new, PastAdmission):
            new = _keep(new, read.past)
        if new:
            read.skipped[new] = read.skipped.get(new, 0) + 1
    read.objects = list(found.values())
    return read


def _gateways(text: bytes) -> UnjudgedObject | PastAdmission | str:
    """The object of a gateway's line, or the request; or why it does not count."""
    line = _decode(text)
    if line.dry_run:
        return DRY_RUN
    if not line.allowed:
        return REFUSED
    if line.phase != "validating":
        return MUTATING
    names = tuple(dict.fromkeys(each.name for each in line.policies))
    if line.operation not in OPERATIONS or line.sub_resource or not line.name:
        return PastAdmission(
            group=line.group,
            version=line.version,
            resource=line.resource,
            kind=line.object_kind,
            sub_resource=line.sub_resource,
            namespace=line.namespace,
            name=line.name,
            uid=line.object_uid,
            operation=line.operation,
            policies=names,
        )
    how = Unjudged(operation=line.operation, user=_user(line.user), lost=_lost(line.operation, line.user))
    return UnjudgedObject(
        group=line.group,
        version=line.version,
        resource=line.resource,
        namespace=line.namespace,
        name=line.name,
        uid=line.object_uid,
        policies=dict.fromkeys(names, how),
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
        return NO_POLICIES
    name = about.name or stored.name
    if not name:
        return NO_NAME
    operation = _VERBS[event.verb]
    how = Unjudged(operation=operation, user=_user(event.user), lost=_lost(operation, event.user))
    return UnjudgedObject(
        group=about.api_group,
        version=about.api_version,
        resource=about.resource,
        namespace=about.namespace,
        name=name,
        uid=about.uid or stored.uid,
        policies={ALL: how},
    )


def _user(user: _User) -> dict[str, Any]:
    uid = {"uid": user.uid} if user.uid else {}
    extra = {"extra": user.extra} if user.extra else {}
    return {"username": user.username, **uid, "groups": user.groups, **extra}


def _lost(operation: str, user: _User) -> tuple[str, ...]:
    omitted = {"groups": GROUPS, "extra": EXTRA}
    return (
        *((OLD_OBJECT,) if operation == UPDATE else ()),
        *(name for key, name in omitted.items() if key in user.omitted),
    )


def _later(before: Unjudged, after: Unjudged) -> Unjudged:
    """Both, as one: as of the last, but an UPDATE if one of them was. What one of them has not is not there."""
    lost = tuple(dict.fromkeys((*before.lost, *after.lost)))
    return replace(after, operation=UPDATE if OLD_OBJECT in lost else after.operation, lost=lost)


def _add(new: UnjudgedObject, found: _Found) -> str:
    """Add an object; returns why not."""
    key = (new.group, new.resource, new.namespace, new.name, new.uid)
    before = found.get(key)
    if before is None:
        if len(found) >= OBJECTS_KEPT:
            return TOO_MANY
        found[key] = new
        return ""
    policies = dict(before.policies)
    for name, how in new.policies.items():
        policies[name] = _later(policies[name], how) if name in policies else how
    found[key] = replace(new, policies=policies)
    return ""


def _keep(new: PastAdmission, past: list[PastAdmission]) -> str:
    """Keep what left no object; returns why not. It counts as skipped in any case."""
    if len(past) >= OBJECTS_KEPT:
        return TOO_MANY
    past.append(new)
    return NO_OBJECT
