"""What `doctor` reads from a cluster: what else is called and must start there, and whether the gateway can be called.

Each part is read for itself. What may not be read, or cannot be reached from here, is reported as not checked: it is
no finding, and no promise.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from gateway.cluster.client import KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError
from gateway.cluster.permissions import missing_permissions
from gateway.cluster.webhook_objects import other_webhooks
from gateway.cluster.webhook_probe import probe_service
from gateway.lockout.catalogue import Workload
from gateway.lockout.findings import Code, Finding, Remedy, Severity
from gateway.lockout.registration import DNS, NETWORK, ClusterState
from gateway.policies.workers.targets import ServiceReference
from gateway.registration.kubernetes_versions import read_version
from gateway.registration.webhook_configurations import Registrar

_CRITICAL: Final = ("system-cluster-critical", "system-node-critical")
"""Priority classes of what a cluster cannot run without: DNS, the network plugin, kube-proxy, storage drivers."""

_NOT_FOUND: Final = 404


class Findings(Struct, kw_only=True):
    """What was found, and ``not_checked``, what was not looked at and why."""

    findings: list[Finding] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    severity: Severity = Severity.WARN

    def add(self, code: Code, message: str, remedy: str, *, severity: Severity | None = None) -> None:
        """Report a finding that no rule causes."""
        found = Finding(severity=severity or self.severity, code=code, message=message, remedy=Remedy(text=remedy))
        self.findings.append(found)


async def read_cluster(
    client: KubernetesClient, registrar: Registrar, *, fails_closed: bool, is_inside: bool
) -> tuple[ClusterState, Findings]:
    """Everything that can be read.

    Args:
        client: connected.
        registrar: under which name and address the gateway would be registered.
        fails_closed: whether a webhook would be registered under Fail: then what keeps kube-apiserver from calling it
            refuses the registration.
        is_inside: whether this runs in a Pod of the cluster, and so reaches its Services.

    Raises:
        ApiError: the API server cannot be reached at all.
    """
    found = Findings(severity=Severity.REFUSE if fails_closed else Severity.WARN)

    async def read(what: str, reading: Callable[[], Awaitable[Any]], default: Any) -> Any:
        try:
            return await reading()
        except ApiError as error:
            found.not_checked.append(f"{what}: {error}")
            return default

    _check_version(str((await client.get("/version")).get("gitVersion")), registrar, found)
    usual = ClusterState()
    state = ClusterState(
        namespaces=await read("labels of namespaces", lambda: _namespaces(client), {}),
        workloads=await read("critical workloads", lambda: _workloads(client), usual.workloads),
        others=await read("webhooks of others", lambda: other_webhooks(client, registrar.name), ()),
    )
    if registrar.service is not None:
        about = registrar.service
        await read("the Service", lambda: _check_service(client, registrar, about, found, is_inside=is_inside), None)
        await read("permissions", lambda: _check_permissions(client, registrar, about, found), None)
    return state, found


async def _namespaces(client: KubernetesClient) -> dict[str, Mapping[str, str]]:
    items, _ = await client.list_all(collection_path("", "v1", "namespaces"))
    return {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in items}


async def _workloads(client: KubernetesClient) -> tuple[Workload, ...]:
    """Those of a critical priority class; the usual ones, if there are none."""
    found: list[Workload] = []
    for resource in ("deployments", "daemonsets"):
        items, _ = await client.list_all(collection_path("apps", "v1", resource))
        found += [_workload(each, resource) for each in items if _template(each).get("priorityClassName") in _CRITICAL]
    return tuple(found) or (DNS, NETWORK)


def _template(workload: Any) -> Any:
    return workload["spec"]["template"].get("spec") or {}


def _workload(obj: Any, resource: str) -> Workload:
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    return Workload(
        what=f"{namespace}/{name}",
        because=f"it is {_template(obj)['priorityClassName']}",
        namespace=namespace,
        name=name,
        labels=(obj["spec"]["template"].get("metadata") or {}).get("labels") or {},
        daemon=resource == "daemonsets",
    )


def _check_version(text: str, registrar: Registrar, found: Findings) -> None:
    version = read_version(text)
    if version is not None and version < registrar.kube_version:
        found.add(
            Code.VERSION,
            f"the API server is {text}, and the objects are made for Kubernetes {registrar.kube_version}",
            f"render with --kube-version {version}",
            severity=Severity.WARN,
        )


async def _check_service(
    client: KubernetesClient, registrar: Registrar, about: ServiceReference, found: Findings, *, is_inside: bool
) -> None:
    called = f"{about.namespace}/{about.name}"
    try:
        service = await client.get(object_path("", "v1", "services", about.name, about.namespace))
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        found.add(Code.SERVICE, f"there is no Service {called}", "install the gateway before it is registered")
        return
    if service["spec"].get("type") != "ExternalName" and not await _ready(client, about):
        found.add(
            Code.SERVICE,
            f"Service {called} has no ready endpoint",
            "register when a gateway is ready: /readyz?verbose says what it waits for",
        )
        return
    problem = await probe_service(service, about.port, registrar.ca_bundle, f"{about.name}.{about.namespace}.svc")
    if problem is None:
        return
    if problem.is_connection and not is_inside:
        found.not_checked.append(f"the certificate behind Service {called}: not reached from here: {problem.text}")
        return
    code, remedy = (
        (Code.CERTIFICATE, "give render the CA of the gateway's certificate, which must have the Service's name")
        if problem.is_certificate
        else (Code.SERVICE, "correct the Service, or --service")
    )
    found.add(code, f"kube-apiserver could not call Service {called}: {problem.text}", remedy)


async def _ready(client: KubernetesClient, about: ServiceReference) -> bool:
    path = collection_path("discovery.k8s.io", "v1", "endpointslices", about.namespace)
    query = {"labelSelector": f"kubernetes.io/service-name={about.name}"}
    slices = (await client.send("GET", path, query=query)).get("items") or ()
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or ()]
    # "nil should be interpreted as true"
    return any((each.get("conditions") or {}).get("ready") is not False for each in endpoints)


async def _check_permissions(
    client: KubernetesClient, registrar: Registrar, about: ServiceReference, found: Findings
) -> None:
    selector = (await client.get(object_path("", "v1", "services", about.name, about.namespace)))["spec"].get(
        "selector"
    )
    if not selector:
        return
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    query: dict[str, str | int] = {"labelSelector": labels, "limit": 1}
    pods = await client.send("GET", collection_path("", "v1", "pods", about.namespace), query=query)
    for pod in (pods.get("items") or ())[:1]:
        for missing in await missing_permissions(client, pod, registrar.name):
            found.add(
                Code.PERMISSION,
                missing,
                "install the Role and ClusterRole of the chart, with the values for these flags",
                severity=Severity.WARN,
            )
