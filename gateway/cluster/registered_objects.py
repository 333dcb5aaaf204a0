"""Watches the two webhook configurations that register the gateway, for the policies of the entries that they have."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import structlog

from gateway.cluster.client import KubernetesClient
from gateway.cluster.reflector import Reflector
from gateway.cluster.webhook_objects import RESOURCES, webhooks_collection
from gateway.policies.model import Phase
from gateway.registration.registered_entries import ANNOTATION, RegisteredEntries, decode

_LOG: Final = structlog.get_logger(__name__)

Registered = tuple[tuple[Phase, RegisteredEntries], ...]
"""The registered entries, by phase."""

_PHASES: Final = dict(zip(RESOURCES, Phase, strict=True))


class RegisteredObjects:
    """What they say now.

    Args:
        client: connected before ``run``.
        name: of both objects.
    """

    def __init__(self, client: KubernetesClient, name: str) -> None:
        self._name = name
        self._changed: Callable[[Registered], object] = lambda _registered: None
        self._reflectors = {
            phase: Reflector(
                client,
                webhooks_collection(kind),
                partial(_read, kind),
                lambda _name, _entries: self._changed(self.entries),
                metadata_only=True,
                # RBAC permits it to those, too, who may list and watch the object of this name only.
                selectors={"fieldSelector": f"metadata.name={name}"},
            )
            for kind, phase in _PHASES.items()
        }

    @property
    def entries(self) -> Registered:
        """The entries that are registered, as far as they are known."""
        found = ((phase, reflector.items.get(self._name)) for phase, reflector in self._reflectors.items())
        return tuple((phase, entries) for phase, entries in found if entries is not None)

    @property
    def note(self) -> str | None:
        """Why ``entries`` may be out of date; None if they are not."""
        return next((each.problem for each in self._reflectors.values() if each.problem is not None), None)

    def follow(self, changed: Callable[[Registered], object]) -> None:
        """Call ``changed`` with the entries now, and after each change."""
        self._changed = changed
        changed(self.entries)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors.values():
                tasks.create_task(reflector.run())

    async def synced(self) -> None:
        """Wait until both have been read once, or found missing."""
        for reflector in self._reflectors.values():
            await reflector.synced.wait()


def _read(kind: str, obj: Any) -> RegisteredEntries | None:
    value = (obj["metadata"].get("annotations") or {}).get(ANNOTATION)
    if value is None:
        return None
    try:
        return decode(value)
    except ValueError as error:
        name = obj["metadata"]["name"]
        _LOG.warning("an annotation cannot be read", kind=kind, name=name, annotation=ANNOTATION, error=str(error))
        return None
