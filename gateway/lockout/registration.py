"""What registering a configuration means for the cluster: everything that is known about both, examined."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from gateway.lockout.catalogue import KUBE_SYSTEM, Workload
from gateway.lockout.configurations import Webhook, read_webhooks
from gateway.lockout.dependencies import cycles, dependencies
from gateway.lockout.examination import Examination, examine
from gateway.matching.selectors import Labels
from gateway.policies.model import Configuration
from gateway.registration.entries import Entries
from gateway.registration.webhook_configurations import Registrar, Registration

DNS: Final = Workload(
    what="cluster DNS",
    because="the gateway and its workers find nothing by name",
    namespace=KUBE_SYSTEM,
    name="coredns",
    labels={"k8s-app": "kube-dns"},
)
NETWORK: Final = Workload(
    what="network plugin (CNI)",
    because="no Pod gets an address, those of the gateway included",
    namespace=KUBE_SYSTEM,
    name="cni",
    daemon=True,
)


class ClusterState(Struct, frozen=True, kw_only=True):
    """What was read from the cluster; without it, what is usual.

    ``namespaces``: their labels. ``workloads``: what must start besides the gateway, its workers and Redis. ``others``:
    webhook configurations (v1) that are not the gateway's.
    """

    namespaces: Mapping[str, Labels] = {}
    workloads: tuple[Workload, ...] = (DNS, NETWORK)
    others: tuple[Mapping[str, Any], ...] = ()


def examine_registration(
    configuration: Configuration,
    entries: Entries,
    registration: Registration,
    registrar: Registrar,
    *,
    redis_hosts: tuple[str, ...] = (),
    cluster: ClusterState | None = None,
) -> Examination:
    """What registering means: findings, and what stays possible while no gateway answers.

    Args:
        configuration: the policies.
        entries: their entries.
        registration: what would be registered.
        registrar: the same as for ``registration``.
        redis_hosts: the hosts in the address of Redis, if there is one.
        cluster: None if nothing is known about it.
    """
    state = cluster or ClusterState(namespaces=configuration.namespaces)
    depend = dependencies(configuration, redis_hosts)
    return examine(
        (*_own(entries, registration), *read_webhooks(state.others)),
        (*_gateway(registrar), *state.workloads, *(each for dependency in depend for each in dependency.workloads)),
        cycles=cycles(configuration, depend, registrar.closed_namespaces, state.namespaces),
        namespaces=state.namespaces,
    )


def _own(entries: Entries, registration: Registration) -> tuple[Webhook, ...]:
    policies = {entry.name: entry.policies for entry in entries.mutating + entries.validating}
    return read_webhooks(registration.objects, policies)


def _gateway(registrar: Registrar) -> tuple[Workload, ...]:
    """The gateway's own Pods; by a URL it is not known where they are."""
    service = registrar.service
    if service is None:
        return ()
    because = "the gateway cannot start, which only it could permit"
    return (Workload(what="gateway", because=because, namespace=service.namespace, name=service.name, own=True),)
