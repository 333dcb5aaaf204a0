"""The environment of matchConditions, and conditions."""

from types import MappingProxyType

import pytest

from gateway.cel.authorization import AuthorizationCheck
from gateway.cel.condition import Condition
from gateway.cel.match_conditions import compile_condition, environment
from gateway.cel.program import EvaluationError, NeedsAuthorization


class Variables:
    """Those of a request; each notes that it was read."""

    def __init__(self, object_=None, old_object=None, request=None):
        self._values = {"object": object_, "old_object": old_object, "request": request or {}}
        self.read = []

    def __getattr__(self, name):
        self.read.append(name)
        return self._values[name]


@pytest.mark.parametrize(
    ("variable", "kind"),
    [
        ("object", "dyn"),
        ("oldObject", "dyn"),
        ("request", "kubernetes.AdmissionRequest"),
        ("request.kind", "kubernetes.GroupVersionKind"),
        ("request.resource.group", "string"),
        ("request.userInfo.groups", "list(string)"),
        ("request.userInfo.extra", "map(string, list(string))"),
        ("request.options", "dyn"),
        ("request.dryRun", "bool"),
        ("namespaceObject", "kubernetes.Namespace"),
        ("namespaceObject.metadata.labels", "map(string, string)"),
        ("authorizer", "kubernetes.authorization.Authorizer"),
        ("authorizer.requestResource", "kubernetes.authorization.ResourceCheck"),
    ],
)
def test_a_variable_has_the_type_that_kubernetes_declares(variable, kind):
    """And its members have theirs."""
    assert str(environment().compile(variable).result) == kind


@pytest.mark.parametrize("name", ["params", "variables", "request.uid", "request.object", "request.oldObject", "self"])
def test_what_kubernetes_does_not_declare_is_an_error(name):
    """Variables of other policies, and members that the request has elsewhere."""
    assert "undeclared reference" in (error := compile_condition(f"{name} == null").error) or "undefined field" in error


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        ("object.a == 1", ["object"]),
        ("oldObject == null", ["old_object"]),
        ("has(request.name)", ["request"]),
        ("authorizer.requestResource.check('get').allowed()", ["request"]),
        ("authorizer.path('/').check('get').allowed()", []),
        ("namespaceObject == null", []),
        ("object == oldObject", ["object", "old_object"]),
    ],
)
def test_only_what_is_named_is_read(expression, read):
    """Each once."""
    variables = Variables({"a": 1})
    compile_condition(expression).evaluate(variables, {})
    assert variables.read == read


def test_there_is_no_namespace_object_for_webhooks():
    """It is declared, and null."""
    assert compile_condition("namespaceObject == null").evaluate(Variables(), {}).outcome is True


def test_the_request_may_be_any_mapping():
    """Expressions see a map."""
    request = MappingProxyType({"name": "x"})
    assert compile_condition("request.name == 'x'").evaluate(Variables(request=request), {}).outcome is True


def test_a_check_that_has_no_answer_is_needed():
    """For the resource of the request."""
    variables = Variables(request={"resource": {"resource": "pods"}, "name": "x"})
    outcome = compile_condition("authorizer.requestResource.check('get').allowed()").evaluate(variables, {}).outcome
    assert outcome == NeedsAuthorization(check=AuthorizationCheck(verb="get", resource="pods", name="x"))


def test_a_condition_is_compiled_once():
    """The same text is the same condition."""
    assert compile_condition("1 < 2") is compile_condition("1 < 2")


def test_a_condition_that_does_not_compile_is_its_error():
    """Nothing is read, and nothing costs."""
    variables = Variables()
    condition = compile_condition("nope")
    evaluation = condition.evaluate(variables, {})
    assert (evaluation.outcome, evaluation.cost) == (EvaluationError(message=condition.error), 0)
    assert variables.read == []


def test_a_condition_without_a_program_says_so():
    """One that was never compiled."""
    assert Condition(expression="x").evaluate(Variables(), {}).outcome == EvaluationError(message="not compiled")


def test_conditions_are_equal_by_text_and_error():
    """So that two loaded configurations can be compared."""
    compile_condition.cache_clear()
    one = compile_condition("1 < 2")
    compile_condition.cache_clear()
    other = compile_condition("1 < 2")
    assert one == other
    assert len({one, other, compile_condition("1 < 3")}) == 2
    assert one != "1 < 2"


def test_a_value_that_is_no_bool_is_an_error():
    """Where the checker was given another type than the value has."""
    variables = Variables(request={"dryRun": "yes"})
    assert compile_condition("request.dryRun").evaluate(variables, {}).outcome == EvaluationError(
        message="no such overload"
    )
