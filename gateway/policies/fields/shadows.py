"""``shadow``: a second call after the answer has left, whose result is compared and never applied.

A shadow is put the policy's own question: the same phase, inputs and writes. So it is a policy itself, which stands in
no chain, and differs in the worker, the policy and the settings. What becomes of its verdict is
nothing: mode, failurePolicy, cache and the like do not apply to it.
"""

from msgspec.structs import replace

from gateway.policies.model import FailurePolicy, Mode, OnConflict, Policy, ReinvocationPolicy

_MARK = " (shadow)"
"""Behind the name of its policy, in logs: no policy's own name has blanks."""


def shadow_of(policy: Policy) -> Policy | None:
    """The policy as its shadow is called; None if it has no shadow, or an error, with which it is not called."""
    shadow = policy.shadow
    if shadow is None or policy.fault is not None:
        return None
    return replace(
        policy,
        name=policy.name + _MARK,
        worker=shadow.worker,
        policy=shadow.policy,
        settings=shadow.settings,
        shadow=None,
        # By itself in front of the object, as the comparison wants it: what it would change is seen, and no more.
        mode=Mode.ENFORCE,
        failure_policy=FailurePolicy.FAIL,
        reinvocation_policy=ReinvocationPolicy.NEVER,
        on_conflict=OnConflict.ALLOW,
        cache=None,
    )
