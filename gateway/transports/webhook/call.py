"""One call put to a webhook: the call, and what may follow it within the same deadline, with the same bytes.

* The status is 429 or 5xx with ``Retry-After: N``: again after N seconds, ``webhook_attempts`` calls at most. Where N
  is more than the time left, the call fails at once, with what the webhook said.
* The status is 307 or 308, to the same host and port: again there, ten times at most.
* A connection that had been idle turns out to be closed, and nothing came back: again once, on another one.

A call with side effects is sent once. (A redirect says that it was not carried out, so it is followed all the same.)
"""

import asyncio
import re
from time import monotonic
from typing import Final, Protocol
from uuid import uuid4

import structlog

from gateway.depth import most_values
from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.transports.limits import TransportLimits
from gateway.transports.reviews import review_answer
from gateway.transports.webhook.client import Client, Post, Received
from gateway.transports.webhook.endpoint import WebhookEndpoint
from gateway.transports.webhook.failures import AskError, Failures
from gateway.transports.webhook.media import MediaTypeError, media_type
from gateway.transports.webhook.statuses import SUCCESSES, status_words
from gateway.transports.webhook.webhook_tls import WebhookTls
from gateway.transports.worker_channel import Answered

_LOG: Final = structlog.get_logger(__name__)

REDIRECTS: Final = 10
"""Go's http.Client: "stopped after 10 redirects"."""

LARGE_ANSWER: Final = 262_144
"""Bytes of an answer that is read in a thread: below it reading takes less than some five milliseconds."""

_GROUP: Final = "admission.k8s.io/"
_SECONDS: Final = re.compile(r"[+-]?[0-9]{1,9}")
_FOLLOWED: Final = frozenset({307, 308})
_NOT_FOLLOWED: Final = frozenset({301, 302, 303})
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500


def review_body(document: bytes, uid: str, version: str) -> bytes:
    """The AdmissionReview that puts a document, as kube-apiserver writes it: the uid first, a line end last."""
    members = document[1:] if document.startswith(b"{}") else b"," + document[1:]
    return b'{"kind":"AdmissionReview","apiVersion":"%b%b","request":{"uid":"%b"%b}\n' % (
        _GROUP.encode(),
        version.encode(),
        uid.encode(),
        members,
    )


class Webhook(Protocol):
    """The worker that is called, as one call to it sees it."""

    async def answer(self, call: "WebhookCall") -> Answer:
        """What the webhook says to a call, or why it says nothing."""

    def internal(self, policy_call: PolicyCall, error: Exception) -> Failure:
        """A mistake of ours."""

    def left(self, call: "WebhookCall") -> None:
        """A call is not open any more."""


class WebhookCall:
    """One call while it is open: calls the webhook once, and again where that is due.

    Args:
        webhook: the worker.
        call: the call.
        answered: told the answer once, unless it is cancelled.
        refusal: why the worker does not take it on; None: it does.
        version: of the AdmissionReview, without its group.
        endpoint: where the webhook is.
        client: has the connections.
        failures: names what goes wrong.
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
        self._renewed = False
        self.again = 0
        """How many calls there were beside the first one."""
        self.task = asyncio.get_running_loop().create_task(self._run())
        # One that is cancelled before it begins never gets to its own end.
        self.task.add_done_callback(lambda _: webhook.left(self))

    def cancel(self) -> None:
        """It is not waited for any more. A call with side effects goes on to its end."""
        self._is_awaited = False
        if self.call.cancellable:
            self.task.cancel()

    def break_off(self) -> None:
        """It ends, whatever it is."""
        self._is_awaited = False
        self.task.cancel()

    async def _run(self) -> None:
        try:
            answer = self._refusal or await self._webhook.answer(self)
        except Exception as error:  # noqa: BLE001 - logged; whatever it is, somebody waits for an answer
            answer = self._webhook.internal(self.call, error)
        self._webhook.left(self)
        if not self._is_awaited:
            return
        try:
            self._answered(self.call, answer)
        except Exception:  # noqa: BLE001 - logged: one listener's mistake costs nobody else an answer
            _LOG.exception("telling an answer failed inside the gateway", uid=self.call.uid)

    async def answer(self, proof: WebhookTls) -> Answer:
        """What the webhook says. The caller sets the deadline.

        Raises:
            AskError: it says nothing that can be followed.
        """
        self._body = review_body(self.call.document.content, self._uid, self._version)
        redirects = 0
        url = self.url
        while True:
            received = await self._called(url, proof)
            if received.status in SUCCESSES:
                return await self._read(received)
            location = received.location
            if received.status in _FOLLOWED and location:
                moved = self._endpoint.moved(url, location)
                if moved is None:
                    raise AskError(self._failures.redirected(self._name, url, received.status, location))
                redirects += 1
                if redirects > REDIRECTS:
                    raise AskError(self._failures.too_many_redirects(self._name, url, REDIRECTS))
                url = moved
                continue
            if received.status in _NOT_FOLLOWED and location:
                raise AskError(self._failures.redirected(self._name, url, received.status, location))
            seconds = self._retry_after(received)
            if seconds is None:
                raise AskError(self._status(received))
            await asyncio.sleep(seconds)
            self.again += 1
            url = self.url

    async def _called(self, url: str, proof: WebhookTls) -> Received:
        post = Post(name=self._name, url=url, body=self._body, traceparent=self.call.traceparent)
        try:
            return await self._client.post(post, proof)
        except AskError as error:
            if not error.untouched or not self.call.cancellable or self._renewed:
                raise
        self._renewed = True
        self.again += 1
        return await self._called(url, proof)

    def _retry_after(self, received: Received) -> float | None:
        """In how many seconds to call again; None: not at all."""
        is_called_for = received.status == _TOO_MANY_REQUESTS or received.status >= _SERVER_ERROR
        if not is_called_for or not self.call.cancellable or self.again + 1 >= self._limits.webhook_attempts:
            return None
        if _SECONDS.fullmatch(received.retry_after) is None:
            return None
        seconds = max(int(received.retry_after), 0)
        return seconds if monotonic() + seconds < self.call.deadline else None

    def _status(self, received: Received) -> Failure:
        words = status_words(received.status, received.content_type, received.body)
        return self._failures.status(self._name, received.status, words)

    async def _read(self, received: Received) -> Answer:
        try:
            if received.content_type:
                media_type(received.content_type)
        except MediaTypeError as error:
            return self._failures.bad_media_type(self._name, str(error))
        if not received.body:
            return self._failures.empty(self._name, received.status, received.content_type)
        if len(received.body) < LARGE_ANSWER:
            return self._reviewed(received.body)
        if most_values(received.body) > self._limits.webhook_answer_values:
            return self._failures.too_many_values(self._name, self._limits.webhook_answer_values)
        return await asyncio.to_thread(self._reviewed, received.body)

    def _reviewed(self, body: bytes) -> Answer:
        return review_answer(
            self._name,
            body,
            uid=self._uid,
            api_version=_GROUP + self._version,
            phase=self.call.policy.phase,
        )
