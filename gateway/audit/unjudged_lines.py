"""Reads the lines of unjudged admissions (``gateway.telemetry.unjudged``) from a gateway's log, whatever else is in it.

A line counts if the request was admitted by the validating phase, and left an object: an object may have several lines,
of which the last says who changed it last. Before an object is judged again, it is read as it is now.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from gateway.audit.targets import OPERATIONS
from gateway.telemetry.unjudged import KIND

OBJECTS_KEPT: Final = 100_000
"""Objects that are judged again from one log: at 1 KB each 100 MB. A longer outage is for an audit of everything."""

DRY_RUN: Final = "a dry run, which changed nothing"
REFUSED: Final = "refused by another policy"
MUTATING: Final = "in the mutating phase: an audit judges validating policies"
NO_OBJECT: Final = "a DELETE, a CONNECT or a subresource: there is no object to judge"
UNREADABLE: Final = "a line that cannot be read"
TOO_MANY: Final = f"beyond {OBJECTS_KEPT:,} objects"

_MARK: Final = f'"{KIND}"'.encode()


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


_decode: Final = msgspec.json.Decoder(_Line).decode


class UnjudgedObject(Struct, frozen=True, kw_only=True):
    """An object that was admitted without a verdict of ``policies`` (CONFIGURATION/NAME)."""

    group: str
    version: str
    resource: str
    namespace: str
    name: str
    uid: str
    operation: str
    user: Mapping[str, Any]
    policies: tuple[str, ...]


def unjudged_objects(lines: Iterable[bytes]) -> tuple[list[UnjudgedObject], dict[str, int]]:
    """The objects in a log, in the order of their first lines; and how many lines do not count, by reason."""
    found: dict[tuple[str, ...], UnjudgedObject] = {}
    skipped: dict[str, int] = {}
    for text in lines:
        if _MARK not in text:
            continue
        try:
            # A log agent may write a prefix.
            line = _decode(text[text.index(b"{") :].strip())
        except (msgspec.DecodeError, ValueError, RecursionError):
            why = UNREADABLE
        else:
            why = _why_not(line) or _add(line, found)
        if why:
            skipped[why] = skipped.get(why, 0) + 1
    return list(found.values()), skipped


def _why_not(line: _Line) -> str:
    if line.dry_run:
        return DRY_RUN
    if not line.allowed:
        return REFUSED
    if line.phase != "validating":
        return MUTATING
    return "" if line.operation in OPERATIONS and not line.sub_resource and line.name else NO_OBJECT


def _add(line: _Line, found: dict[tuple[str, ...], UnjudgedObject]) -> str:
    names = tuple(dict.fromkeys(each.name for each in line.policies))
    user = {"username": line.user.username, "groups": line.user.groups}
    if line.user.uid:
        user["uid"] = line.user.uid
    new = UnjudgedObject(
        group=line.group,
        version=line.version,
        resource=line.resource,
        namespace=line.namespace,
        name=line.name,
        uid=line.object_uid,
        operation=line.operation,
        user=user,
        policies=names,
    )
    key = (line.group, line.resource, line.namespace, line.name, line.object_uid)
    before = found.get(key)
    if before is None and len(found) >= OBJECTS_KEPT:
        return TOO_MANY
    policies = names if before is None else tuple(dict.fromkeys((*before.policies, *names)))
    found[key] = replace(new, policies=policies)
    return ""
