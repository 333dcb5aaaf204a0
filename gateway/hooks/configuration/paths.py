"""The paths that shell-operator has registered: ``/hooks/ID``, one for each binding of a hook.

Each leads to the entry of that binding's policy, so that a webhook configuration which shell-operator left in the
cluster goes on working. Only policies of hooks have them, which are isolated. Where two bindings have the same id,
nobody can tell which is meant: then there is no path.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gateway.hooks.configuration.names import webhook_id
from gateway.policies.model import Configuration, Phase
from gateway.registration.entries import Entries

ID_PATHS: Final = "/hooks/"
"""Where shell-operator serves its webhooks: this, and the id."""


class HookPath(NamedTuple):
    """The configuration in which a binding is registered, and its id."""

    configuration: str
    identifier: str


def hook_entries(configuration: Configuration, entries: Entries) -> Mapping[HookPath, tuple[Phase, str]]:
    """The phase, and the name of the entry, that each path leads to."""
    found: dict[HookPath, list[tuple[Phase, str]]] = {}
    for phase in Phase:
        for entry in entries.of(phase):
            policy = entry.policies[0]
            worker = configuration.workers.get(policy.worker)
            if entry.isolated and worker is not None and worker.hook is not None:
                path = HookPath(policy.configuration, webhook_id(policy.policy))
                found.setdefault(path, []).append((phase, entry.name))
    return {path: targets[0] for path, targets in found.items() if len(targets) == 1}
