"""The CustomResourceDefinitions of the gateway's kinds, one file for each."""

from collections.abc import Mapping
from typing import Final

from deploy.generator.policies import MAX_POLICIES, policy_schema
from deploy.generator.schemas import Schema, array, mapping
from deploy.generator.status import COLUMNS, status
from deploy.generator.workers import worker_spec
from gateway.policies.model import Phase
from gateway.policies.objects import CONFIGURATION_KINDS, GROUP, VERSION, WORKER

_SHORT: Final[Mapping[str, str]] = {
    WORKER: "agworker",
    "MutatingPolicyConfiguration": "mpconf",
    "ValidatingPolicyConfiguration": "vpconf",
}
"""Not one that a widespread kind has already: `kubectl` takes the first API group that knows a short name."""

_CATEGORY: Final = "admission-gateway"
"""`kubectl get admission-gateway` lists the objects of all three kinds."""


def definitions() -> dict[str, Schema]:
    """The definition of each kind, by its name."""
    made = {WORKER: _definition(WORKER, {"spec": worker_spec()})}
    for kind, phase in CONFIGURATION_KINDS.items():
        order = "in this order" if phase is Phase.MUTATING else "in parallel"
        policies = array(
            f"Policies, each a webhook with a worker's name in place of clientConfig. They judge {order}.",
            policy_schema(phase),
            kind="map",
            keys=["name"],
            maxItems=MAX_POLICIES,
        )
        made[kind] = _definition(kind, {"policies": policies})
    return made


def _definition(kind: str, members: dict[str, Schema]) -> Schema:
    plural = f"{kind.lower()}s"
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": [_SHORT[kind]],
        "categories": [_CATEGORY],
    }
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": COLUMNS,
        "schema": {"openAPIV3Schema": mapping("", properties | members | {"status": status()}, required=members)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Cluster", "versions": [version]},
    }
