"""Test a policy without a server: a request and settings in, its answer out.

    from admission_worker.testing import review

    def test_a_pod_without_a_team_is_denied():
        request = {"operation": "CREATE", "object": {"metadata": {}}}
        answer = review(worker, "required-labels", request, {"labels": {"team": ""}})
        assert isinstance(answer, Deny)

The policy is sent what the gateway would send it: no more than it claims as its ``inputs``. So a policy that reads
what it does not claim fails its tests, and not its first day in a cluster. What a policy raises comes through, with
its traceback.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from admission_worker.answers import Answer
from admission_worker.json_text import encoded
from admission_worker.outcomes import accepted
from admission_worker.policies import Policy, Style
from admission_worker.projection import document_of
from admission_worker.request import Request
from admission_worker.worker import Worker


def review(
    worker: Worker, policy: str, request: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> Answer:
    """What a policy answers to a request. For coroutine functions where a loop is running: ``review_async``.

    Args:
        worker: which holds the policy.
        policy: its name.
        request: an AdmissionRequest in its JSON shape, or the parts of it that matter; or a whole AdmissionReview.
        settings: as the operator would write them; None: ``{}``.

    Returns:
        The answer; ``Allow.change.value`` is a patch as it was given. None of a policy is ``allow()``.

    Raises:
        LookupError: the worker holds no such policy.
        InvalidSettingsError: all that is wrong with the settings.
        InvalidAnswerError: the policy returned what is no answer in its phase.
        Exception: whatever the policy raises.
    """
    held = _policy(worker, policy)
    if held.style is not Style.ASYNC:
        return accepted(_put(held, request, settings), held.phase)
    return asyncio.run(review_async(worker, policy, request, settings))


async def review_async(
    worker: Worker, policy: str, request: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> Answer:
    """As ``review``, for coroutine functions inside a running loop. Other functions run as they are."""
    held = _policy(worker, policy)
    answer = _put(held, request, settings)
    return accepted(await answer if held.style is Style.ASYNC else answer, held.phase)


def _policy(worker: Worker, name: str) -> Policy:
    if name not in worker.policies:
        held = ", ".join(worker.policies) or "none"
        message = f"worker {worker.name} holds no policy {name!r}; it holds: {held}"
        raise LookupError(message)
    return worker.policies[name]


def _put(policy: Policy, request: Mapping[str, Any], settings: Mapping[str, Any] | None) -> Any:
    """Call the policy's function; both request and settings take the way through JSON, as they will."""
    whole = request.get("request", request)
    document = encoded(document_of(whole, policy.inputs))
    converted, _ = policy.settings.read(encoded(settings or {}))
    return policy.function(*policy.arguments(Request(document, uid=str(whole.get("uid", ""))), converted))
