"""Lists are read page by page, whatever happens between two pages."""

import pytest

from gateway.audit.api_reader import ATTEMPTS, MAX_DELAY_SECONDS, ApiReader
from gateway.cluster.errors import ApiError


class Api:
    """A client that answers from a script: pages, or errors; it keeps the queries."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.tokens = []
        self.waits = []

    async def send(self, method, path, *, query, seconds):
        self.tokens.append((query or {}).get("continue", ""))
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def sleep(self, seconds):
        self.waits.append(seconds)


def page(*items, token=""):
    return {"metadata": {"resourceVersion": "1", "continue": token}, "items": list(items)}


def error(code, **fields):
    return ApiError("GET /p", code, "", "m", **fields)


async def read(api, token=""):
    return [(each.items, each.restarted) async for each in ApiReader(api, api.sleep).pages("/p", token)]


async def test_a_list_goes_on_from_a_token():
    """Each page is one request."""
    api = Api(page(3, token="c"), page(4))
    assert await read(api, "b") == [([3], False), ([4], False)]
    assert api.tokens == ["b", "c"]


async def test_a_list_that_has_expired_goes_on_in_its_newest_version():
    """With the token that the API server offers, after what was read before."""
    api = Api(page(1, token="b"), error(410, continue_token="newest"), page(2))
    assert await read(api) == [([1], False), ([2], False)]
    assert api.tokens == ["", "b", "newest"]


async def test_a_list_that_has_expired_without_a_token_begins_again():
    """And says so: what was read before does not count."""
    api = Api(page(1, token="b"), error(410), page(1, token="c"), page(2))
    assert await read(api) == [([1], False), ([1], True), ([2], False)]
    assert api.tokens == ["", "b", "", "c"]


async def test_a_server_that_is_busy_is_tried_again():
    """As long as it says, or longer each time."""
    api = Api(error(429, retry_after=7.0), error(0), error(503, retry_after=900.0), page(1))
    assert await read(api) == [([1], False)]
    assert api.waits == [7.0, 2.0, MAX_DELAY_SECONDS]


@pytest.mark.parametrize(("code", "requests"), [(403, 1), (404, 1), (410, 1), (500, ATTEMPTS)])
async def test_what_lasts_is_an_error(code, requests):
    """At once, or after the last attempt."""
    api = Api(*[error(code)] * requests)
    with pytest.raises(ApiError):
        await read(api)
    assert len(api.tokens) == requests


async def test_an_api_that_is_away_hides_no_other():
    """The server of an aggregated API: discovery has the rest, and the reason."""
    groups = [
        {"name": name, "preferredVersion": {"version": "v2"}, "versions": [{"version": "v1"}, {"version": "v2"}]}
        for name in ("away", "here")
    ]
    listed = {"resources": [_resource("things"), _resource("things/status"), _resource("reviews", verbs=["create"])]}
    away = error(404)
    api = Api({"groups": groups}, {"resources": []}, away, away, listed, listed)
    found, problems = await ApiReader(api, api.sleep).served_resources()
    assert [(str(each), each.version) for each in found] == [("things.here", "v2"), ("things.here", "v1")]
    assert len(problems) == 2


def _resource(name, verbs=("list",)):
    return {"name": name, "kind": "Thing", "namespaced": True, "verbs": list(verbs)}
