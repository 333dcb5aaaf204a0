"""The registration of a gateway that serves, kept by itself: for the configuration in force, as `render` prints it."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import structlog
from msgspec import Struct

from gateway.cluster.cluster import Cluster
from gateway.cluster.errors import ApiError
from gateway.cluster.registration_controller import (
    DesiredRegistration,
    RegistrationController,
    RegistrationError,
)
from gateway.cluster.webhook_objects import other_webhooks
from gateway.lockout.examination import refusal
from gateway.lockout.registration import ClusterState, examine_registration
from gateway.policies.model import Configuration, Phase
from gateway.redis.addresses import redis_address
from gateway.registration.entries import Entries, Entry
from gateway.registration.kubernetes_versions import KubeVersion, read_version
from gateway.registration.webhook_configurations import Registrar, Registration, register
from gateway.serving.ca_bundle import CaBundleError, read_ca_bundle
from gateway.serving.credential_files import PATH_SECRETS, CredentialError, credentials_in
from gateway.serving.loaded_configuration import Configurations
from gateway.serving.settings import Settings
from gateway.telemetry.events import Events

_LOG: Final = structlog.get_logger(__name__)

_POLL_SECONDS: Final = 0.2
"""How soon a new configuration is reported to the replica that leads."""


class _Made(Struct, frozen=True, kw_only=True):
    """What was made of a configuration and its entries. ``sound`` are those of them that are registered."""

    configuration: Configuration
    entries: Entries
    sound: Entries
    registrar: Registrar
    registration: Registration


class SelfRegistration:
    """Registers a gateway from the time at which it is ready.

    Args:
        cluster: started before this.
        settings: with a ``registration``.
        configurations: has the configuration in force.
        events: has the state of the registration.
        bundle: the CA bundle, unless there is a file of it: PEM, empty if it is not known; None: of the system's roots.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        configurations: Configurations,
        events: Events,
        bundle: Callable[[], bytes] | None = None,
    ) -> None:
        assert settings.registration is not None  # noqa: S101 - the caller's
        self._chosen = settings.registration
        self._name = settings.registration_name
        self._bundle = bundle
        self._path_secret_file = settings.path_secret_file
        self._client, self._probe, self._configurations = cluster.client, cluster.probe, configurations
        self._controller = RegistrationController(
            cluster.client,
            name=self._name,
            service=self._chosen.service,
            desired=self._desired,
            entries=lambda: configurations.current.entries,
            events=events,
        )
        self._version: KubeVersion | None = None
        self._redis_hosts = tuple(host for host, _ in redis_address(settings.redis).hosts) if settings.redis else ()
        self._made: _Made | None = None
        self._insisted: str | None = None
        self._unread: str | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._resigned = False

    @property
    def note(self) -> str | None:
        """What an operator should know of the registration, for /readyz; None: nothing."""
        return self._controller.note

    def changed(self) -> None:
        """What is to be registered has changed."""
        self._controller.changed()

    def start(self) -> None:
        """Begin: the gateway is ready."""
        if not self._resigned:
            self._tasks = [asyncio.create_task(self._controller.run()), asyncio.create_task(self._report())]

    def resign(self) -> None:
        """Let another replica lead. This one still reports what it serves."""
        self._resigned = True
        for task in self._tasks[:1]:
            task.cancel()

    async def stop(self) -> None:
        """End all of it: this replica serves no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _report(self) -> None:
        """Report what is served; a change of it at once, so that the leader need not wait."""
        report = asyncio.create_task(self._controller.report())
        try:
            entries = self._configurations.current.entries
            while True:
                await asyncio.sleep(_POLL_SECONDS)
                if self._configurations.current.entries is not entries:
                    entries = self._configurations.current.entries
                    self._controller.changed()
        finally:
            report.cancel()
            await asyncio.gather(report, return_exceptions=True)

    # ------------------------------------------------------------------------------------ what is to be registered

    async def _desired(self) -> DesiredRegistration:
        loaded = self._configurations.current
        registrar = await self._registrar()
        if self._made is None or self._made.entries is not loaded.entries or self._made.registrar != registrar:
            sound = _sound(loaded.entries)
            registration = register(sound, registrar)
            for warning in registration.warnings:
                _LOG.warning("a warning about the registration", warning=warning)
            self._made = _Made(
                configuration=loaded.configuration,
                entries=loaded.entries,
                sound=sound,
                registrar=registrar,
                registration=registration,
            )
        return DesiredRegistration(
            objects=self._made.registration.objects,
            examine=partial(self._examine, self._made),
            incomplete=_incomplete(loaded.configuration),
        )

    async def _examine(self, made: _Made) -> None:
        """Refuse what was made if it could lock the cluster as that is now.

        What may not be read is logged and left out: what is safe by the rest is registered.

        Raises:
            RegistrationError: it could.
        """
        state = ClusterState(
            namespaces=dict(self._configurations.current.namespaces), others=await self._other_webhooks()
        )
        # In a thread: of thousands of policies it takes seconds.
        examination = await asyncio.to_thread(
            examine_registration,
            made.configuration,
            made.sound,
            made.registration,
            made.registrar,
            redis_hosts=self._redis_hosts,
            cluster=state,
        )
        found = await self._distrust(made.registrar) or refusal(examination)
        if found is not None and not self._chosen.despite_findings:
            raise RegistrationError(
                f"what is registered stays: {found}; `admission-gateway doctor` has the remedy, and "
                "--register-despite-findings registers it all the same"
            )
        if found is not None and found != self._insisted:
            _LOG.warning("what is registered could lock the cluster: --register-despite-findings", why=found)
        self._insisted = found

    async def _distrust(self, registrar: Registrar) -> str | None:
        """Why kube-apiserver could not verify the gateway's certificate with what is to be registered."""
        if self._probe is None or not registrar.ca_bundle:
            return None
        service = self._chosen.service
        why = await self._probe.distrust(registrar.ca_bundle, service.port)
        called = f"{service.namespace}/{service.name}"
        return None if why is None else f"kube-apiserver could not verify the certificate of Service {called}: {why}"

    async def _other_webhooks(self) -> tuple[Mapping[str, Any], ...]:
        problem = None
        try:
            found = await other_webhooks(self._client, self._name)
        except ApiError as error:
            problem, found = str(error), ()
        if problem is not None and problem != self._unread:
            _LOG.warning("what could lock the cluster is judged without the webhooks of others", error=problem)
        self._unread = problem
        return found

    async def _registrar(self) -> Registrar:
        chosen = self._chosen
        try:
            bundle = await self._ca_bundle()
            secret = "" if self._path_secret_file is None else await asyncio.to_thread(self._path_secret)
            return Registrar(
                name=self._name,
                service=chosen.service,
                ca_bundle=bundle,
                kube_version=await self._kube_version(),
                excluded_namespaces=chosen.excluded_namespaces,
                path_secret=secret,
            )
        except (CaBundleError, CredentialError, ValueError) as error:
            raise RegistrationError(f"what is registered stays: {error}") from None

    async def _ca_bundle(self) -> bytes:
        if self._chosen.ca_bundle is not None:
            return await asyncio.to_thread(read_ca_bundle, self._chosen.ca_bundle)
        return b"" if self._bundle is None else self._bundle()

    def _path_secret(self) -> str:
        assert self._path_secret_file is not None  # noqa: S101 - the caller's
        return credentials_in(self._path_secret_file, PATH_SECRETS)[0]

    async def _kube_version(self) -> KubeVersion:
        """The API server's, as it was first: an upgrade adds nothing that is needed."""
        if self._version is None:
            reported = (await self._client.get("/version")).get("gitVersion", "")
            self._version = read_version(reported)
            if self._version is None:
                raise RegistrationError(f"the API server reports {reported!r}, which is no version of Kubernetes")
        return self._version


def _sound(entries: Entries) -> Entries:
    """The entries, without those of which every policy has an error.

    Such a policy was never good while this process ran. In its strictest reading it might match everything, so it is
    not registered; if it is registered, from an earlier time, it stays (``incomplete``).
    """

    def sound(phase: Phase) -> tuple[Entry, ...]:
        return tuple(each for each in entries.of(phase) if any(policy.fault is None for policy in each.policies))

    return Entries(mutating=sound(Phase.MUTATING), validating=sound(Phase.VALIDATING), idle=entries.idle)


def _incomplete(configuration: Configuration) -> str:
    errors = configuration.errors
    if not errors:
        return ""
    return (
        f"the configuration in force has {len(errors)} errors, first: {errors[0]}; until they are corrected, no "
        "webhook is unregistered, and policies with an error are not registered"
    )
