"""What a policy, a worker and an entry are: bytes in, a configuration and its errors out."""

from gateway.policies.configuration import load
from gateway.policies.document import SourceText
from gateway.policies.model import (
    EVERYTHING,
    Configuration,
    ConfigurationError,
    FailurePolicy,
    GrpcTarget,
    MatchPolicy,
    Phase,
    Place,
    Policy,
    ReinvocationPolicy,
    Requirement,
    Rule,
    Scope,
    Selector,
    SideEffects,
    Worker,
)

__all__ = [
    "EVERYTHING",
    "Configuration",
    "ConfigurationError",
    "FailurePolicy",
    "GrpcTarget",
    "MatchPolicy",
    "Phase",
    "Place",
    "Policy",
    "ReinvocationPolicy",
    "Requirement",
    "Rule",
    "Scope",
    "Selector",
    "SideEffects",
    "SourceText",
    "Worker",
    "load",
]
