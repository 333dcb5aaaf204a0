"""Test a policy without a server: call it with a request and settings.

    from admission_worker.testing import review

    def test_a_pod_without_a_team_is_denied():
        request = {"operation": "CREATE", "object": {"metadata": {}}}
        answer = review(worker, "required-labels", request, {"labels": {"team": ""}})
        assert isinstance(answer, Deny)

The policy gets the same document as from the gateway, only its ``inputs``. So a policy that reads what it does not
claim fails its tests, not in a cluster. A policy's exceptions pass through.
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
    """Call a policy. In a running event loop use ``review_async`` for coroutine functions.

    Args:
        worker: the policy's worker.
        policy: its name.
        request: an AdmissionRequest in its JSON shape, or the members that matter; or a whole AdmissionReview.
        settings: as in the operator's configuration; None: ``{}``.

    Returns:
        The answer; ``Allow.change.value`` is the policy's patch. None becomes ``allow()``.

    Raises:
        LookupError: the worker has no such policy.
        InvalidSettingsError: with all errors in the settings.
        InvalidAnswerError: the policy returned an answer that is invalid in its phase.
        Exception: the policy's own.
    """
    held = _policy(worker, policy)
    if held.style is not Style.ASYNC:
        return accepted(_put(held, request, settings), held.phase)
    return asyncio.run(review_async(worker, policy, request, settings))


async def review_async(
    worker: Worker, policy: str, request: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> Answer:
    """As ``review``, for coroutine functions in a running event loop; other functions run directly."""
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
    """Call the policy's function; request and settings pass through JSON, as in a worker."""
    whole = request.get("request", request)
    document = encoded(document_of(whole, policy.inputs))
    converted, _ = policy.settings.read(encoded(settings or {}))
    return policy.function(*policy.arguments(Request(document, uid=str(whole.get("uid", ""))), converted))
