"""Reviews of Deployments and Pods that make each handler of docs/migrate/controller-runtime.md say all that it can."""

import copy
import json

from tests.traffic import recording

OWNER, CREATOR = "example.com/owner", "example.com/created-by"


def reviews():
    """The bodies, in bytes: as a real kube-apiserver sent them, and with changes."""
    names = ("deploy-create.1v", "deploy-patch-strategic.1v", "deploy-delete-orphan.1v", "pod-create.1v")
    created, scaled, removed, pod = (recording(name).body for name in names)
    return [
        created,
        scaled,
        removed,
        pod,
        *(_with(created, object={"spec": {"replicas": replicas}}) for replicas in (0, 10, 11, 2_000_000_000)),
        *(
            _with(created, object={"metadata": {"annotations": notes}})
            for notes in (None, {}, {OWNER: "a"}, {"b": "/~"})
        ),
        _with(created, name=None, object={"metadata": {"name": None, "generateName": "g-"}, "spec": {"replicas": 12}}),
        _with(scaled, object=_annotated(OWNER, "a"), oldObject=_annotated(OWNER, "b")),
        _with(scaled, object=_annotated(OWNER, "a"), oldObject=_annotated(OWNER, "a")),
        _with(scaled, object=_annotated(OWNER, "a") | {"spec": {"replicas": 11}}),
        *(_with(pod, object=_annotated(CREATOR, name)) for name in ("mallory", "", "admin")),
        _with(pod, object={"metadata": {"annotations": {"b": "c"}}}),
    ]


def _annotated(key, value):
    return {"metadata": {"annotations": {key: value}}}


def _with(body, **changes):
    """The review with the request changed as a merge patch says."""
    review = json.loads(body)
    review["request"] = _merged(review["request"], changes)
    return json.dumps(review).encode()


def _merged(old, changes):
    if not isinstance(changes, dict):
        return changes
    merged = copy.deepcopy(old) if isinstance(old, dict) else {}
    for name, value in changes.items():
        merged[name] = _merged(merged.get(name), value)
    return {name: value for name, value in merged.items() if value is not None}
