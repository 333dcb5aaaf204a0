"""The sample image-registry."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import InvalidSettingsError
from admission_worker.samples.image_registry import normalized, rewritten
from workers.python.tests.reviews import TEMPLATED, judge, mutate, recorded, request

HUB = {"from": "docker.io", "to": "registry.example.com/mirror"}
DIGEST = "@sha256:" + "0123456789abcdef" * 4
LISTS = ("initContainers", "containers", "ephemeralContainers")


@pytest.mark.parametrize(
    ("image", "moved"),
    [
        ("nginx", "registry.example.com/mirror/library/nginx"),
        ("nginx:1.27", "registry.example.com/mirror/library/nginx:1.27"),
        (f"nginx{DIGEST}", f"registry.example.com/mirror/library/nginx{DIGEST}"),
        (f"nginx:1.27{DIGEST}", f"registry.example.com/mirror/library/nginx:1.27{DIGEST}"),
        ("user/app", "registry.example.com/mirror/user/app"),
        ("user/app/deep:v1", "registry.example.com/mirror/user/app/deep:v1"),
        ("docker.io/nginx", "registry.example.com/mirror/library/nginx"),
        ("docker.io/library/nginx:1", "registry.example.com/mirror/library/nginx:1"),
        ("index.docker.io/user/app", "registry.example.com/mirror/user/app"),
        ("localhost/app", None),
        ("localhost:5000/app", None),
        ("ghcr.io/user/app:v1", None),
        ("registry:5000/app", None),
        ("docker.io.evil.com/app", None),
        ("docker.io:443/app", None),
        ("registry.example.com/mirror/library/nginx", None),
        ("registry.example.com/mirror-of-others/x", None),
    ],
)
def test_an_image_of_docker_hub_is_taken_from_the_mirror(image, moved):
    """Short names are Docker's; tags, digests and ports stay; what lies elsewhere stays."""
    result, _ = mutate("image-registry", request(spec={"containers": [{"name": "c", "image": image}]}), HUB)
    assert result["spec"]["containers"][0]["image"] == (moved or image)


@pytest.mark.parametrize(
    ("image", "source", "target", "moved"),
    [
        ("old.example.com:5000/a/b:1", "old.example.com:5000", "new.example.com", "new.example.com/a/b:1"),
        ("old.example.com:5000/a", "old.example.com", "new.example.com", None),
        ("old.example.com/team/a:1", "old.example.com/team", "new.example.com/x", "new.example.com/x/a:1"),
        ("old.example.com/teams/a:1", "old.example.com/team", "new.example.com/x", None),
        ("old.example.com/team/a:1", "old.example.com/team/a", "new.example.com/b", "new.example.com/b:1"),
        (
            f"old.example.com/team/a{DIGEST}",
            "old.example.com/team/a",
            "new.example.com/b",
            f"new.example.com/b{DIGEST}",
        ),
        ("nginx", "docker.io/library", "new.example.com", "new.example.com/nginx"),
        ("user/app", "docker.io/library", "new.example.com", None),
        ("nginx", "docker.io", "docker.io/mirror", "docker.io/mirror/library/nginx"),
        ("mirror/nginx", "docker.io", "docker.io/mirror", None),
        ("nginx:1", "docker.io/library/nginx", "docker.io/a", "docker.io/a:1"),
        ("docker.io/a:1", "docker.io/library/a", "docker.io/a", None),
        ("localhost/app", "localhost", "localhost:5000", "localhost:5000/app"),
    ],
)
def test_places_are_compared_by_whole_components(image, source, target, moved):
    """A registry with or without port, a path in one, or a single repository."""
    assert rewritten(image, source, target) == moved


@pytest.mark.parametrize("kind", TEMPLATED, ids=lambda kind: kind["kind"])
def test_every_list_of_every_kind_is_rewritten(kind):
    """Init and ephemeral containers included."""
    spec = {place: [{"name": place, "image": "nginx"}, {"name": "other", "image": "ghcr.io/x"}] for place in LISTS}
    result, _ = mutate("image-registry", request(kind, spec=spec), HUB)
    assert str(result).count("'image': 'registry.example.com/mirror/library/nginx'") == 3
    assert str(result).count("'image': 'ghcr.io/x'") == 3


