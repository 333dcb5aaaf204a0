"""What the gateway's policies need to be judged: workers and Redis, and whether their Pods can start without them.

After a cold start nothing runs. The gateway's own Pods are never sent to it, so it starts. A worker's Pods start if no
policy under Fail judges them, or if the workers of all that do have started. What is never reached in this way waits
for itself: a cycle, which only an administrator ends.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from gateway.lockout.catalogue import Workload, workload_probes
from gateway.lockout.reach import Reach, reach
from gateway.matching.selectors import Labels
from gateway.policies.model import Configuration, FailurePolicy, Mode, Policy
from gateway.policies.workers.grpc_names import is_address, target_hosts
from gateway.policies.workers.targets import Worker

REDIS = "Redis"
_BECAUSE = "their policies fail until these Pods run"


class Dependency(Struct, frozen=True, kw_only=True):
    """A worker, or Redis, and the namespaces of its Services in the cluster; none: it runs outside of the cluster."""

    name: str
    namespaces: tuple[str, ...]
    needs: tuple[str, ...] = ()

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Its Pods."""
        what = "Redis" if self.name == REDIS else f"worker {self.name}"
        return tuple(
            Workload(what=what, because=_BECAUSE, essential=False, namespace=each, name="worker")
            for each in self.namespaces
        )


class Cycle(Struct, frozen=True, kw_only=True):
    """Pods that cannot start before the policies that judge them are judged. ``policies`` are those.

    ``certain``: whatever the labels of namespaces are that are not known.
    """

    dependency: str
    namespace: str
    policies: tuple[Policy, ...]
    certain: bool


def dependencies(configuration: Configuration, redis_hosts: Iterable[str] = ()) -> tuple[Dependency, ...]:
    """The workers that policies use, and Redis, by the hosts in their addresses."""
    used = {policy.worker for policy in configuration.mutating + configuration.validating}
    found = [
        Dependency(name=worker.name, namespaces=_namespaces(_hosts(worker)), needs=(REDIS,) if worker.queue else ())
        for worker in configuration.workers.values()
        if worker.name in used
    ]
    hosts = tuple(redis_hosts)
    return (*found, Dependency(name=REDIS, namespaces=_namespaces(hosts))) if hosts else tuple(found)


def cycles(
    configuration: Configuration,
    depend: Iterable[Dependency],
    closed: Collection[str],
    namespaces: Mapping[str, Labels],
) -> tuple[Cycle, ...]:
    """The Pods that wait for themselves, or may do so.

    Args:
        configuration: the policies.
        depend: what they need.
        closed: the namespaces whose requests are never sent to the gateway.
        namespaces: labels, as far as they are known.
    """
    known = tuple(depend)
    found: dict[tuple[str, str], Cycle] = {}
    for outcomes in ({Reach.CALLED, Reach.UNCERTAIN}, {Reach.CALLED}):
        judges = {
            each.name: {
                place: _judges(configuration, each, place, namespaces, outcomes)
                for place in each.namespaces
                if place not in closed
            }
            for each in known
        }
        certain = Reach.UNCERTAIN not in outcomes
        found |= {(each.dependency, each.namespace): each for each in _waiting(known, judges, certain=certain)}
    return tuple(found.values())


def _waiting(
    known: Iterable[Dependency], judges: Mapping[str, Mapping[str, tuple[Policy, ...]]], *, certain: bool
) -> Iterator[Cycle]:
    needs = {
        each.name: {*each.needs, *(policy.worker for by in judges[each.name].values() for policy in by)} & judges.keys()
        for each in known
    }
    waiting = set(needs)
    while ready := {name for name in waiting if not needs[name] & waiting}:
        waiting -= ready
    for name in sorted(waiting):
        for place, policies in judges[name].items():
            blocking = tuple(policy for policy in policies if policy.worker in waiting)
            if blocking:
                yield Cycle(dependency=name, namespace=place, policies=blocking, certain=certain)


def _judges(
    configuration: Configuration,
    dependency: Dependency,
    namespace: str,
    namespaces: Mapping[str, Labels],
    outcomes: Collection[Reach],
) -> tuple[Policy, ...]:
    """The policies that can keep its Pods in this namespace from starting."""
    probes = [
        (probe, probe.request())
        for workload in dependency.workloads
        if workload.namespace == namespace
        for probe in workload_probes(workload)
        if probe.operation == "CREATE"
    ]
    return tuple(
        policy
        for policy in configuration.mutating + configuration.validating
        if policy.failure_policy is FailurePolicy.FAIL and policy.mode is Mode.ENFORCE
        if any(reach(policy, probe, request, namespaces) in outcomes for probe, request in probes)
    )


def _hosts(worker: Worker) -> tuple[str, ...]:
    if worker.grpc is not None:
        return target_hosts(worker.grpc.target) or ()
    if worker.webhook is None:
        return ()
    if worker.webhook.service is not None:
        service = worker.webhook.service
        return (f"{service.name}.{service.namespace}.svc",)
    return (urlsplit(worker.webhook.url).hostname or "",)


def _namespaces(hosts: Iterable[str]) -> tuple[str, ...]:
    """The namespaces in names of Services: ``NAME.NAMESPACE.svc[.DOMAIN]``, also of one Pod behind a Service."""
    found = dict.fromkeys(
        labels[labels.index("svc", 2) - 1]
        for labels in (host.split(".") for host in hosts if not is_address(host))
        if "svc" in labels[2:]
    )
    return tuple(found)
