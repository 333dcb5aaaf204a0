"""Registering policies: an error raises when the worker's module is imported."""

import functools

import msgspec
import pytest

from admission_worker import EVERYTHING, Worker
from admission_worker.policies import Style


class Settings(msgspec.Struct):
    """Some settings."""

    n: int = 0


def plain(request):
    """What it is for.

    And how.
    """


def with_settings(request, settings):
    """Has settings."""


async def coroutine(request):
    """Waits."""


class Callable:
    """A policy as an object."""

    async def __call__(self, request):
        """Waits."""


@pytest.fixture
def worker():
    return Worker("test", version="1")


@pytest.mark.parametrize("name", ["", "Upper", "a.b", "-a", "a-", "a" * 64, "ä", "a_b", "a b", "a\n"])
def test_a_name_is_a_dns_label(worker, name):
    """An invalid name is an error."""
    with pytest.raises(ValueError, match="DNS-1123 label"):
        worker.validating(name)(plain)


def test_a_name_is_used_once(worker):
    """Two policies with one name are an error, in any phase."""
    worker.validating("a")(plain)
    with pytest.raises(ValueError, match="registered already"):
        worker.mutating("a")(plain)


@pytest.mark.parametrize(
    ("function", "settings"),
    [(plain, Settings), (with_settings, None), (lambda: None, None), (lambda request, *, extra: None, None)],
)
def test_a_function_takes_the_policys_arguments(worker, function, settings):
    """A function takes the request, and the settings if the policy has any."""
    with pytest.raises(TypeError, match="its function must take"):
        worker.validating("a", settings=settings)(function)


@pytest.mark.parametrize("function", [None, "plain", 5])
def test_a_policy_is_a_function(worker, function):
    """A policy must be callable."""
    with pytest.raises(TypeError):
        worker.validating("a")(function)


@pytest.mark.parametrize("claim", [[""], ["object"], ["/object/~2"], ["/object/~"], [5], [None], ["/object" * 300]])
@pytest.mark.parametrize("which", ["inputs", "writes"])
def test_a_claim_is_json_pointers(worker, claim, which):
    """An empty or invalid pointer is an error."""
    with pytest.raises(ValueError, match=f"policy a: {which}"):
        worker.mutating("a", **{which: claim})(plain)


@pytest.mark.parametrize("claim", [["/uid"], ["/uid/x"], ["/objekt/metadata"], ["/*"], ["/metadata/labels"], ["/"]])
def test_an_input_is_a_place_in_the_request(worker, claim):
    """An input must be in an AdmissionRequest, and must not be its uid."""
    with pytest.raises(ValueError, match="policy a: inputs"):
        worker.validating("a", inputs=["/object", *claim])(plain)


@pytest.mark.parametrize("claim", [["/apiVersion"], ["/kind"], ["/kind/x"], ["/*"]])
def test_a_write_is_a_place_that_can_be_changed(worker, claim):
    """Writes may cover all members of an object but its kind."""
    with pytest.raises(ValueError, match="policy a: writes"):
        worker.mutating("a", writes=["/metadata", *claim])(plain)
    worker.mutating("b", writes=["/uid", "/data/*"])(plain)
    assert worker.policies["b"].writes == ("/uid", "/data/*")


@pytest.mark.parametrize("which", ["inputs", "writes"])
def test_a_claim_is_bounded(worker, which):
    """A claim has at most 256 pointers, without duplicates."""
    worker.mutating("a", **{which: ["/object/a", "/object/b", "/object/a"]})(plain)
    assert getattr(worker.policies["a"], which) == ("/object/a", "/object/b")
    with pytest.raises(ValueError, match="at most 256 pointers, there are 257"):
        worker.mutating("b", **{which: [f"/object/{number}" for number in range(257)]})(plain)


def test_a_claim_is_not_a_string(worker):
    """A string instead of a list of pointers is an error."""
    with pytest.raises(TypeError, match="must be a list of JSON Pointers"):
        worker.validating("a", inputs="/object")


def test_a_check_of_settings_is_a_plain_function(worker):
    """A coroutine function as ``validate`` is an error."""
    with pytest.raises(TypeError, match="plain function"):
        worker.validating("a", settings=Settings, validate=coroutine)


def test_a_coroutine_cannot_be_blocking(worker):
    """A coroutine function cannot be blocking."""
    with pytest.raises(TypeError, match="cannot be blocking"):
        worker.validating("a", blocking=True)(coroutine)


@pytest.mark.parametrize(
    ("function", "blocking", "style"),
    [
        (plain, False, Style.INLINE),
        (plain, True, Style.BLOCKING),
        (coroutine, False, Style.ASYNC),
        (Callable(), False, Style.ASYNC),
        (functools.partial(with_settings, settings=None), False, Style.INLINE),
        (functools.partial(coroutine), False, Style.ASYNC),
    ],
)
def test_how_a_function_is_run_follows_from_what_it_is(worker, function, blocking, style):
    """``async def`` is awaited, ``def`` runs inline, ``blocking=True`` in a thread."""
    worker.validating("a", blocking=blocking)(function)
    assert worker.policies["a"].style is style


def test_a_decorator_returns_the_function(worker):
    """The decorator returns the function unchanged."""
    assert worker.validating("a")(plain) is plain


def test_the_description_is_the_docstrings_first_paragraph(worker):
    """The description is the docstring's first paragraph, or the given one."""
    worker.validating("a")(plain)
    worker.validating("b", description="other")(plain)
    worker.validating("c")(lambda request: None)
    assert [policy.description for policy in worker.policies.values()] == ["What it is for.", "other", ""]


def test_a_worker_has_a_version():
    """A worker without a version is an error."""
    with pytest.raises(ValueError, match="a version is required"):
        Worker("test", version="")


def test_claims_are_kept_as_registered(worker):
    """Nothing, everything and unset are three different claims."""
    worker.mutating("a", inputs=[], writes=EVERYTHING)(plain)
    worker.mutating("b", inputs=["/object/metadata/labels/a~1b", "/object/spec/containers/*/image"])(plain)
    assert worker.policies["a"].inputs == ()
    assert worker.policies["a"].writes is EVERYTHING
    assert worker.policies["b"].inputs == ("/object/metadata/labels/a~1b", "/object/spec/containers/*/image")
    assert worker.policies["b"].writes is None
