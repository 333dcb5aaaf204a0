"""The paths that shell-operator registers: ``/hooks/ID``, one per binding of a hook.

Each path leads to the entry of that binding's policy, so that a webhook configuration which shell-operator left in the
cluster continues to work. Only policies of hooks, which are isolated, have such paths. If two bindings have the same
id, neither has a path.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gateway.hooks.configuration.names import webhook_id
from gateway.policies.model import Configuration, Phase
from gateway.registration.entries import Entries

ID_PATHS: Final = "/hooks/"
"""The prefix of the paths under which shell-operator serves its webhooks; the id follows."""


class HookPath(NamedTuple):
    """The configuration in which a binding is registered, and its id."""

    configuration: str
    identifier: str


def hook_entries(configuration: Configuration, entries: Entries) -> Mapping[HookPath, tuple[Phase, str]]:
    """The phase and the entry's name of each path."""
    found: dict[HookPath, list[tuple[Phase, str]]] = {}
    for phase in Phase:
        for entry in entries.of(phase):
            policy = entry.policies[0]
            worker = configuration.workers.get(policy.worker)
            if entry.isolated and worker is not None and worker.hook is not None:
                path = HookPath(policy.configuration, webhook_id(policy.policy))
                found.setdefault(path, []).append((phase, entry.name))
    return {path: targets[0] for path, targets in found.items() if len(targets) == 1}
