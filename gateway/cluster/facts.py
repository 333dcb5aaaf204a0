"""What matching needs to know of the cluster: the labels of namespaces, and authorizations.

* The metadata of all namespaces is watched: a review knows their labels without a request, whatever the API server does
  meanwhile. A namespace that the watch has not shown yet is one GET, within the budget of the review that needs it, as
  kube-apiserver's own webhook plugins do it; reviews that need it at the same time share the GET.
* An ``authorizer`` check is one SubjectAccessReview, with the field and label selectors of KEP-4601. It is not cached:
  an authorization that was withdrawn must not be used.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from gateway.cel.authorization import Authorization
from gateway.cluster.client import METADATA, KubernetesClient, collection_path, object_path
from gateway.cluster.errors import ApiError
from gateway.cluster.reflector import Reflector
from gateway.engine.lookups import Fact
from gateway.engine.steps import AuthorizationLookup, FactLookup
from gateway.matching.outcomes import Unknown
from gateway.matching.selectors import Labels
from gateway.telemetry.events import Events
from gateway.telemetry.table import CLUSTER_LOOKUPS

MAX_LOOKUPS: Final = 256
"""Lookups under way. The API server takes about a millisecond for each, so these are a quarter of a second of its work;
more would only wait there. A review needs one lookup, or a few."""

_NAMESPACES: Final = collection_path("", "v1", "namespaces")
_REVIEWS: Final = collection_path("authorization.k8s.io", "v1", "subjectaccessreviews")

NAMESPACE: Final = "namespace"
AUTHORIZATION: Final = "authorization"


class ClusterFacts:
    """Looks up facts in a cluster. A FactSource of ``gateway.serving.driver``.

    Args:
        client: connected.
        events: counts lookups.
    """

    def __init__(self, client: KubernetesClient, events: Events) -> None:
        self._client = client
        self._events = events
        self._reflector = Reflector(client, _NAMESPACES, _labels, metadata_only=True)
        self.namespaces: Mapping[str, Labels] = self._reflector.items
        """The labels of the namespaces that are known, by name."""
        self._waiting: dict[str, list[Callable[[Fact], None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def note(self) -> str | None:
        """Why ``namespaces`` may be out of date; None if they are not."""
        return self._reflector.problem

    async def run(self) -> None:
        """Watch the namespaces until cancelled; then end all lookups."""
        try:
            await self._reflector.run()
        finally:
            for task in self._tasks:
                task.cancel()

    async def synced(self) -> None:
        """Wait until all namespaces are known; before, they are looked up one by one."""
        await self._reflector.synced.wait()

    def look_up(self, lookup: FactLookup, found: Callable[[Fact], None]) -> None:
        """See FactSource."""
        if isinstance(lookup, AuthorizationLookup):
            self._start(AUTHORIZATION, self._authorization(lookup), found)
        elif (waiting := self._waiting.get(lookup.namespace)) is not None:
            waiting.append(found)
        else:
            self._waiting[lookup.namespace] = [found]
            self._start(NAMESPACE, self._namespace(lookup.namespace), lambda fact: self._share(lookup.namespace, fact))

    def _share(self, name: str, fact: Fact) -> None:
        for found in self._waiting.pop(name):
            found(fact)

    def _start(self, kind: str, lookup: Coroutine[Any, Any, Fact], found: Callable[[Fact], None]) -> None:
        if len(self._tasks) >= MAX_LOOKUPS:
            lookup.close()
            self._events.count(CLUSTER_LOOKUPS, kind, "limited")
            full = Unknown(message=f"{MAX_LOOKUPS} lookups in the Kubernetes API are under way; try again")
            asyncio.get_running_loop().call_soon(found, full)
            return
        task = asyncio.create_task(self._run(kind, lookup, found))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, kind: str, lookup: Coroutine[Any, Any, Fact], found: Callable[[Fact], None]) -> None:
        try:
            fact = await lookup
        except ApiError as error:
            fact = Unknown(message=f"{error}; check the API server, and that the gateway may do this (docs/operate.md)")
        except Exception as error:  # noqa: BLE001 - whatever the API server answered: the review must not wait for it
            fact = Unknown(message=f"the Kubernetes API answered what cannot be read: {type(error).__name__}: {error}")
        self._events.count(CLUSTER_LOOKUPS, kind, "failed" if isinstance(fact, Unknown) else "found")
        found(fact)

    async def _namespace(self, name: str) -> Labels | None:
        try:
            path = object_path("", "v1", "namespaces", name)
            return _labels(await self._client.get(path, accept=METADATA.format("")))
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            raise

    async def _authorization(self, lookup: AuthorizationLookup) -> Authorization:
        review = await self._client.send("POST", _REVIEWS, _subject_access_review(lookup))
        status = review["status"]
        return Authorization(
            allowed=bool(status.get("allowed")),
            reason=status.get("reason", ""),
            error=status.get("evaluationError", ""),
        )


def _labels(obj: Any) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _subject_access_review(lookup: AuthorizationLookup) -> dict[str, Any]:
    """authorization.k8s.io/v1, as kube-apiserver's CEL library makes the same check's attributes."""
    check = lookup.check
    if check.path:
        attributes: dict[str, Any] = {"nonResourceAttributes": {"path": check.path, "verb": check.verb}}
    else:
        resource: dict[str, Any] = {
            "verb": check.verb,
            "group": check.group,
            "version": "*",
            "resource": check.resource,
            "subresource": check.subresource,
            "namespace": check.namespace,
            "name": check.name,
        }
        if check.field_selector:
            resource["fieldSelector"] = {"rawSelector": check.field_selector}
        if check.label_selector:
            resource["labelSelector"] = {"rawSelector": check.label_selector}
        attributes = {"resourceAttributes": resource}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {**attributes, **_subject(lookup)},
    }


def _subject(lookup: AuthorizationLookup) -> dict[str, Any]:
    if lookup.check.service_account is not None:
        namespace, name = lookup.check.service_account
        return {
            "user": f"system:serviceaccount:{namespace}:{name}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"],
        }
    user = lookup.user
    return {"user": user.username, "groups": user.groups, "uid": user.uid, "extra": user.extra}
