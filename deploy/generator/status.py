"""The status of an object of the gateway's kinds, and the columns that `kubectl get` prints of it."""

from typing import Final

from deploy.generator.schemas import Schema, array, mapping, text, words
from gateway.cluster.policy_status import ENFORCED, INVALID, MAX_MESSAGE, UNAVAILABLE

MAX_REPLICAS: Final = 100
"""Replicas that report: an entry takes some 300 bytes, so 30 KB of the 1.5 MB of an object."""

MAX_CONDITIONS: Final = 8

COLUMNS: Final = [
    {"name": "Accepted", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Accepted")].status'},
    {"name": "Enforced", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Enforced")].status'},
    {"name": "Reason", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Enforced")].reason'},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {
        "name": "Message",
        "type": "string",
        "priority": 1,
        "jsonPath": '.status.conditions[?(@.type=="Enforced")].message',
    },
]


def status() -> Schema:
    """``status``."""
    return mapping(
        "What the gateways report.",
        {
            "observedGeneration": _generation("The generation that all replicas have looked at."),
            "conditions": array(
                "Accepted: the object has no error. Enforced: all replicas use this generation.",
                mapping("", _condition(), required=["type", "status", "lastTransitionTime", "reason", "message"]),
                kind="map",
                keys=["type"],
                maxItems=MAX_CONDITIONS,
            ),
            "replicas": array(
                "What each replica of the gateway reports of itself.",
                mapping("", _replica(), required=["name", "observedGeneration", "reason"]),
                kind="map",
                keys=["name"],
                maxItems=MAX_REPLICAS,
            ),
        },
    )


def _condition() -> dict[str, Schema]:
    """metav1.Condition."""
    return {
        "type": text(maxLength=316),
        "status": words("", ("True", "False", "Unknown")),
        "observedGeneration": _generation(""),
        "lastTransitionTime": text(format="date-time"),
        "reason": text(minLength=1, maxLength=1024),
        "message": text(maxLength=32768),
    }


def _replica() -> dict[str, Schema]:
    return {
        "name": text("HOST:PORT; the host is its pod's name.", maxLength=253),
        "observedGeneration": _generation("The generation that it has looked at."),
        "enforcedGeneration": _generation(
            "The generation that it uses; absent: not this one, but perhaps an earlier one."
        ),
        "reason": words("", (ENFORCED, INVALID, UNAVAILABLE)),
        "message": text("Why it does not use the generation that it has looked at.", maxLength=MAX_MESSAGE),
    }


def _generation(description: str) -> Schema:
    made: Schema = {"type": "integer", "format": "int64", "minimum": 0}
    return ({"description": description} if description else {}) | made
