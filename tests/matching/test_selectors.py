"""Label selectors, and on whose labels they are judged."""

import pytest

from gateway.matching.outcomes import Matched, NeedsNamespace, NotMatched, Undecidable
from gateway.matching.pipeline import Facts
from gateway.policies.model import EVERYTHING, Requirement, Selector
from gateway.reasons import Reason
from tests.matching.lookup import matching
from tests.world import policy, request


def selector(key="env", operator="In", *values):
    return Selector(requirements=(Requirement(key=key, operator=operator, values=values),))


def judged(on, namespaces=None, current=None, **fields):
    chosen = policy("a", rules=(EVERYTHING,), **fields)
    facts = Facts(namespaces=namespaces or {})
    return matching(chosen, on, facts, current=None if current is None else lambda: current)


def labelled(**labels):
    return {"metadata": {"name": "p", "labels": labels}}


OPERATORS = [
    # operator, values, then: with env=prod, with env=dev, without env
    ("In", ("prod",), True, False, False),
    ("NotIn", ("prod",), False, True, True),
    ("Exists", (), True, True, False),
    ("DoesNotExist", (), False, False, True),
]


@pytest.mark.parametrize(("operator", "values", "prod", "dev", "without"), OPERATORS)
def test_operators(operator, values, prod, dev, without):
    """As metav1.LabelSelectorAsSelector: the negative ones match where the key is absent."""
    chosen = selector("env", operator, *values)
    for labels, expected in (({"env": "prod"}, prod), ({"env": "dev"}, dev), ({}, without)):
        assert isinstance(judged(request(labelled(**labels)), object_selector=chosen), Matched) is expected


def test_all_requirements_must_hold():
    """A selector is an "and"."""
    both = Selector(requirements=(*selector("a", "Exists").requirements, *selector("b", "Exists").requirements))
    assert isinstance(judged(request(labelled(a="1")), object_selector=both), NotMatched)
    assert isinstance(judged(request(labelled(a="1", b="1")), object_selector=both), Matched)


def test_object_or_old_object_is_enough():
    """Removing the label does not escape the policy."""
    update = request(labelled(), operation="UPDATE", oldObject=labelled(env="prod"))
    assert isinstance(judged(update, object_selector=selector("env", "In", "prod")), Matched)


def test_the_object_is_the_one_as_it_is_now():
    """After the policies before this one."""
    chosen = selector("env", "In", "prod")
    assert isinstance(judged(request(labelled()), current=labelled(env="prod"), object_selector=chosen), Matched)


@pytest.mark.parametrize("obj", [{"kind": "PodExecOptions"}, {"metadata": "odd"}])
def test_an_object_without_metadata_never_matches_a_selector(obj):
    """Not even a negative one; only the empty selector matches it."""
    assert isinstance(judged(request(obj), object_selector=selector("env", "DoesNotExist")), NotMatched)
    assert isinstance(judged(request(obj)), Matched)


LABELS = [
    # what stands there, what kube-apiserver's Unstructured.GetLabels makes of it
    ({"env": "prod", "x": None}, True),
    ({"env": "prod", "x": 7}, False),
    ({"env": ["prod"]}, False),
    (["env"], False),
    ("env", False),
    (None, False),
    (7, False),
]


@pytest.mark.parametrize(("labels", "selected"), LABELS)
def test_labels_of_a_wrong_type_are_read_as_kubernetes_reads_them(labels, selected):
    """A null is the empty string; anything else that is no string, and there are no labels at all."""
    on = request({"metadata": {"labels": labels}})
    assert isinstance(judged(on, object_selector=selector("env", "In", "prod")), Matched) is selected
    assert isinstance(judged(on, object_selector=selector("env", "DoesNotExist")), NotMatched) is selected


def test_a_null_label_is_the_empty_string():
    """ "null coercing"."""
    on = request({"metadata": {"labels": {"env": None}}})
    assert isinstance(judged(on, object_selector=selector("env", "In", "")), Matched)


# -------------------------------------------------------------------------------------------------- namespaces

PROD = selector("env", "In", "prod")


def test_the_namespaces_labels_are_called_for_and_then_used():
    """First the lack of them, then what they say."""
    assert judged(request(), namespace_selector=PROD) == NeedsNamespace(namespace="t")
    assert isinstance(judged(request(), {"t": {"env": "prod"}}, namespace_selector=PROD), Matched)
    assert isinstance(judged(request(), {"t": {"env": "dev"}}, namespace_selector=PROD), NotMatched)


def test_an_unknown_namespace_cannot_be_judged():
    """Not knowing is not allowing: kube-apiserver's own words, which failurePolicy cannot ignore, and our hint."""
    result = judged(request(), {"t": None}, namespace_selector=PROD)
    assert isinstance(result, Undecidable)
    assert (result.reason, result.message) == (Reason.NAMESPACE_UNKNOWN, 'namespaces "t" not found')
    assert result.details == {"name": "t", "kind": "namespaces"}
    assert "add a Namespace document" in result.hint
    assert not result.ignorable


def test_a_namespaces_request_that_names_no_namespace_cannot_be_judged():
    """There is nothing to look up: kube-apiserver always says the name there, or fails."""
    deleted = namespaces(operation="DELETE", object=None, namespace="", name="t")
    assert judged(deleted, {"t": {"env": "prod"}}, namespace_selector=PROD).reason is Reason.NAMESPACE_UNKNOWN


def test_a_cluster_scoped_request_always_matches_a_namespace_selector():
    """ "it is never exempted from admission webhook"."""
    node = request(resource={"group": "", "version": "v1", "resource": "nodes"}, namespace="")
    assert isinstance(judged(node, namespace_selector=PROD), Matched)


def namespaces(sub="", **members):
    return request(resource={"group": "", "version": "v1", "resource": "namespaces"}, subResource=sub, **members)


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_namespace_that_is_written_is_judged_by_its_own_new_labels(operation):
    """ "namespaceLister doesn't have the latest namespace yet"."""
    on = namespaces(object=labelled(env="prod"), operation=operation)
    assert isinstance(judged(on, namespace_selector=PROD), Matched)


@pytest.mark.parametrize(("sub", "operation"), [("", "DELETE"), ("finalize", "UPDATE"), ("status", "UPDATE")])
def test_a_namespace_that_is_deleted_is_judged_by_the_labels_it_has(sub, operation):
    """So are its subresources."""
    on = namespaces(sub, operation=operation, object=None)
    assert judged(on, namespace_selector=PROD) == NeedsNamespace(namespace="t")


def test_no_namespace_is_looked_up_for_a_policy_that_is_not_concerned():
    """kube-apiserver reports an unknown namespace only if the rules match."""
    assert isinstance(matching(policy("a", namespace_selector=PROD), namespaces()), NotMatched)
    unselected = judged(request(), object_selector=selector("x", "Exists"), namespace_selector=PROD)
    assert unselected == NotMatched(why="objectSelector")
