"""The sample default-resources, and the quantities that it compares."""

import copy
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import Allow, InvalidSettingsError
from admission_worker.samples.quantities import LARGEST, quantity
from workers.python.tests.reviews import DEPLOYMENT, JOB, POD, TEMPLATED, judge, mutate, recorded, request

SETTINGS = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": 1, "memory": "1Gi"}}


def _after(resources, settings=SETTINGS):
    container = {"name": "c"} if resources is ... else {"name": "c", "resources": resources}
    result, warnings = mutate("default-resources", request(spec={"containers": [container]}), settings)
    return result["spec"]["containers"][0].get("resources"), warnings


FULL = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize("resources", [..., None, {}, {"requests": {}}, {"requests": None, "limits": {}}])
def test_a_container_without_resources_gets_all_defaults(resources):
    """However their absence is written."""
    assert _after(resources) == (FULL, ())


@pytest.mark.parametrize(
    ("resources", "expected", "warnings"),
    [
        (FULL, FULL, []),
        (
            {"requests": {"cpu": "2m"}, "claims": [{"name": "gpu"}]},
            {
                "requests": {"cpu": "2m", "memory": "128Mi"},
                "limits": {"cpu": "1", "memory": "1Gi"},
                "claims": [{"name": "gpu"}],
            },
            [],
        ),
        (
            {"limits": {"cpu": "50m"}},
            {"limits": {"cpu": "50m", "memory": "1Gi"}, "requests": {"memory": "128Mi"}},
            ["spec.containers[0]: default cpu request 100m exceeds its limit 50m: not set"],
        ),
        (
            {"requests": {"memory": "2Gi"}},
            {"requests": {"memory": "2Gi", "cpu": "100m"}, "limits": {"cpu": "1"}},
            ["spec.containers[0]: default memory limit 1Gi is below its request 2Gi: not set"],
        ),
        (
            {"limits": {"cpu": "0.1", "memory": "134217728"}},
            {"limits": {"cpu": "0.1", "memory": "134217728"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            [],
        ),
        (
            {"requests": {"cpu": "1e0", "memory": "1024Mi"}},
            {"requests": {"cpu": "1e0", "memory": "1024Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            [],
        ),
        (
            {"limits": {"memory": "1e8"}},
            {"limits": {"memory": "1e8", "cpu": "1"}, "requests": {"cpu": "100m"}},
            ["spec.containers[0]: default memory request 128Mi exceeds its limit 1e8: not set"],
        ),
    ],
)
def test_a_default_never_contradicts_what_is_there(resources, expected, warnings):
    """Missing ones are added; one that would make a request exceed a limit is left out, with a warning."""
    assert _after(resources) == (expected, tuple(warnings))


@pytest.mark.parametrize("kind", TEMPLATED, ids=lambda kind: kind["kind"])
def test_containers_and_init_containers_of_every_kind_are_completed(kind):
    """Ephemeral containers cannot have resources."""
    spec = {place: [{"name": place}] for place in ("initContainers", "containers", "ephemeralContainers")}
    result, _ = mutate("default-resources", request(kind, spec=spec), SETTINGS)
    assert str(result).count("'cpu': '100m'") == 2
    assert "'ephemeralContainers': [{'name': 'ephemeralContainers'}]" in str(result)


def test_a_recorded_pod_is_completed():
    """As kube-apiserver sends it: with empty resources."""
    result, _ = mutate("default-resources", recorded("pod-create.0m"), SETTINGS)
    assert result["spec"]["containers"][0]["resources"] == FULL


@pytest.mark.parametrize(
    "name",
    [
        "kubectl-label.0m",
        "kubectl-rollout-restart.0m",
        "kubectl-set-image.0m",
        "pod-status-patch.0m",
        "pod-ephemeralcontainers.0m",
        "deploy-scale-put.0m",
        "cm-delete.0m",
        "pod-eviction.0m",
    ],
)
def test_what_a_recorded_update_does_not_touch_stays(name):
    """Setting a label or an image adds no resources, and so causes no rollout and no refusal."""
    admission = recorded(name)
    result, _ = mutate("default-resources", admission, SETTINGS)
    assert result == admission["object"]


@pytest.mark.parametrize("kind", [POD, DEPLOYMENT, JOB], ids=lambda kind: kind["kind"])
def test_an_update_completes_what_it_brings(kind):
    """A container that is new, or whose resources it changes."""
    old = {"containers": [{"name": "a"}, {"name": "b", "resources": {}}]}
    new = {
        "containers": [
            {"name": "a", "image": "x"},
            {"name": "b", "resources": {"requests": {"cpu": "1m"}}},
            {"name": "c"},
        ]
    }
    admission = request(kind, spec=new, old=old)
    answer = judge("default-resources", admission, SETTINGS)
    assert {operation["path"].split("/containers/")[1][0] for operation in answer.change.value} == {"1", "2"}
    mutate("default-resources", admission, SETTINGS)


def test_a_pod_with_resources_of_its_own_is_left_alone():
    """What its containers share is the Pod's author's to divide."""
    spec = {"resources": {"limits": {"cpu": "1"}}, "containers": [{"name": "c"}]}
    admission = request(spec=spec)
    assert mutate("default-resources", admission, SETTINGS)[0] == admission["object"]


@pytest.mark.parametrize(
    ("settings", "pointers"),
    [
        ({"requests": {"cpu": "lots"}, "limits": {"memory": "1Xi"}}, ["/requests/cpu", "/limits/memory"]),
        ({"requests": {"cpu": "-1"}}, ["/requests/cpu"]),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1999m"}}, ["/requests/cpu"]),
        ({"requests": {"nvidia.com/gpu": 1}}, ["/requests"]),
        ({"limits": {"cpu": True}}, ["/limits/cpu"]),
        ({"request": {}}, ["/request"]),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, pointers):
    """What is no quantity, what contradicts itself, and what cannot be overcommitted."""
    with pytest.raises(InvalidSettingsError) as error:
        judge("default-resources", request(spec={}), settings)
    assert [one.pointer for one in error.value.errors] == pointers


QUANTITIES = st.one_of(
    st.builds("{}{}".format, st.integers(0, 4000), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e2"])),
    st.sampled_from(["0.5", "1.", ".25", "1E", "1E3", "5e-3"]),
)
MAYBE = st.none() | st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), QUANTITIES, max_size=3)


def _fits(resources):
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return all(quantity(value) <= quantity(limits.get(name, value)) for name, value in requests.items())


@pytest.mark.property
@given(MAYBE, MAYBE, MAYBE, MAYBE)
def test_defaults_keep_requests_within_limits(requests, limits, default_requests, default_limits):
    """Of a container whose requests fit its limits they fit afterwards; nothing is overwritten; a second run adds
    nothing."""
    settings = {"requests": _known(default_requests), "limits": _known(default_limits)}
    resources = {"requests": requests, "limits": limits}
    if not _fits(settings) or not _fits(resources):
        return
    before = copy.deepcopy(resources)
    after, warnings = _after(resources, settings)
    assert _fits(after)
    for kind in ("requests", "limits"):
        had, has = before[kind] or {}, after.get(kind) or {}
        assert had.items() <= has.items()
        left_out = settings[kind].keys() - has.keys()
        assert all(any(f"default {name} {kind[:-1]}" in warning for warning in warnings) for name in left_out)


def _known(defaults):
    return {name: value for name, value in (defaults or {}).items() if name in {"cpu", "memory"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("100m", Fraction(1, 10)),
        ("1u", Fraction(1, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("1k", 1000),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ki", 1024),
        ("1Mi", 2**20),
        ("1.5Gi", 3 * 2**29),
        ("1Ti", 2**40),
        ("1Pi", 2**50),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("1E+2", 100),
        (2, 2),
        (0.5, Fraction(1, 2)),
        (1e-7, Fraction(1, 10**7)),
        ("9223372036854775807", LARGEST),
        ("9223372036854775808", LARGEST),
        ("100E", LARGEST),
        ("1e999999999", LARGEST),
        ("1e-999999999", Fraction(1, 10**9)),
        ("0.1n", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        ("0e999999999", 0),
    ],
)
def test_a_quantity_has_its_exact_value(text, value):
    """All three forms of suffix; capped at 2^63-1, rounded up at a billionth."""
    assert quantity(text) == value


NO_QUANTITIES = [
    *("", "m", ".", "1 ", " 1", "1mi", "1KI", "1ki", "1e", "1e1.5", "1_000", "٣", "0x1", "1Ki1", "--1", "inf", "nan"),
    True,
    "9" * 129,
]


@pytest.mark.parametrize("text", NO_QUANTITIES)
def test_what_is_no_quantity_is_refused(text):
    """Python's own ideas of a number included."""
    with pytest.raises(ValueError, match="is no quantity"):
        quantity(text)


def test_what_is_no_quantity_in_an_object_changes_nothing():
    """The API server refuses such an object anyway; the policy must not break before it does."""
    answer = judge(
        "default-resources",
        request(spec={"containers": [{"name": "c", "resources": {"limits": {"cpu": {}}}}]}),
        SETTINGS,
    )
    assert isinstance(answer, Allow)
