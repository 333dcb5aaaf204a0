"""Who sends what a cluster lives by: users and groups, as kube-apiserver authenticates them."""

from typing import Final

from gateway.review.request import UserInfo

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
