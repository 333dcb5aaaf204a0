"""The sample policies that the project ships."""

from pathlib import Path

from gateway.policies.model import Phase
from gateway.sources.loading import load_configuration

EXAMPLES = Path(__file__).parents[2] / "examples" / "policies"


def test_samples():
    """The samples load without an error or a warning, and are those of the sample worker."""
    loaded = load_configuration([EXAMPLES])
    assert (loaded.errors, loaded.warnings, loaded.fatal) == ((), (), False)
    assert [policy.policy for policy in loaded.policies(Phase.MUTATING)] == [
        "default-labels",
        "default-resources",
        "image-registry",
        "sidecar",
    ]
    assert [policy.policy for policy in loaded.policies(Phase.VALIDATING)] == ["required-labels", "no-privileged"]
    assert {policy.worker for policy in loaded.mutating + loaded.validating} == set(loaded.workers) == {"samples"}


def test_samples_leave_the_system_alone():
    """No sample policy is about kube-system."""
    loaded = load_configuration([EXAMPLES])
    for policy in loaded.mutating + loaded.validating:
        (requirement,) = policy.namespace_selector.requirements
        assert (requirement.key, requirement.operator) == ("kubernetes.io/metadata.name", "NotIn")
        assert "kube-system" in requirement.values
