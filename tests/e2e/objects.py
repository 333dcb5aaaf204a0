"""Objects that tests create."""

_NEW_EACH_TIME = {"namespace", "uid", "creationTimestamp", "resourceVersion", "managedFields"}


def thing(name, spec, **metadata):
    """A custom resource with any members: its schema is "an object"."""
    api = {"apiVersion": "e2e.example.com/v1", "kind": "Thing"}
    return api | {"metadata": {"name": name} | metadata, "spec": spec}


def lasting(obj):
    """The object without what is new each time, where it is, and a status: a new object has none of its client's."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _NEW_EACH_TIME}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}


def namespace(name, **metadata):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name} | metadata}


def config_map(name="c", *, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name} | metadata, "data": data or {}}


def pod(name="p", **metadata):
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name} | metadata, "spec": spec}


def deployment(name="d"):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
