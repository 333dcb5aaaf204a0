"""The status of the gateway's objects: what each replica makes of an object, and what that means together.

``status.replicas`` has an entry for each replica, which the replica writes by server-side apply under a field manager
of its own: no replica changes another's. ``conditions`` and ``observedGeneration`` follow from the entries alone, so
it does not matter which replica writes them, under one field manager for all, when they differ.

==========================  =========================================================================================
a replica that              loses its entry
==========================  =========================================================================================
stops                       at once: it removes it
is gone without that        ``GONE_SECONDS`` after the object's next change, which it does not report: others do
==========================  =========================================================================================

So a status is written when something has changed, and never else. When it cannot be written, a note on /readyz says so,
and nothing else changes.

During an update replicas of two versions write. A condition's status and reason mean the same in both; messages may
be worded differently, so one replica, the first of those that have looked at the object, words them: else two versions
would overwrite each other's for as long as the update takes. Conditions of other types are kept, and so is what another
version reports in its entry.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from msgspec import Struct

from gateway.cluster.client import KubernetesClient
from gateway.cluster.errors import ApiError
from gateway.cluster.policy_objects import PolicyObject
from gateway.policies.objects import GROUP, VERSION

_LOG: Final = structlog.get_logger(__name__)

GONE_SECONDS: Final = 300.0
"""A replica reports a change within seconds, or within a minute of losing the API server: longer, and it is gone."""

MAX_MESSAGE: Final = 1024
"""Characters of a message: as the definition has it."""

_LOOK_SECONDS: Final = 60.0
"""Between looks at the entries of others, if nothing changes."""

_GATHER_SECONDS: Final = 0.3
"""How long changes are gathered, and up to twice that: replicas do not write the same conditions at once."""

_WRITE_SECONDS: Final = 0.1
"""Between two writes: a replica makes at most ten in a second, of the hundreds that an API server takes."""

_REMOVE_SECONDS: Final = 2.0
"""How long a replica that stops removes its entries."""

_CONDITIONS: Final = "admission-gateway"
"""The field manager of conditions; ``/REPLICA`` is appended for an entry."""

ENFORCED: Final = "Enforced"
INVALID: Final = "Invalid"
UNAVAILABLE: Final = "Unavailable"
PENDING: Final = "Pending"
"""Reasons: used as it is; has errors; a worker cannot be called as it says; not reported by all replicas yet."""


class Finding(Struct, frozen=True, kw_only=True):
    """What this replica makes of an object as it is now: a reason, and a message unless it is ``ENFORCED``."""

    reason: str
    message: str = ""


Findings = Mapping[str, Finding]
"""By the names of the objects' texts. An object that is missing has not been loaded yet."""


def entry(replica: str, generation: int, finding: Finding) -> dict[str, Any]:
    """The replica's entry in ``status.replicas``."""
    made: dict[str, Any] = {"name": replica, "observedGeneration": generation, "reason": finding.reason}
    if finding.reason == ENFORCED:
        return made | {"enforcedGeneration": generation}
    return made | {"message": finding.message[:MAX_MESSAGE]}


def summary(generation: int, status: Mapping[str, Any], now: str, *, words: bool = True) -> dict[str, Any] | None:
    """``observedGeneration`` and ``conditions`` as they follow from the entries; None if the status has them.

    Args:
        generation: of the object.
        status: as it is stored, with one entry at least.
        now: a time, as Kubernetes writes it.
        words: other messages are a reason to write.
    """
    entries = status["replicas"]
    behind = [each["name"] for each in entries if each["observedGeneration"] < generation]
    failing = [each for each in entries if each["name"] not in behind and each["reason"] != ENFORCED]
    invalid = next((each for each in failing if each["reason"] == INVALID), None)
    waiting = f"not reported by {len(behind)} of {len(entries)} replicas: {', '.join(behind[:3])}" if behind else ""
    if invalid is not None:
        accepted = ("False", INVALID, invalid.get("message", ""))
    else:
        accepted = ("Unknown", PENDING, waiting) if behind else ("True", "Accepted", "the object has no error")
    if failing:
        first = failing[0]
        message = (
            f"{len(failing)} of {len(entries)} replicas do not use it; {first['name']}: {first.get('message', '')}"
        )
        enforced = ("False", first["reason"], message)
    else:
        enforced = ("False", PENDING, waiting) if behind else ("True", ENFORCED, "all replicas use it")
    before = {each["type"]: each for each in status.get("conditions") or ()}
    conditions = [
        _condition(kind, found, generation, before.get(kind), now)
        for kind, found in (("Accepted", accepted), ("Enforced", enforced))
    ]
    observed = min(each["observedGeneration"] for each in entries)
    written = all(_agree(before.get(each["type"]), each, words=words) for each in conditions)
    if written and status.get("observedGeneration") == observed:
        return None
    own = {each["type"] for each in conditions}
    others = [each for kind, each in before.items() if kind not in own]
    return {"observedGeneration": observed, "conditions": conditions + others}


