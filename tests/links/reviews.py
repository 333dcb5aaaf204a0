"""Reviews of which each has one exact outcome: those of one link, of each phase and failurePolicy, to be allowed and
denied.
"""

import asyncio
import base64
import json
from dataclasses import dataclass
from itertools import count, product
from time import monotonic

from gateway.reasons import Reason
from tests.integration.client import AsyncClient, post
from tests.traffic import recording

PHASES = ("mutating", "validating")
FAILURE_POLICIES = ("Fail", "Ignore")
VERDICTS = ("allow", "deny")
JUDGED = "judged"
"""The outcome of a review that got its worker's verdict."""

TIMEOUT_SECONDS = 10
BUDGET_SECONDS = TIMEOUT_SECONDS - 1
"""The true remaining time of ``?timeout=10s`` lies in (9, 10]: an answer after 9 s may be too late."""

POLICY_SECONDS = 2
"""timeoutSeconds of all policies: far less than a review's budget, and far more than a call without a fault takes."""

EARLY_SECONDS = 0.25
"""By how much a bridge may end a call too early: it knows Redis' clock to half of a round trip, which may be slow."""

LATE_SECONDS = 3
"""By how much later than its deadline an answer may arrive, on a machine with others. One that knew no deadline but the
review's budget would come seven seconds later.
"""

LOSS_SECONDS = 3
"""A client that has no answer by then counts it as lost: a review without a fault takes some milliseconds."""

_PATHS = {"mutating": "/mutate", "validating": "/validate"}
_REQUEST = json.loads(recording("pod-create.1v").body)
_NUMBERS = count(1)


@dataclass(frozen=True, kw_only=True)
class ReviewCase:
    """A review that concerns one policy, and the worker's verdict of it."""

    policy: str
    phase: str
    failure_policy: str
    verdict: str

    def content(self, *, document=None, timeout=TIMEOUT_SECONDS):
        """The request as bytes, and its uid. Requests have the same document if they share the name of it."""
        uid = f"review-{next(_NUMBERS)}"
        labels = {"policy": self.policy, "verdict": self.verdict, "document": document or uid}
        pod = _REQUEST["request"]["object"]
        pod |= {"metadata": pod["metadata"] | {"labels": labels}}
        body = _REQUEST | {"request": _REQUEST["request"] | {"uid": uid, "object": pod}}
        return post(json.dumps(body).encode(), f"{_PATHS[self.phase]}?timeout={timeout}s"), uid

    def outcome(self, answered, uid):
        """JUDGED, or the reason of the failure. The rest of the answer must agree with that."""
        assert answered.status == 200, answered
        response = answered.response
        assert response["uid"] == uid
        name = f"{self.policy}.test.example.com"
        annotations = response.get("auditAnnotations", {})
        if f"{name}_judged" in annotations:
            changed = {f"{name}_changed": "add /metadata/labels/judged"} if self._wanted_changes() else {}
            assert annotations == {f"{name}_judged": self.verdict} | changed, answered
            assert response["allowed"] is (self.verdict == "allow"), answered
            message = response.get("status", {}).get("message")
            assert message == (f"{name}: forbidden" if self.verdict == "deny" else None), answered
            assert "warnings" not in response
            assert self._changes(response) == self._wanted_changes(), answered
            return JUDGED
        assert "patch" not in response, answered
        if self.failure_policy == "Ignore":
            return self._failed_open(answered, annotations, name)
        assert response["allowed"] is False, answered
        reason = response["status"]["message"].removeprefix(f"{name}: ").split(": ")[0]
        expected = (429, "TooManyRequests") if reason in {"OVERLOADED", "BUDGET_EXHAUSTED"} else (500, "InternalError")
        assert (response["status"]["code"], response["status"]["reason"]) == expected, answered
        return reason

    def _wanted_changes(self):
        """A mutating policy that allows writes a label; see tests/links/worker.py."""
        if (self.phase, self.verdict) != ("mutating", "allow"):
            return []
        return [{"op": "add", "path": "/metadata/labels/judged", "value": self.verdict}]

    @staticmethod
    def _changes(response):
        return json.loads(base64.b64decode(response["patch"])) if "patch" in response else []

    def _failed_open(self, answered, annotations, name):
        """It is loud: the annotation has the reason, and so has a warning."""
        reason = annotations[f"{name}_failed-open"]
        assert answered.response["allowed"] is True, answered
        # The warning comes once a minute.
        for warning in answered.response.get("warnings", ()):
            assert f"{name}: could not judge this request: {reason}" in warning, warning
        return reason


def policy_name(start, phase, failure_policy):
    """That of a link's policy."""
    return f"{start}-{phase}-{failure_policy}".lower()


def cases(start, phases=PHASES):
    """The four of a link and phase: ``start`` is that of its policies' names."""
    return [
        ReviewCase(
            policy=policy_name(start, phase, failure_policy),
            phase=phase,
            failure_policy=failure_policy,
            verdict=verdict,
        )
        for phase, failure_policy, verdict in product(phases, FAILURE_POLICIES, VERDICTS)
    ]


LOST = "no answer"
"""The outcome of a review whose connection ended or stayed silent; kube-apiserver's failurePolicy applies to it."""


async def decided(client, case, *, wait=BUDGET_SECONDS, **options):
    """The outcome of one review; TimeoutError if its answer may come too late. ``options``: see ``content``."""
    content, uid = case.content(**options)
    return case.outcome(await client.send(content, wait_time=wait), uid)


async def decided_in_time(client, case):
    """The same; its policy's timeoutSeconds must be over for WORKER_TIMEOUT, and no answer may come much later."""
    began = monotonic()
    found = await decided(client, case)
    seconds = monotonic() - began
    seen = f"{case}: {found} after {seconds:.2f} s"
    assert seconds < POLICY_SECONDS + LATE_SECONDS, seen
    assert found != Reason.WORKER_TIMEOUT or seconds > POLICY_SECONDS - EARLY_SECONDS, seen
    return found


async def connected(port, context):
    """A new connection."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        return await AsyncClient.connect(port, context)


async def delivered(port, context, case, closing, *, client=None, wait=LOSS_SECONDS):
    """The outcome of a review over a link that may lose it: the gateway's or LOST, and never another one's verdict.

    ``client`` is a connection from before; else there is a new one. What has no answer after ``wait`` seconds is LOST.
    The task that closes it, which may last as long as the fault, is added to ``closing``.
    """
    try:
        async with asyncio.timeout(wait):
            client = client or await AsyncClient.connect(port, context)
            return await decided(client, case)
    except (OSError, asyncio.IncompleteReadError, TimeoutError):
        return LOST
    finally:
        if client is not None:
            closing.append(asyncio.create_task(client.close()))


async def outcomes(port, context, start, phases, *, decide=decided):
    """The outcomes of a link's reviews, each on a connection of its own, by failurePolicy."""
    every = cases(start, phases)
    clients = [await connected(port, context) for _ in every]
    try:
        found = await asyncio.gather(*map(decide, clients, every))
    finally:
        for client in clients:
            await client.close()
    return by_failure_policy(every, found)


def by_failure_policy(every, found):
    """The set of outcomes for each failurePolicy."""
    return {
        wanted: {outcome for case, outcome in zip(every, found, strict=True) if case.failure_policy == wanted}
        for wanted in FAILURE_POLICIES
    }
