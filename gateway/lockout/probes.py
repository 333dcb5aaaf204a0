"""A **probe**: a request that a cluster, or the gateway in it, cannot do without, as kube-apiserver gets it.

Which there are: ``catalogue``. A probe is ``essential`` if nothing repairs the cluster without it. The loss of another
costs what its ``because`` says.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.review.request import GroupVersionKind, GroupVersionResource, Request, UserInfo

REQUEST_SECONDS: Final = 34.0
"""requestTimeoutUpperBound of k8s.io/apiserver/pkg/endpoints/handlers: "enforce a timeout of at most
requestTimeoutUpperBound (34s)". Creates, updates and deletes end then, webhooks under Ignore or not."""

NODE_SECONDS: Final = 10.0
"""The kubelet's heartbeat client: "the minimum of the lease duration and status update frequency", 40 s and 10 s."""

ELECTION_SECONDS: Final = 5.0
"""client-go's leader election: a client timeout of half the RenewDeadline of 10 s."""


class Probe(Struct, frozen=True, kw_only=True):
    """One request. ``what`` it is about, and ``because`` of what it matters; ``seconds``: how long its sender waits.

    ``anywhere``: ``namespace`` stands for any namespace, so it cannot be excluded.
    """

    what: str
    because: str
    essential: bool
    operation: str
    resource: GroupVersionResource
    kind: GroupVersionKind
    sub_resource: str
    namespace: str
    name: str
    user: UserInfo
    object: Mapping[str, Any]
    seconds: float = REQUEST_SECONDS
    anywhere: bool = False

    @property
    def excludable(self) -> bool:
        """Whether excluding its namespace keeps it from the gateway."""
        return bool(self.namespace) and not self.anywhere and self.resource.resource != "namespaces"

    def __str__(self) -> str:
        """``CREATE pods in kube-system (cluster DNS)``."""
        resource = f"{self.resource.resource}.{self.resource.group}" if self.resource.group else self.resource.resource
        sub = f"/{self.sub_resource}" if self.sub_resource else ""
        place = f" in {self.namespace}" if self.excludable else ""
        about = "" if self.what == resource else f" ({self.what})"
        return f"{self.operation} {resource}{sub}{place}{about}"

    def request(self) -> Request:
        """The AdmissionRequest that a webhook would be sent."""
        has_object, has_old = self.operation != "DELETE", self.operation != "CREATE"
        members: dict[str, Any] = {
            "uid": "00000000-0000-0000-0000-000000000000",
            "kind": self.kind,
            "resource": self.resource,
            "requestKind": self.kind,
            "requestResource": self.resource,
            "name": self.name,
            "operation": self.operation,
            "userInfo": {"username": self.user.username, "groups": self.user.groups},
            "object": self.object if has_object else None,
            "oldObject": self.object if has_old else None,
            "dryRun": False,
            "options": None,
        }
        if self.sub_resource:
            members |= {"subResource": self.sub_resource, "requestSubResource": self.sub_resource}
        if self.namespace:
            members["namespace"] = self.namespace
        return Request(
            "admission.k8s.io/v1", {name: msgspec.Raw(msgspec.json.encode(each)) for name, each in members.items()}
        )


# ------------------------------------------------------------- who sends them, as kube-apiserver authenticates them

NODE_NAME: Final = "node-1"

_AUTHENTICATED: Final = "system:authenticated"


def _user(name: str, *groups: str) -> UserInfo:
    return UserInfo(username=name, groups=[*groups, _AUTHENTICATED])


KUBELET: Final = _user(f"system:node:{NODE_NAME}", "system:nodes")
SCHEDULER: Final = _user("system:kube-scheduler")
CONTROLLER_MANAGER: Final = _user("system:kube-controller-manager")
API_SERVER: Final = _user("system:apiserver", "system:masters")
ADMINISTRATOR: Final = _user("kubernetes-admin", "system:masters")


def controller(name: str) -> UserInfo:
    """A controller of the controller manager, under ``--use-service-account-credentials``, as kubeadm sets it."""
    accounts = "system:serviceaccounts"
    return _user(f"system:serviceaccount:kube-system:{name}", accounts, f"{accounts}:kube-system")
