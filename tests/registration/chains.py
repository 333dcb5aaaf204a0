"""Chains of policies as Hypothesis draws them, and requests to try rules with. Few words, so that they meet often."""

from itertools import product

from hypothesis import strategies as st

from gateway.cel.match_conditions import compile_condition
from gateway.matching.rules import matches
from gateway.policies.model import (
    Configuration,
    FailurePolicy,
    MatchCondition,
    MatchPolicy,
    Mode,
    Phase,
    Policy,
    ReinvocationPolicy,
    Requirement,
    Rule,
    Scope,
    Selector,
    SideEffects,
)
from gateway.review.request import GroupVersionResource

OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
GROUPS = ("", "apps", "extensions")
VERSIONS = ("v1", "v1beta1")
RESOURCES = ("pods", "deployments", "other")
SUB_RESOURCES = ("", "scale", "status")

REQUESTS = tuple(product(OPERATIONS, GROUPS, VERSIONS, RESOURCES, SUB_RESOURCES, (True, False)))
"""Operation, group, version, resource, subresource, whether it is in a namespace: all there are in this small world."""


def words(*choices):
    """A list as in a rule: the wildcard alone, or some of these."""
    return st.just(("*",)) | st.lists(st.sampled_from(choices), min_size=1, max_size=3, unique=True).map(tuple)


RULES = st.builds(
    Rule,
    operations=words(*OPERATIONS),
    api_groups=words(*GROUPS),
    api_versions=words(*VERSIONS),
    resources=st.sampled_from(
        [
            ("pods",),
            ("deployments",),
            ("pods", "deployments"),
            ("pods/status", "pods"),
            ("*",),
            ("*", "pods/scale"),
            ("pods/*",),
            ("*/scale",),
            ("*/scale", "deployments/*"),
            ("*/*",),
        ]
    ),
    scope=st.sampled_from(Scope),
)

SELECTORS = st.just(Selector()) | st.lists(
    st.sampled_from(
        [
            Requirement(key="team", operator="In", values=("a",)),
            Requirement(key="tier", operator="In", values=("1e3",)),
            Requirement(key="tier", operator="NotIn", values=("y", "z")),
            Requirement(key="example.com/on", operator="Exists"),
        ]
    ),
    max_size=3,
).map(lambda requirements: Selector(requirements=tuple(requirements)))

EXPRESSIONS = ("true", "request.name == 'a'", "object != null // as long as there is one")

CONDITIONS = st.lists(
    st.builds(
        MatchCondition,
        name=st.sampled_from(["a", "b", "admission-gateway.dev/exclusions"]),
        condition=st.sampled_from([compile_condition(text) for text in EXPRESSIONS]),
    ),
    max_size=2,
    unique_by=lambda condition: condition.name,
).map(tuple)

NAMES = st.sampled_from(["a.b.c", "b.b.c", "chain.a.b.c", "group.a.b.c", "a.b.c.x", f"{'n' * 240}.b.c", "a.b.c.x.y"])


def policy(name, *, phase=Phase.MUTATING, **fields):
    """A policy on pods; whatever is not said is as Kubernetes' defaults have it."""
    rules = (Rule(operations=("CREATE",), api_groups=("",), api_versions=("v1",), resources=("pods",)),)
    defaults = {"phase": phase, "configuration": "x", "index": 0, "worker": "w", "policy": "p", "rules": rules}
    return Policy(name=name, **(defaults | fields))


def rule(text):
    """``OPERATIONS GROUPS VERSIONS RESOURCES [SCOPE]``, each list with commas; the core group is ``core``."""
    operations, groups, versions, resources, *scope = text.split()
    return Rule(
        operations=tuple(operations.split(",")),
        api_groups=tuple("" if group == "core" else group for group in groups.split(",")),
        api_versions=tuple(versions.split(",")),
        resources=tuple(resources.split(",")),
        scope=Scope(*scope) if scope else Scope.ALL,
    )


def on(*texts):
    """Several such rules."""
    return tuple(map(rule, texts))


@st.composite
def chains(draw, phase):
    """A chain in its order, with namesakes among the isolated ones as v1beta1 permits them."""
    chain = []
    for configuration in draw(st.lists(st.sampled_from(["x", "x.y", "z" * 253]), unique=True, max_size=3).map(sorted)):
        names = draw(st.lists(NAMES, max_size=4))
        for index, name in enumerate(names):
            namesake = name in names[:index]
            never = phase is Phase.VALIDATING
            reinvocation = ReinvocationPolicy.NEVER if never else draw(st.sampled_from(ReinvocationPolicy))
            chain.append(
                policy(
                    name,
                    phase=phase,
                    configuration=configuration,
                    index=index,
                    rules=tuple(draw(st.lists(RULES, max_size=2))),
                    namespace_selector=draw(SELECTORS),
                    object_selector=draw(SELECTORS),
                    match_conditions=draw(CONDITIONS),
                    match_policy=draw(st.sampled_from(MatchPolicy)),
                    failure_policy=draw(st.sampled_from(FailurePolicy)),
                    reinvocation_policy=reinvocation,
                    timeout=draw(st.sampled_from([0.5, 1.0, 10.0, 30.0])),
                    side_effects=draw(st.sampled_from(SideEffects)),
                    mode=draw(st.sampled_from(Mode)),
                    isolate=namesake or draw(st.booleans()),
                    namesake=namesake,
                )
            )
    return tuple(chain)


CONFIGURATIONS = st.builds(Configuration, mutating=chains(Phase.MUTATING), validating=chains(Phase.VALIDATING))


def matched(rules, request):
    """Whether any of the rules matches the request directly, as ``gateway.matching`` judges rules."""
    operation, group, version, resource, sub_resource, namespaced = request
    at = GroupVersionResource(group=group, version=version, resource=resource)
    return any(matches(rule, operation, at, sub_resource, namespaced=namespaced) for rule in rules)
