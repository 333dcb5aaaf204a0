"""``authorizer``: the check that an expression needs, and the use of its result."""

import pytest

from gateway.cel.authorization import Authorization, AuthorizationCheck
from gateway.cel.environment import Environment
from gateway.cel.libraries.authorizer import Authorizer, request_resource
from gateway.cel.program import EvaluationError, NeedsAuthorization

ENVIRONMENT = Environment({"a": "kubernetes.authorization.Authorizer", "s": "string"})


def outcome(expression, answers=None, text=""):
    return ENVIRONMENT.compile(expression).evaluate({"a": Authorizer(answers or {}), "s": text}).outcome


def check_of(expression):
    """The check that an expression needs the answer to."""
    found = outcome(expression)
    assert isinstance(found, NeedsAuthorization)
    return found.check


@pytest.mark.parametrize(
    ("expression", "check"),
    [
        ("a.path('/x').check('get').allowed()", AuthorizationCheck(verb="get", path="/x")),
        ("a.group('').resource('pods').check('list').allowed()", AuthorizationCheck(verb="list", resource="pods")),
        (
            "a.group('apps').resource('deployments').subresource('scale').namespace('n').name('x').check('get').allowed()",
            AuthorizationCheck(
                verb="get", group="apps", resource="deployments", subresource="scale", namespace="n", name="x"
            ),
        ),
        (
            "a.serviceAccount('ns', 'sa').path('/x').check('get').allowed()",
            AuthorizationCheck(verb="get", path="/x", service_account=("ns", "sa")),
        ),
        (
            "a.group('').resource('pods').fieldSelector('a=b').labelSelector('c=d').check('list').allowed()",
            AuthorizationCheck(verb="list", resource="pods", field_selector="a=b", label_selector="c=d"),
        ),
        (
            "a.group('').resource('pods').name('x').name('y').check('get').allowed()",
            AuthorizationCheck(verb="get", resource="pods", name="y"),
        ),
    ],
)
def test_what_is_asked_is_collected(expression, check):
    """The last word counts."""
    assert check_of(expression) == check


def test_a_check_can_be_built_before_it_is_asked():
    """There is no check until ``check``."""
    assert outcome("type(a.group('').resource('pods')) == type(1)") is False


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a.path('').check('get').allowed()", "path must not be empty"),
        ("a.path(' ').check('get').allowed()", "path must not be empty"),
        ("a.group('').resource('').check('get').allowed()", "resource must not be empty"),
        ("a.serviceAccount('ns', 'A').path('/').check('get').allowed()", "Invalid service account name"),
        ("a.serviceAccount('A', 'sa').path('/').check('get').allowed()", "Invalid service account namespace"),
        ("a == a", "no such overload"),
        ("a.path('/') == a.path('/')", "no such overload"),
    ],
)
def test_what_cannot_be_asked_is_an_error(expression, message):
    """And none of these can be compared."""
    assert outcome(expression) == EvaluationError(message=message)


CHECK = AuthorizationCheck(verb="get", path="/x")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Authorization(allowed=True, reason="rbac"), [True, "rbac", False, ""]),
        (Authorization(allowed=False, reason="no"), [False, "no", False, ""]),
        (Authorization(error="down"), [False, "", True, "down"]),
        (Authorization(allowed=True, error="down"), [True, "", True, "down"]),
    ],
)
def test_an_answer_is_allowed_or_not_or_an_error(answer, expected):
    """Never allowed and an error."""
    decision = "a.path('/x').check('get')"
    members = ("allowed", "reason", "errored", "error")
    assert [outcome(f"{decision}.{member}()", {CHECK: answer}) for member in members] == expected


@pytest.mark.parametrize(
    "macro",
    [
        *("[1, 2].exists_one(e, {})", "[1, 2].map(e, {})", "[1, 2].filter(e, {})"),
        *("{{'k': 1}}.transformMap(k, v, {})", "{{'k': 1}}.transformMap(k, v, {}, v)"),
        *("{{'k': 1}}.transformMapEntry(k, v, {{'x': {}}})", "[1].all(e, {})"),
    ],
)
def test_a_missing_answer_in_a_macro_is_asked_for(macro):
    """Before any error of another element."""
    question = "a.path('/x').check('get').allowed()"
    assert check_of(f"dyn({macro.format(question)}) == s") == CHECK


@pytest.mark.parametrize(
    ("request_", "check"),
    [
        (
            {"resource": {"group": "apps", "resource": "deployments"}, "namespace": "n", "name": "x"},
            AuthorizationCheck(verb="", group="apps", resource="deployments", namespace="n", name="x"),
        ),
        (
            {"requestResource": {"resource": "pods"}, "resource": {"resource": "other"}, "requestSubResource": "exec"},
            AuthorizationCheck(verb="", resource="pods", subresource="exec"),
        ),
        (
            {"resource": {"resource": "pods"}, "subResource": "log"},
            AuthorizationCheck(verb="", resource="pods", subresource="log"),
        ),
        ({}, AuthorizationCheck(verb="")),
    ],
)
def test_the_resource_of_a_request_is_the_one_that_was_asked_for(request_, check):
    """Before any conversion."""
    assert request_resource(Authorizer({}), request_).check == check
