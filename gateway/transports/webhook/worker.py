"""One existing webhook, called as kube-apiserver calls it.

It has connections for each set of credentials: one set, unless mutating and validating calls have different
credentials. Its connections and open calls are limited, so a webhook that hangs does not affect others.
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

import structlog

from gateway.engine.policy_call import PolicyCall
from gateway.engine.verdicts import Answer, Failure
from gateway.policies.model import Phase
from gateway.policies.workers.targets import WebhookTarget
from gateway.telemetry.events import Events, NoEvents
from gateway.telemetry.labels import WEBHOOK_EVENTS, WorkerEvent
from gateway.telemetry.table import WORKER_CONNECTIONS
from gateway.transports.descriptions import Description
from gateway.transports.limits import Backlog, TransportLimits
from gateway.transports.webhook.call import WebhookCall
from gateway.transports.webhook.client import Client
from gateway.transports.webhook.client_credentials import Credentials, WebhookAccess
from gateway.transports.webhook.endpoint import WebhookEndpoint
from gateway.transports.webhook.failures import Failures, WebhookCallError, timeout_failure
from gateway.transports.webhook.host_overrides import HostOverrides
from gateway.transports.webhook.webhook_tls import WebhookTlsError, WebhookTlsLoader
from gateway.transports.worker_channel import Answered, count_worker_event

_LOG: Final = structlog.get_logger(__name__)

SUPPORTED_VERSIONS: Final = ("v1", "v1beta1")
"""The versions of AdmissionReview that the gateway supports."""


class WebhookWorker:
    """Calls one webhook. A WorkerChannel.

    Args:
        name: the Worker's name, for messages.
        target: its URL, authorities and versions.
        limits: see TransportLimits.
        access: the gateway's credentials, and addresses that replace DNS.
        events: counts the worker's events.
    """

    def __init__(
        self,
        name: str,
        target: WebhookTarget,
        limits: TransportLimits,
        *,
        access: WebhookAccess | None = None,
        events: Events | None = None,
    ) -> None:
        access = access or WebhookAccess()
        self.name = name
        self._endpoint = WebhookEndpoint(target)
        self.target = self._endpoint.url
        self._limits = limits
        self._events = events or NoEvents()
        # The first supported one in the list, as in CreateAdmissionObjects.
        self._version = next((version for version in target.review_versions if version in SUPPORTED_VERSIONS), "")
        overrides = HostOverrides(access.resolved)
        host, port = overrides.dialled(self._endpoint.host, self._endpoint.port)
        self._failures = Failures(name, f"{host}:{port}", self._endpoint.host, limits.message_characters)
        self._backlog = Backlog(limits.worker_backlog_bytes)
        self._clients: dict[Credentials, _AuthenticatedClient] = {}
        self._client_of: dict[Phase, _AuthenticatedClient] = {}
        for phase in Phase:
            credentials = access.credentials(phase, self._endpoint.target)
            client = self._clients.get(credentials)
            if client is None:
                client = self._clients[credentials] = _AuthenticatedClient(
                    tls_loader=WebhookTlsLoader(name, target.ca_bundle, credentials, limits.webhook_reload_seconds),
                    client=Client(
                        self._endpoint.authority,
                        overrides,
                        limits,
                        self._failures,
                        hold=self._hold,
                        connections=self._connections_changed,
                    ),
                )
            self._client_of[phase] = client
        self._open: set[WebhookCall] = set()
        self._connections = 0
        self._is_closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._events.worker_added(name, WEBHOOK_EVENTS)

    def call(
        self,
        policy_call: PolicyCall,
        answered: Answered,
        fits: frozenset[Description] | None = None,  # noqa: ARG002 - a webhook describes nothing
    ) -> Callable[[], object]:
        """See WorkerChannel."""
        call = WebhookCall(
            self,
            policy_call,
            answered,
            self._refusal(policy_call),
            version=self._version,
            endpoint=self._endpoint,
            client=self._client_of[policy_call.policy.phase].client,
            failures=self._failures,
            limits=self._limits,
        )
        self._open.add(call)
        self._idle.clear()
        return call.cancel

    def _refusal(self, policy_call: PolicyCall) -> Failure | None:
        """The failure of a call that is not made."""
        if not self._version:
            return self._failures.no_version(policy_call.policy.name)
        if self._is_closed:
            return self._failures.closed(policy_call.policy.name)
        if not self._backlog.has_room(len(policy_call.document.content)):
            count_worker_event(self._events, self.name, WorkerEvent.BACKLOG)
            return self._failures.too_much(self._backlog.bytes, self._backlog.limit)
        return None

    async def answer(self, call: WebhookCall) -> Answer:
        """See Webhook."""
        policy_call = call.call
        tls_loader = self._client_of[policy_call.policy.phase].tls_loader
        left = policy_call.deadline - monotonic()
        if left <= 0:
            return timeout_failure(policy_call.policy.name, call.url)
        size = len(policy_call.document.content)
        self._backlog.bytes += size
        try:
            async with asyncio.timeout(left):
                return await call.answer(await tls_loader.current())
        except TimeoutError:
            return timeout_failure(policy_call.policy.name, call.url)
        except WebhookTlsError as error:
            return self._failures.unusable(policy_call.policy.name, str(error))
        except WebhookCallError as error:
            return error.failure
        finally:
            self._backlog.bytes -= size
            if call.retries:
                count_worker_event(self._events, self.name, WorkerEvent.RETRY, call.retries)

    def internal(self, policy_call: PolicyCall, error: Exception) -> Failure:
        """See Webhook."""
        _LOG.exception("calling a webhook failed inside the gateway", worker=self.name, uid=policy_call.uid)
        return self._failures.internal(error)

    def finished(self, call: WebhookCall) -> None:
        """See Webhook."""
        self._open.discard(call)  # it is reported twice: by the call, and by the end of its task
        if not self._open:
            self._idle.set()

    def _hold(self, size: int) -> None:
        if size > 0 and not self._backlog.has_room(size):
            count_worker_event(self._events, self.name, WorkerEvent.BACKLOG)
            raise WebhookCallError(self._failures.too_much(self._backlog.bytes, self._backlog.limit))
        self._backlog.bytes += size

    def _connections_changed(self, change: int) -> None:
        if self._is_closed:
            return
        self._connections += change
        self._events.count(WORKER_CONNECTIONS, self.name, amount=change)
        count_worker_event(self._events, self.name, WorkerEvent.CONNECTED if change > 0 else WorkerEvent.DISCONNECTED)

    async def idle(self) -> None:
        """Return when no call is open. Each call has its deadline, so this ends."""
        while self._open:
            await self._idle.wait()

    async def close(self) -> None:
        """Cancel the open calls, and close all connections."""
        if self._is_closed:
            return
        self._is_closed = True
        for call in tuple(self._open):
            call.abort()
        await asyncio.gather(*(call.task for call in tuple(self._open)), return_exceptions=True)
        for client in self._clients.values():
            await client.close()
        self._events.count(WORKER_CONNECTIONS, self.name, amount=-self._connections)
        self._events.worker_removed(self.name)


class _AuthenticatedClient:
    """The connections to the webhook with one set of credentials."""

    def __init__(self, *, tls_loader: WebhookTlsLoader, client: Client) -> None:
        self.tls_loader = tls_loader
        self.client = client

    async def close(self) -> None:
        await self.tls_loader.close()
        await self.client.close()
