"""Registering policies: what is wrong shows when the worker's module is imported."""

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
    """A name that the configuration could not use is refused."""
    with pytest.raises(ValueError, match="DNS-1123 label"):
        worker.validating(name)(plain)


def test_a_name_is_used_once(worker):
    """Two policies of one name could not be told apart, in whatever phase."""
    worker.validating("a")(plain)
    with pytest.raises(ValueError, match="registered already"):
        worker.mutating("a")(plain)


@pytest.mark.parametrize(
    ("function", "settings"),
    [(plain, Settings), (with_settings, None), (lambda: None, None), (lambda request, *, extra: None, None)],
)
def test_a_function_takes_what_it_will_be_given(worker, function, settings):
    """The request, and the settings exactly where the policy has some."""
    with pytest.raises(TypeError, match="its function must take"):
        worker.validating("a", settings=settings)(function)


@pytest.mark.parametrize("function", [None, "plain", 5])
def test_a_policy_is_a_function(worker, function):
    """Something that cannot be called is refused."""
    with pytest.raises(TypeError):
        worker.validating("a")(function)


@pytest.mark.parametrize("claim", [[""], ["object"], ["/object/~2"], ["/object/~"], [5], [None], ["/object" * 300]])
@pytest.mark.parametrize("which", ["inputs", "writes"])
def test_a_claim_is_json_pointers(worker, claim, which):
    """Everything has its own spelling."""
    with pytest.raises(ValueError, match=f"policy a: {which}"):
        worker.mutating("a", **{which: claim})(plain)


@pytest.mark.parametrize("claim", [["/uid"], ["/uid/x"], ["/objekt/metadata"], ["/*"], ["/metadata/labels"], ["/"]])
def test_an_input_is_a_place_in_the_request(worker, claim):
    """What no AdmissionRequest has is a mistake, and its uid is part of no document."""
    with pytest.raises(ValueError, match="policy a: inputs"):
        worker.validating("a", inputs=["/object", *claim])(plain)


@pytest.mark.parametrize("claim", [["/apiVersion"], ["/kind"], ["/kind/x"], ["/*"]])
def test_a_write_is_a_place_that_can_be_changed(worker, claim):
    """What kind of object it is stays; whatever else the object has can be claimed."""
    with pytest.raises(ValueError, match="policy a: writes"):
        worker.mutating("a", writes=["/metadata", *claim])(plain)
    worker.mutating("b", writes=["/uid", "/data/*"])(plain)
    assert worker.policies["b"].writes == ("/uid", "/data/*")


@pytest.mark.parametrize("which", ["inputs", "writes"])
def test_a_claim_is_bounded(worker, which):
    """The gateway takes 256 pointers; one that is named twice is named once."""
    worker.mutating("a", **{which: ["/object/a", "/object/b", "/object/a"]})(plain)
    assert getattr(worker.policies["a"], which) == ("/object/a", "/object/b")
    with pytest.raises(ValueError, match="at most 256 pointers, there are 257"):
        worker.mutating("b", **{which: [f"/object/{number}" for number in range(257)]})(plain)


def test_a_claim_is_no_text(worker):
    """One text where a list belongs would be a claim of its letters."""
    with pytest.raises(TypeError, match="must be a list of JSON Pointers"):
        worker.validating("a", inputs="/object")


def test_a_check_of_settings_is_a_plain_function(worker):
    """A coroutine function as a check would never be awaited."""
    with pytest.raises(TypeError, match="plain function"):
        worker.validating("a", settings=Settings, validate=coroutine)


def test_a_coroutine_cannot_be_blocking(worker):
    """A coroutine function in a thread would return a coroutine and do nothing."""
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


def test_a_decorator_gives_the_function_back(worker):
    """A policy can still be called as what it is."""
    assert worker.validating("a")(plain) is plain


def test_the_description_is_the_docstrings_first_paragraph(worker):
    """What the author has written for readers of the code, the operator reads too; or what is given."""
    worker.validating("a")(plain)
    worker.validating("b", description="other")(plain)
    worker.validating("c")(lambda request: None)
    assert [policy.description for policy in worker.policies.values()] == ["What it is for.", "other", ""]


def test_a_worker_has_a_version():
    """Verdicts are cached by it."""
    with pytest.raises(ValueError, match="a version is required"):
        Worker("test", version="")


def test_claims_are_kept_as_they_are_said(worker):
    """Nothing, everything and not said are three different claims."""
    worker.mutating("a", inputs=[], writes=EVERYTHING)(plain)
    worker.mutating("b", inputs=["/object/metadata/labels/a~1b", "/object/spec/containers/*/image"])(plain)
    assert worker.policies["a"].inputs == ()
    assert worker.policies["a"].writes is EVERYTHING
    assert worker.policies["b"].inputs == ("/object/metadata/labels/a~1b", "/object/spec/containers/*/image")
    assert worker.policies["b"].writes is None
