"""Warnings about inputs, writes and cache: what can never repeat, and what a policy changes without seeing it."""

import pytest

LABELS = "/object/metadata/labels"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
WHOLE_PODS = PODS | {"resources": ["pods/*"]}


def rules(*operations, about=None):
    """One rule, of deployments unless it is said otherwise."""
    about = about or {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
    return [about | {"operations": list(operations)}]


@pytest.fixture
def warned(one_policy):
    """``FIELD: MESSAGE`` of each warning about a policy that is right but for what is meant."""

    def warnings(phase="Mutating", **changes):
        _, loaded = one_policy(changes, phase)
        assert not loaded.errors
        return [f"{each.place.path.removeprefix('policies[0].')}: {each.message}" for each in loaded.warnings]

    return warnings


@pytest.mark.parametrize(
    ("pointer", "because"),
    [
        ("/object/metadata/managedFields", "it holds the time of each write"),
        ("/object/metadata/managedFields/*/time", "it holds the time of each write"),
        ("/object/metadata/managedFields/0", "it holds the time of each write"),
        ("/object/metadata/resourceVersion", "each write makes a new one"),
        ("/oldObject/metadata/resourceVersion", "each write makes a new one"),
        ("/object/metadata/uid", "each object has its own"),
        ("/oldObject/metadata/creationTimestamp", "each object has its own"),
        ("/userInfo/extra", "it holds the id of the client's credential, and each token has its own"),
        (
            "/userInfo/extra/authentication.kubernetes.io~1credential-id",
            "it holds the id of the client's credential, and each token has its own",
        ),
    ],
)
def test_never_repeats(warned, pointer, because):
    """A warning reports an input that is unique to each request, with or without a cache."""
    expected = (
        f"inputs: {pointer}: hardly ever repeats, since {because}; with it, no verdict serves another request; remove "
        "it, unless that is what the policy judges"
    )
    for cache in (None, {"ttl": "5m"}):
        for phase in ("Mutating", "Validating"):
            assert warned(phase, inputs=[pointer, LABELS], rules=rules("UPDATE"), cache=cache) == [expected]


@pytest.mark.parametrize(
    "pointer",
    [
        LABELS,
        "/object/metadata/generation",
        "/object/metadata/managedFields/*/manager",
        "/object/spec/uid",
        "/userInfo/username",
        "/userInfo/groups",
        "/userInfo/extra/scopes.example.com",
        "/namespace",
        "/object/spec",
    ],
)
def test_repeats(warned, pointer):
    """What several requests have in common is not reported, not even for a cache."""
    assert not warned("Validating", inputs=[pointer], cache={"ttl": "5m"}, rules=rules("*"))


@pytest.mark.parametrize("pointer", ["/object/metadata", "/object", "/oldObject", "/object/*", "/object/metadata/*"])
def test_wide_inputs_without_cache(warned, pointer):
    """A wide input is nothing to warn of where no verdict is kept."""
    assert not warned(inputs=[pointer], rules=rules("*"))
    assert not warned(rules=rules("*"))


@pytest.mark.parametrize("pointer", ["/object/metadata", "/object", "/object/*", "/object/metadata/*"])
def test_spoiled_cache(warned, pointer):
    """A cache whose documents never repeat is reported, with the input that causes it."""
    assert warned(inputs=["/namespace", pointer], cache={"ttl": "5m"}) == [
        (
            f"cache: this cache will hardly ever hit: {pointer} shows /object/metadata/managedFields too (it holds the "
            "time of each write); name in inputs what the policy reads, and nothing besides"
        )
    ]


def test_cache_without_inputs(warned):
    """Without inputs all is shown, so the cache is spoiled, on CONNECT by the client's credential alone."""
    (warning,) = warned(cache={"ttl": "5m"})
    assert warning.startswith("cache: this cache will hardly ever hit: without inputs the policy is shown /object/meta")
    (warning,) = warned(cache={"ttl": "5m"}, rules=rules("DELETE"))
    assert "the policy is shown /oldObject/metadata/managedFields too" in warning
    (warning,) = warned(cache={"ttl": "5m"}, rules=rules("CONNECT"))
    assert "the policy is shown /userInfo/extra too" in warning
    (warning,) = warned(cache={"ttl": "5m"}, inputs=["/userInfo"])
    assert "/userInfo shows /userInfo/extra too" in warning


@pytest.mark.parametrize("pointer", ["/name", "/object/metadata/name"])
def test_generated_names(warned, pointer):
    """Only a validating policy sees a generated name, and only on CREATE."""
    (warning,) = warned("Validating", inputs=[pointer], rules=rules("CREATE"))
    assert warning.startswith(
        f"inputs: {pointer}: hardly ever repeats, since each object has its own wherever generateName is used"
    )
    assert not warned("Validating", inputs=[pointer], rules=rules("UPDATE", "DELETE"))
    assert not warned("Mutating", inputs=[pointer], rules=rules("CREATE"))


@pytest.mark.parametrize("pointer", ["/object/spec", "/object/spec/volumes", "/object/spec/containers", "/object/*/*"])
def test_token_volume(warned, pointer):
    """A new pod's volume for its token has its own name: a policy that sees volumes or mounts sees a new document."""
    pods = rules("CREATE", "UPDATE", about=WHOLE_PODS)
    (warning,) = warned(inputs=[pointer], rules=pods, cache={"ttl": "5m"})
    assert warning.startswith("cache: this cache will hardly ever hit")
    assert not warned(inputs=["/object/spec/containers/*/image"], rules=pods, cache={"ttl": "5m"})
    assert not warned(inputs=[pointer], rules=pods)


def test_unseen_writes(warned):
    """A field that may be written and is not seen is reported: the policy cannot know whether it is set already."""
    assert warned(inputs=[LABELS, "/object/spec/*/a"], writes=["/metadata/labels/x", "/spec/b/a", "/spec/b"]) == [
        "writes[1]: /spec/b/a lies in /spec/b, which is wider and wins; remove one of them",
        (
            "writes: /spec/b: not in inputs, so the policy does not see what it has written, and cannot be idempotent; "
            "add it to inputs, with /object in front"
        ),
    ]
    (warning,) = warned(inputs=["/object/a/b"], writes=["/a", "/b", "/c", "/d", "/e"])
    assert warning.startswith("writes: /a, /b, /c and 2 more: not in inputs")


@pytest.mark.parametrize(
    "changes", [{"writes": ["/spec"]}, {"inputs": [LABELS]}, {"inputs": ["/object"], "writes": ["/spec"]}]
)
def test_seen_writes(warned, changes):
    """No warning if all is seen, or if nothing was granted by name."""
    assert not warned(**changes)
