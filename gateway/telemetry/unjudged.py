"""The log line of a review in which failurePolicy Ignore let a policy's failure pass: what was not judged, and by which
policies. ``admission-gateway audit --unjudged-from`` reads it, and judges the object again.

``apiVersion: admission-gateway.dev/unjudged/v1alpha1``, ``kind: UnjudgedAdmission``. Within a version, members may be
added, but none is removed or changes its meaning.

=================================  ================================================================================
member                             value
=================================  ================================================================================
message                            ``let pass unjudged``, for readers of logs
uid, time, replica, traceId        as in the decision document
phase, entry, outcome, allowed     as there; ``allowed`` is false if another policy refused the request
operation, dryRun, subResource     of the request
group, version, resource           of the object; objectKind: its kind
namespace, name                    empty if it has none; before the API server makes a name, only ``generateName`` is
                                   known
generateName, objectUid            of the object's metadata, or "": an object above ``METADATA_BYTES`` is not read
user                               {username, uid, groups, extra, omitted[]}: at most ``GROUPS_KEPT`` groups; of extra
                                   the keys ``authentication.kubernetes.io/…``, which Kubernetes sets for a service
                                   account: others may have credentials; omitted: which of both is not complete
policies[]                         each policy that was ignored: {name: CONFIGURATION/NAME, verdict: failure, reason,
                                   round, source}
=================================  ================================================================================

The object itself is not here: ``audit`` reads it as it is then. The old object of an UPDATE or a DELETE is nowhere, so
``audit`` says that a policy that sees it cannot judge the request again.

No level of the decision log turns it off. With ``--decision-log none`` it goes to standard error.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic, time
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct

from gateway.engine.decision import Decision, Outcome
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Failure
from gateway.review.request import Request, ReviewError, UserInfo
from gateway.telemetry.background_writer import BackgroundWriter
from gateway.telemetry.decision_document import encoded, replica_name
from gateway.telemetry.labels import Drop

_LOG: Final = structlog.get_logger(__name__)

API_VERSION: Final = "admission-gateway.dev/unjudged/v1alpha1"
KIND: Final = "UnjudgedAdmission"
MESSAGE: Final = "let pass unjudged"

METADATA_BYTES: Final = 262_144
"""Objects of which the metadata is read: the time of 256 KiB is half a millisecond, and larger ones have a name."""

GROUPS_KEPT: Final = 50
"""Groups of a user; there are rarely more than a dozen."""


EXTRA_PREFIX: Final = "authentication.kubernetes.io/"
"""Of the keys of ``userInfo.extra`` that are logged: the names of a pod, a node, and of a token, which is no secret."""

EXTRA_CHARACTERS: Final = 256
"""Of a value of them: the name of a pod has 253 at most, and a uid 36."""

EXTRA_KEPT: Final = 10
"""Keys of them; Kubernetes has five, with one value each."""


class _Metadata(Struct, rename="camel"):
    uid: str = ""
    generate_name: str = ""


class _Object(Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_object: Final = msgspec.json.Decoder(_Object)


class UnjudgedLog:
    """Writes the lines. A DecisionObserver.

    Args:
        writer: takes them, before what else waits there.
    """

    def __init__(self, writer: BackgroundWriter) -> None:
        self._writer = writer

    def decided(self, decision: Decision) -> None:
        """Log the policies that were ignored, if any, when the answer has left; in the event loop."""
        ignored = [call for call in decision.calls if call.failed_open]
        if ignored and decision.outcome is not Outcome.CANCELED:
            asyncio.get_running_loop().call_soon(self._write, decision, ignored)

    def _write(self, decision: Decision, ignored: Sequence[InvocationRecord]) -> None:
        try:
            line = encoded(unjudged_document(decision, ignored)) + b"\n"
        except Exception:  # noqa: BLE001 - logged and counted: an observer must not raise
            _LOG.exception("an unjudged admission cannot be logged", uid=decision.request.uid)
            self._writer.drop(Drop.INTERNAL)
            return
        self._writer.put(line, reserved=True)


def unjudged_document(
    decision: Decision, ignored: Sequence[InvocationRecord], *, offset: float | None = None
) -> dict[str, Any]:
    """The document, ready for JSON.

    Args:
        decision: of the review.
        ignored: its calls that failed open.
        offset: seconds from the driver's clock to Unix time; None: those of now.
    """
    request = decision.request
    arrived = datetime.fromtimestamp(decision.started + (time() - monotonic() if offset is None else offset), UTC)
    metadata = _metadata(request)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "message": MESSAGE,
        "uid": request.uid,
        "time": arrived.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "replica": replica_name(),
        "traceId": decision.trace_id or None,
        "phase": decision.phase.value,
        "entry": decision.entry,
        "outcome": decision.outcome.value,
        "allowed": decision.response.allowed,
        "operation": request.operation,
        "dryRun": request.dry_run,
        "group": request.resource.group,
        "version": request.resource.version,
        "resource": request.resource.resource,
        "subResource": request.sub_resource,
        "objectKind": request.kind.kind,
        "namespace": request.namespace,
        "name": request.name,
        "generateName": metadata.generate_name,
        "objectUid": metadata.uid,
        "user": _user(request),
        "policies": [_ignored(call) for call in ignored],
    }


def _metadata(request: Request) -> _Metadata:
    for name in ("object", "oldObject"):
        raw = request.members.get(name)
        if raw is None or memoryview(raw).nbytes > METADATA_BYTES:
            continue
        try:
            return _object.decode(raw).metadata
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
    return _Metadata()


def _user(request: Request) -> dict[str, Any]:
    try:
        user = request.user_info
    except ReviewError:
        user = UserInfo()
    groups, extra = user.groups or [], user.extra or {}
    kept = {name: values for name, values in extra.items() if _is_kept(name, values)}
    kept = dict(list(kept.items())[:EXTRA_KEPT])
    omitted = [*(["groups"] if len(groups) > GROUPS_KEPT else []), *(["extra"] if len(kept) < len(extra) else [])]
    return {
        "username": user.username,
        "uid": user.uid,
        "groups": groups[:GROUPS_KEPT],
        "extra": kept,
        "omitted": omitted,
    }


def _is_kept(name: str, values: Sequence[str]) -> bool:
    is_short = len(values) == 1 and max(len(name), len(values[0])) <= EXTRA_CHARACTERS
    return is_short and name.startswith(EXTRA_PREFIX)


def _ignored(call: InvocationRecord) -> dict[str, Any]:
    reason = call.answer.reason.value if isinstance(call.answer, Failure) else ""
    return {
        "name": call.policy.qualified_name,
        "verdict": "failure",
        "reason": reason,
        "round": call.round,
        "source": call.source.value,
    }
