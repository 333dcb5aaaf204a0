"""One call of a webhook, and its retries within the same deadline, with the same bytes:

* After status 429 or 5xx with ``Retry-After: N``, after N seconds, up to ``webhook_attempts`` attempts. If N is more
  than the remaining time, the call fails at once, with the webhook's status.
* After status 307 or 308 to the same host and port, at that URL, up to ten times.
* If an idle connection turns out to be closed before any response, once, on another connection.

A call with side effects is sent once. (A redirect means that it was not executed, so it is followed.)
"""

import asyncio
import re
from time import monotonic
from typing import Final, Protocol
from uuid import uuid4

from gateway.depth import most_values
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.transports.limits import TransportLimits
from gateway.transports.webhook.client import Client, Post, Received
from gateway.transports.webhook.endpoint import WebhookEndpoint
from gateway.transports.webhook.failures import Failures, WebhookCallError
from gateway.transports.webhook.media import MediaTypeError, media_type
from gateway.transports.webhook.statuses import SUCCESSES, status_message
from gateway.transports.webhook.webhook_tls import WebhookTls
from gateway.transports.webhook_answers import review_answer
from gateway.transports.worker_channel import Answered

REDIRECTS: Final = 10
"""Go's http.Client: "stopped after 10 redirects"."""

LARGE_ANSWER: Final = 262_144
"""Bytes from which an answer is parsed in a thread: below, parsing takes less than five milliseconds."""

_GROUP: Final = "admission.k8s.io/"
_SECONDS: Final = re.compile(r"[+-]?[0-9]{1,9}")
_FOLLOWED: Final = frozenset({307, 308})
_NOT_FOLLOWED: Final = frozenset({301, 302, 303})
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500


def review_body(document: bytes, uid: str, version: str) -> bytes:
    """The AdmissionReview of a document, as kube-apiserver writes it: the uid first, a line end last."""
    members = document[1:] if document.startswith(b"{}") else b"," + document[1:]
    return b'{"kind":"AdmissionReview","apiVersion":"%b%b","request":{"uid":"%b"%b}\n' % (
        _GROUP.encode(),
        version.encode(),
        uid.encode(),
        members,
    )


class Webhook(Protocol):
    """The worker, as seen by one of its calls."""

    async def answer(self, call: "WebhookCall") -> Answer:
        """The webhook's answer to a call, or the failure."""

    def internal(self, policy_call: PolicyCall, error: Exception) -> Failure:
        """The failure for an error in the gateway."""

    def finished(self, call: "WebhookCall") -> None:
        """A call has ended."""


