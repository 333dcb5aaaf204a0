"""The sample no-privileged."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import Allow, Deny
from workers.python.tests.reviews import CRON_JOB, DEPLOYMENT, POD, TEMPLATED, all_recorded, judge, recorded, request

LISTS = ("initContainers", "containers", "ephemeralContainers")


def _container(name="c", privileged=None, image="nginx"):
    context = {} if privileged is None else {"securityContext": {"privileged": privileged, "runAsUser": 0}}
    return {"name": name, "image": image, **context}


def test_no_recorded_request_is_privileged():
    """Real traffic passes: whatever kind, operation and subresource."""
    for name, admission in all_recorded().items():
        assert isinstance(judge("no-privileged", admission, {}), Allow), name


@pytest.mark.parametrize("kind", TEMPLATED, ids=lambda kind: kind["kind"])
@pytest.mark.parametrize("place", LISTS)
def test_a_privileged_container_is_found_in_every_list_of_every_kind(kind, place):
    """Init and ephemeral containers included, in Pods and in templates; named by its field."""
    spec = {
        "containers": [_container("a", privileged=False)],
        place: [_container("a"), _container("bad", privileged=True)],
    }
    answer = judge("no-privileged", request(kind, spec=spec), {})
    assert isinstance(answer, Deny)
    path = {"Pod": "spec", "PodTemplate": "template.spec", "CronJob": "spec.jobTemplate.spec.template.spec"}
    field = f"{path.get(kind['kind'], 'spec.template.spec')}.{place}[1]"
    assert [cause.field for cause in answer.causes] == [f"{field}.securityContext.privileged"]
    assert answer.message == f'privileged containers are not allowed: {field} ("bad", image "nginx")'


def test_all_of_them_are_named():
    """One denial with one cause for each container."""
    spec = {place: [_container(place[:4], privileged=True)] for place in LISTS}
    answer = judge("no-privileged", request(spec=spec), {})
    assert [cause.field.split(".")[1] for cause in answer.causes] == [f"{place}[0]" for place in LISTS]


@pytest.mark.parametrize(
    ("image", "globs", "allowed"),
    [
        ("registry.example.com/agents/cni:1.2", ["registry.example.com/agents/*"], True),
        ("registry.example.com/agents/deep/cni:1.2", ["registry.example.com/agents/*"], True),
        ("evil.example.com/registry.example.com/agents/cni", ["registry.example.com/agents/*"], False),
        ("cni:1.2", ["cni:1.?"], True),
        ("CNI:1.2", ["cni:*"], False),
        ("cni:1.2", ["other", "cni:[0-9].*"], True),
        ("cni", [], False),
    ],
)
def test_exempt_images_are_globs_over_the_image_as_written(image, globs, allowed):
    """A glob matches the whole image, slashes included, and upper and lower case are different."""
    answer = judge(
        "no-privileged",
        request(spec={"containers": [_container(privileged=True, image=image)]}),
        {"exemptImages": globs},
    )
    assert isinstance(answer, Allow) == allowed


def test_an_ephemeral_container_of_a_recorded_pod_is_judged():
    """kubectl debug --profile=sysadmin requests a privileged container in the subresource ephemeralcontainers."""
    admission = copy.deepcopy(recorded("pod-ephemeralcontainers.1v"))
    admission["object"]["spec"]["ephemeralContainers"][0]["securityContext"] = {"privileged": True}
    answer = judge("no-privileged", admission, {})
    assert [cause.field for cause in answer.causes] == ["spec.ephemeralContainers[0].securityContext.privileged"]


@pytest.mark.parametrize("kind", [POD, DEPLOYMENT, CRON_JOB], ids=lambda kind: kind["kind"])
def test_what_was_privileged_before_is_not_judged_again(kind):
    """An UPDATE that leaves an old container as it is may label or delete its Pod."""
    old = {"containers": [_container("old", privileged=True), _container("b")]}
    assert isinstance(judge("no-privileged", request(kind, spec=old, old=old), {}), Allow)


@pytest.mark.parametrize(
    "new",
    [
        [_container("old", privileged=True, image="other")],
        [_container("new", privileged=True)],
        [_container("old", privileged=True), _container("b", privileged=True)],
    ],
)
def test_an_update_that_brings_a_privileged_container_is_judged(new):
    """Another image, another container, or one that was not privileged before."""
    old = {"containers": [_container("old", privileged=True), _container("b")]}
    assert isinstance(judge("no-privileged", request(DEPLOYMENT, spec={"containers": new}, old=old), {}), Deny)


def test_an_exempt_image_cannot_be_exchanged_for_another():
    """A Pod's image can be updated: an exempt container must not become any other privileged one."""
    old = {"containers": [_container("a", privileged=True, image="agents/cni")]}
    new = {"containers": [_container("a", privileged=True, image="evil")]}
    assert isinstance(judge("no-privileged", request(spec=new, old=old), {"exemptImages": ["agents/*"]}), Deny)


def test_the_same_name_in_another_list_is_another_container():
    """An init container does not vouch for a container."""
    old = {"initContainers": [_container("a", privileged=True)], "containers": [_container("b")]}
    new = {"initContainers": [], "containers": [_container("a", privileged=True)]}
    assert isinstance(judge("no-privileged", request(DEPLOYMENT, spec=new, old=old), {}), Deny)


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_operations_that_bring_no_container_pass(operation):
    """What is deleted may have been privileged."""
    spec = {"containers": [_container(privileged=True)]}
    admission = request(spec=spec, old=spec, operation=operation)
    assert isinstance(judge("no-privileged", admission, {}), Allow)


def test_a_kind_of_another_group_is_not_kubernetes_own():
    """A custom Job of another group may hold anything at spec.template.spec."""
    kind = {"group": "batch.volcano.sh", "version": "v1alpha1", "kind": "Job"}
    assert isinstance(
        judge("no-privileged", request(kind, spec={"containers": [_container(privileged=True)]}), {}), Allow
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["spec", "template", "containers", "initContainers", "name", "image", "securityContext", "privileged"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@pytest.mark.property
@given(st.sampled_from(TEMPLATED), st.dictionaries(st.sampled_from(["spec", "template"]), JSON), JSON)
def test_whatever_an_object_looks_like_there_is_a_verdict(kind, new, old):
    """An object of any shape is allowed or denied, and no exception comes out."""
    admission = {
        "kind": kind,
        "operation": "UPDATE",
        "object": new,
        "oldObject": old if isinstance(old, dict) else None,
    }
    assert isinstance(judge("no-privileged", admission, {}), Allow | Deny)