def test_recorded_requests_are_rewritten():
    """A Pod that kubectl run makes, an ephemeral container that is added, an image that is set."""
    pod, _ = mutate("image-registry", recorded("kubectl-run.0m"), HUB)
    assert pod["spec"]["containers"][0]["image"].startswith("registry.example.com/mirror/")
    debugged, _ = mutate("image-registry", recorded("pod-ephemeralcontainers.0m"), HUB)
    assert debugged["spec"]["ephemeralContainers"][0]["image"].startswith("registry.example.com/mirror/")
    assert debugged["spec"]["containers"] == recorded("pod-ephemeralcontainers.0m")["object"]["spec"]["containers"]
    deployment, _ = mutate("image-registry", recorded("kubectl-set-image.0m"), HUB)
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"].startswith("registry.example.com/mirror/")


@pytest.mark.parametrize(
    "name",
    [
        "kubectl-label.0m",
        "kubectl-rollout-restart.0m",
        "deploy-scale-put.0m",
        "pod-status-patch.0m",
        "cm-delete.0m",
        "pod-exec-connect-post.0m",
    ],
)
def test_what_a_recorded_request_does_not_touch_stays(name):
    """A new label must not restart a Pod."""
    admission = recorded(name)
    assert mutate("image-registry", admission, HUB)[0] == admission["object"]


def test_an_update_is_rewritten_where_it_brings_an_image():
    """New and changed ones; the old one stays as it runs."""
    old = {"containers": [{"name": "a", "image": "nginx:1"}, {"name": "b", "image": "nginx:1"}]}
    new = {
        "containers": [
            {"name": "a", "image": "nginx:1"},
            {"name": "b", "image": "nginx:2"},
            {"name": "c", "image": "nginx:1"},
        ]
    }
    answer = judge("image-registry", request(spec=new, old=old), HUB)
    assert [operation["path"] for operation in answer.change.value] == [
        "/spec/containers/1/image",
        "/spec/containers/2/image",
    ]


@pytest.mark.parametrize("image", [None, "", 5, {}, "/", "@", ":", "//x"])
def test_what_is_no_image_breaks_nothing(image):
    """The API server or the kubelet refuses it."""
    admission = request(spec={"containers": [{"name": "c", "image": image}, {"name": "none"}, None]})
    mutate("image-registry", admission, {"from": "old.example.com", "to": "new.example.com"})


@pytest.mark.parametrize(
    ("settings", "pointers"),
    [
        ({}, ["/from", "/to"]),
        ({"from": "mirror", "to": "r.example.com"}, ["/from"]),
        ({"from": "https://docker.io", "to": "r.example.com/"}, ["/from", "/to"]),
        ({"from": "docker.io", "to": "r.example.com/x:1"}, ["/to"]),
        ({"from": "r.example.com", "to": "r.example.com"}, ["/from"]),
        ({"from": "r.example.com/a/b", "to": "r.example.com/a"}, ["/from"]),
        ({"from": "index.docker.io", "to": "r.example.com"}, ["/from"]),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, pointers):
    """What is no registry, and what would never rewrite anything."""
    with pytest.raises(InvalidSettingsError) as error:
        judge("image-registry", request(spec={}), settings)
    assert [one.pointer for one in error.value.errors] == pointers


COMPONENT = st.sampled_from(["a", "b", "library", "mirror"])
PLACES = st.builds(
    "/".join,
    st.tuples(st.sampled_from(["docker.io", "r.example.com", "localhost", "localhost:5000"])).flatmap(
        lambda first: st.lists(COMPONENT, max_size=2).map(lambda rest: (*first, *rest))
    ),
)
IMAGES = st.builds(
    "{}{}{}".format,
    st.builds("/".join, st.lists(COMPONENT, min_size=1, max_size=3)) | PLACES,
    st.sampled_from(["", ":1"]),
    st.sampled_from(["", DIGEST]),
)


@pytest.mark.property
@given(IMAGES, PLACES, PLACES)
def test_a_rewritten_image_stays_where_it_is(image, source, target):
    """Once and never again; and normalizing is idempotent."""
    moved = rewritten(image, source, target)
    if moved is not None:
        assert moved.startswith(target)
        assert rewritten(moved, source, target) is None
    assert normalized(normalized(image)) == normalized(image)


@pytest.mark.property
@given(
    st.lists(st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"image": IMAGES}), max_size=4),
    PLACES,
    PLACES,
)
def test_only_images_are_touched(containers, source, target):
    """Called twice it changes nothing more, and nothing but images."""
    admission = request(spec={"containers": containers})
    before = copy.deepcopy(admission)
    try:
        result, _ = mutate("image-registry", admission, {"from": source, "to": target})
    except InvalidSettingsError:
        return
    assert admission == before
    for was, now in zip(containers, result["spec"]["containers"], strict=True):
        assert was | {"image": None} == now | {"image": None} or "image" not in was