def _agree(before: Mapping[str, Any] | None, condition: Mapping[str, Any], *, words: bool) -> bool:
    if before is None or words:
        return before == condition
    return {**before, "message": ""} == {**condition, "message": ""}


def _condition(
    kind: str, found: tuple[str, str, str], generation: int, before: Mapping[str, Any] | None, now: str
) -> dict[str, Any]:
    status, reason, message = found
    same = before is not None and before["status"] == status
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if same and before is not None else now,
    }


class StatusWriter:
    """Writes the status of all objects, as one replica.

    Args:
        client: connected.
        replica: its name, unlike every other replica's.
        objects: those that are known.
        findings: what this replica makes of them.
    """

    def __init__(
        self,
        client: KubernetesClient,
        *,
        replica: str,
        objects: Callable[[], Iterable[PolicyObject]],
        findings: Callable[[], Findings],
    ) -> None:
        self.problem: str | None = None
        """Why the last write failed; None: it did not."""
        self._client, self._replica = client, replica
        self._objects, self._findings = objects, findings
        self._changed = asyncio.Event()
        self._behind: dict[tuple[str, str, int], float] = {}

    def changed(self) -> None:
        """An object, or what this replica makes of one, may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Write until cancelled; then remove this replica's entries."""
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await self._changed.wait()
                await asyncio.sleep(_GATHER_SECONDS * random.uniform(1, 2))  # noqa: S311 - so that replicas differ
                self._changed.clear()
                try:
                    await self._write_all()
                    self.problem = None
                except ApiError as error:
                    if self.problem is None:
                        _LOG.warning("the status of objects in the cluster cannot be written", error=str(error))
                    self.problem = str(error)
        finally:
            with suppress(ApiError, TimeoutError):
                async with asyncio.timeout(_REMOVE_SECONDS):
                    for obj in self._objects():
                        if self._own(obj) is not None:
                            await self._apply(obj, {}, self._manager(self._replica))

    async def _write_all(self) -> None:
        findings = self._findings()
        objects = list(self._objects())
        for obj in objects:
            finding = findings.get(obj.text.name)
            made = None if finding is None else entry(self._replica, obj.generation, finding)
            if made is not None and made != self._own(obj):
                await self._apply(obj, {"replicas": [made]}, self._manager(self._replica))
            elif self._own(obj) is not None:
                await self._write_summary(obj)
        await self._remove_gone(objects)

    async def _write_summary(self, obj: PolicyObject) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        looked = [each["name"] for each in obj.status["replicas"] if each["observedGeneration"] >= obj.generation]
        found = summary(obj.generation, obj.status, now, words=self._replica == min(looked, default=self._replica))
        if found is not None:
            await self._apply(obj, found, _CONDITIONS)

    async def _remove_gone(self, objects: Iterable[PolicyObject]) -> None:
        now = asyncio.get_running_loop().time()
        behind: dict[tuple[str, str, int], float] = {}
        for obj in objects:
            own = self._own(obj)
            if own is None or own["observedGeneration"] < obj.generation:
                continue
            for each in obj.status["replicas"]:
                if each["observedGeneration"] < obj.generation:
                    key = (obj.text.name, each["name"], obj.generation)
                    behind[key] = self._behind.get(key, now)
                    if now - behind[key] > GONE_SECONDS:
                        await self._apply(obj, {}, self._manager(each["name"]))
        self._behind = behind

    def _own(self, obj: PolicyObject) -> dict[str, Any] | None:
        entries = (obj.status or {}).get("replicas") or ()
        return next((each for each in entries if each["name"] == self._replica), None)

    @staticmethod
    def _manager(replica: str) -> str:
        return f"{_CONDITIONS}/{replica}"

    async def _apply(self, obj: PolicyObject, status: Mapping[str, Any], manager: str) -> None:
        body: dict[str, Any] = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": obj.kind,
            "metadata": {"name": obj.name},
        }
        try:
            await self._client.apply(
                f"{obj.path}/status", body | ({"status": status} if status else {}), manager=manager
            )
        except ApiError as error:
            # The object has been deleted meanwhile.
            if error.reason != "NotFound":
                raise
        await asyncio.sleep(_WRITE_SECONDS)
