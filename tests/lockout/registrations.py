"""What `doctor` examines, from policies as they are written in files."""

import json

from gateway.lockout.registration import examine_registration
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.policies.workers.targets import ServiceReference
from gateway.registration.entries import make_entries
from gateway.registration.webhook_configurations import Registrar, register

GROUP = "admission-gateway.dev/v1alpha1"
SERVICE = ServiceReference(namespace="admission-gateway", name="gateway")


def rule(resource, *, group="", version="v1", operations=("*",), scope="*"):
    lists = {"operations": operations, "apiGroups": [group], "apiVersions": [version], "resources": [resource]}
    return {name: list(values) for name, values in lists.items()} | {"scope": scope}


def policy(name="p", *rules, **fields):
    """One of worker ``w``; on everything, if it has no rules."""
    everything = rule("*/*", group="*", version="*")
    return {
        "name": f"{name}.example.com",
        "worker": "w",
        "rules": list(rules or (everything,)),
        "sideEffects": "None",
    } | fields


def examined(*validating, mutating=(), targets=None, registrar=None, **options):
    """The examination of these policies; ``targets``: of workers that are not on this machine."""
    workers = {"w": "dns:///localhost:50051"} | (targets or {})
    documents = [
        {"kind": "Worker", "metadata": {"name": name}, "spec": {"grpc": {"target": target}}}
        for name, target in workers.items()
    ]
    documents += [
        {"kind": f"{phase}PolicyConfiguration", "metadata": {"name": "team"}, "policies": list(policies)}
        for phase, policies in (("Mutating", mutating), ("Validating", validating))
    ]
    text = "\n".join(json.dumps({"apiVersion": GROUP} | each) for each in documents)
    configuration = load([SourceText(name="p.json", content=text.encode())])
    assert configuration.errors == ()
    registrar = Registrar(**({"service": SERVICE} | (registrar or {})))
    entries = make_entries(configuration)
    return examine_registration(configuration, entries, register(entries, registrar), registrar, **options)


def found(examination):
    """Severity and code of each finding."""
    return [(each.severity.value, each.code.value) for each in examination.findings]