class WebhookCall:
    """One open call, with its retries.

    Args:
        webhook: the worker.
        policy_call: the call.
        answered: called once with the answer, unless the call is cancelled.
        refusal: the failure if a limit is reached; None: the call is made.
        version: of the AdmissionReview, without its group.
        endpoint: the webhook's URL.
        client: has the connections.
        failures: converts errors to failures.
        limits: see TransportLimits.
    """

    def __init__(  # noqa: PLR0913 - all but the first four by name
        self,
        webhook: Webhook,
        policy_call: PolicyCall,
        answered: Answered,
        refusal: Failure | None,
        *,
        version: str,
        endpoint: WebhookEndpoint,
        client: Client,
        failures: Failures,
        limits: TransportLimits,
    ) -> None:
        self._webhook = webhook
        self.call = policy_call
        self._answered = answered
        self._refusal = refusal
        self._is_awaited = True
        self._name = policy_call.policy.name
        self._endpoint = endpoint
        self._client = client
        self._failures = failures
        self._limits = limits
        self._uid = str(uuid4())
        self._version = version
        self.url = endpoint.with_timeout(min(policy_call.deadline - monotonic(), policy_call.policy.timeout))
        self._body = b""
        self._has_reconnected = False
        self.retries = 0
        """The attempts after the first one."""
        self.task = asyncio.get_running_loop().create_task(self._run())
        # A task that is cancelled before it starts does not run its own end.
        self.task.add_done_callback(lambda _: webhook.finished(self))

    def cancel(self) -> None:
        """Stop the call; its answer is not needed any more. A call with side effects continues to its end."""
        self._is_awaited = False
        if self.call.cancellable:
            self.task.cancel()

    def abort(self) -> None:
        """Stop the call, even one with side effects."""
        self._is_awaited = False
        self.task.cancel()

    async def _run(self) -> None:
        try:
            answer = self._refusal or await self._webhook.answer(self)
        except Exception as error:  # noqa: BLE001 - logged; a review waits for an answer
            answer = self._webhook.internal(self.call, error)
        self._webhook.finished(self)
        if self._is_awaited:
            self._answered(self.call, answer)

    async def answer(self, tls: WebhookTls) -> Answer:
        """The webhook's answer. The caller sets the deadline.

        Raises:
            WebhookCallError: the call failed.
        """
        self._body = review_body(self.call.document.content, self._uid, self._version)
        redirects = 0
        url = self.url
        while True:
            received = await self._post(url, tls)
            if received.status in SUCCESSES:
                return await self._read(received)
            location = received.location
            if received.status in _FOLLOWED and location:
                redirected = self._endpoint.redirect_url(url, location)
                if redirected is None:
                    raise WebhookCallError(self._failures.redirected(self._name, url, received.status, location))
                redirects += 1
                if redirects > REDIRECTS:
                    raise WebhookCallError(self._failures.too_many_redirects(self._name, url, REDIRECTS))
                url = redirected
                continue
            if received.status in _NOT_FOLLOWED and location:
                raise WebhookCallError(self._failures.redirected(self._name, url, received.status, location))
            seconds = self._retry_after(received)
            if seconds is None:
                raise WebhookCallError(self._status(received))
            await asyncio.sleep(seconds)
            self.retries += 1
            url = self.url

    async def _post(self, url: str, tls: WebhookTls) -> Received:
        call = self.call
        post = Post(name=self._name, url=url, body=self._body, traceparent=call.traceparent, tracestate=call.tracestate)
        try:
            return await self._client.post(post, tls)
        except WebhookCallError as error:
            if not error.stale_connection or not self.call.cancellable or self._has_reconnected:
                raise
        self._has_reconnected = True
        self.retries += 1
        return await self._post(url, tls)

    def _retry_after(self, received: Received) -> float | None:
        """The seconds until the next attempt; None: there is none."""
        is_retriable = received.status == _TOO_MANY_REQUESTS or received.status >= _SERVER_ERROR
        if not is_retriable or not self.call.cancellable or self.retries + 1 >= self._limits.webhook_attempts:
            return None
        if _SECONDS.fullmatch(received.retry_after) is None:
            return None
        seconds = max(int(received.retry_after), 0)
        return seconds if monotonic() + seconds < self.call.deadline else None

    def _status(self, received: Received) -> Failure:
        message = status_message(received.status, received.content_type, received.body)
        return self._failures.status(self._name, received.status, message)

    async def _read(self, received: Received) -> Answer:
        try:
            if received.content_type:
                media_type(received.content_type)
        except MediaTypeError as error:
            return self._failures.bad_media_type(self._name, str(error))
        if not received.body:
            return self._failures.empty(self._name, received.status, received.content_type)
        if len(received.body) < LARGE_ANSWER:
            return self._review_answer(received.body)
        if most_values(received.body) > self._limits.webhook_answer_values:
            return self._failures.too_many_values(self._name, self._limits.webhook_answer_values)
        return await asyncio.to_thread(self._review_answer, received.body)

    def _review_answer(self, body: bytes) -> Answer:
        return review_answer(
            self._name,
            body,
            uid=self._uid,
            api_version=_GROUP + self._version,
            phase=self.call.policy.phase,
        )
