"""The sample sidecar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import Allow, InvalidSettingsError
from workers.python.tests.reviews import DEPLOYMENT, all_recorded, judge, mutate, recorded, request

PROXY = {"name": "proxy", "image": "registry.example.com/proxy:1", "ports": [{"containerPort": 15001}]}
SETTINGS = {"container": PROXY}
NATIVE = {"container": PROXY | {"restartPolicy": "Always"}}


def test_a_recorded_pod_gets_its_sidecar_once():
    """Behind the containers that are there; a second run adds none."""
    admission = recorded("pod-create.0m")
    result, warnings = mutate("sidecar", admission, SETTINGS)
    assert result["spec"]["containers"] == [*admission["object"]["spec"]["containers"], PROXY]
    assert warnings == ()


@pytest.mark.parametrize("init", [None, [], [{"name": "setup"}]])
def test_a_restartable_sidecar_is_an_init_container(init):
    """Kubernetes' own kind of sidecar has its place behind the init containers."""
    spec = {"containers": [{"name": "c"}]} | ({} if init is None else {"initContainers": init})
    result, _ = mutate("sidecar", request(spec=spec), NATIVE)
    assert result["spec"]["initContainers"] == [*(init or []), NATIVE["container"]]
    assert result["spec"]["containers"] == [{"name": "c"}]


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({"containers": [{"name": "c"}, {"name": "proxy", "image": "own"}]}, False),
        ({"initContainers": [{"name": "proxy", "restartPolicy": "Always"}], "containers": [{"name": "c"}]}, False),
        ({"initContainers": [{"name": "proxy"}], "containers": [{"name": "c"}]}, True),
    ],
)
@pytest.mark.parametrize("settings", [SETTINGS, NATIVE])
def test_a_name_that_is_taken_keeps_the_sidecar_out(spec, warned, settings):
    """Names are unique over all containers; one that is no sidecar is worth a warning."""
    admission = request(spec=spec)
    result, warnings = mutate("sidecar", admission, settings)
    assert result == admission["object"]
    assert bool(warnings) == warned


@pytest.mark.parametrize(
    ("annotations", "injected"),
    [
        ({}, True),
        (None, True),
        ({"sidecar.admission-gateway.dev/inject": "true"}, True),
        ({"sidecar.admission-gateway.dev/inject": "false"}, False),
        ({"kubernetes.io/config.mirror": "0123"}, False),
        ({"other": "false"}, True),
    ],
)
def test_annotations_keep_it_out(annotations, injected):
    """Mirror Pods cannot be changed, and an author may opt out."""
    admission = request(spec={"containers": [{"name": "c"}]}, metadata={"annotations": annotations})
    result, _ = mutate("sidecar", admission, SETTINGS)
    assert (len(result["spec"]["containers"]) == 2) == injected


def test_the_annotation_is_the_operators_choice():
    """One of the team's own opts out, and the default no longer does."""
    settings = SETTINGS | {"annotation": "team.example.com/proxy"}
    for key, injected in (("team.example.com/proxy", False), ("sidecar.admission-gateway.dev/inject", True)):
        admission = request(spec={"containers": [{"name": "c"}]}, metadata={"annotations": {key: "false"}})
        result, _ = mutate("sidecar", admission, settings)
        assert (len(result["spec"]["containers"]) == 2) == injected


def test_only_the_creation_of_pods_is_touched():
    """Of all recorded traffic: a Pod's containers cannot be added later, and a Deployment's Pods are created too."""
    for name, admission in all_recorded("mutating").items():
        answer = judge("sidecar", admission, SETTINGS)
        created = (
            admission["operation"] == "CREATE"
            and admission["resource"]["resource"] == "pods"
            and "subResource" not in admission
        )
        assert isinstance(answer, Allow)
        assert (answer.change is not None) == created, name
    assert judge("sidecar", request(DEPLOYMENT, spec={"containers": []}), SETTINGS) == Allow()


@pytest.mark.parametrize("containers", [{}, {"containers": None}, {"containers": [None, 5]}])
def test_an_odd_pod_breaks_nothing(containers):
    """Whatever the Pod looks like, the patch applies."""
    result, _ = mutate("sidecar", request(spec=containers), SETTINGS)
    assert result["spec"]["containers"][-1] == PROXY


@pytest.mark.parametrize(
    ("settings", "pointers"),
    [
        ({}, ["/container"]),
        ({"container": {}}, ["/container/name", "/container/image"]),
        ({"container": {"name": "", "image": 5}}, ["/container/name", "/container/image"]),
        ({"container": PROXY | {"restartPolicy": "Never"}}, ["/container/restartPolicy"]),
        ({"container": PROXY, "volumes": []}, ["/volumes"]),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, pointers):
    """A container has a name and an image."""
    with pytest.raises(InvalidSettingsError) as error:
        judge("sidecar", request(spec={}), settings)
    assert [one.pointer for one in error.value.errors] == pointers


CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b", "proxy"])}, optional={"restartPolicy": st.just("Always")}
    ),
    max_size=3,
)


@pytest.mark.property
@given(st.none() | CONTAINERS, st.none() | CONTAINERS, st.sampled_from([SETTINGS, NATIVE]))
def test_afterwards_its_name_is_there_once_more_at_most(containers, init, settings):
    """It is added where its name was nowhere, and nothing else changes."""
    spec = {name: value for name, value in (("containers", containers), ("initContainers", init)) if value is not None}
    admission = request(spec=spec)
    result, _ = mutate("sidecar", admission, settings)
    names = [container["name"] for place in (init, containers) for container in place or ()]
    after = [container for place in ("initContainers", "containers") for container in result["spec"].get(place) or ()]
    assert len(after) == len(names) + ("proxy" not in names)
