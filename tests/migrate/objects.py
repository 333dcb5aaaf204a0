"""Objects that a cluster has before the migration."""


def service(namespace, name, *, app, port):
    """A Service that leads to the pods of an app."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": {"app": app}, "ports": [{"name": "https", "port": port}]},
    }


GATEWAY = service("admission-gateway", "gateway", app="gateway", port=8443)
