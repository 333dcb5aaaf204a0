"""The objects of the gateway's kinds, watched."""

import asyncio

import pytest

from gateway.cluster.errors import ApiError
from gateway.cluster.policy_objects import PolicyObjects
from tests.integration.running import until


class Failing:
    """A client whose lists fail."""

    def __init__(self, code, message):
        self._error = ApiError("GET /apis/admission-gateway.dev/v1alpha1/workers", code, "", message)

    async def pages(self, path, *, selectors, accept):
        raise self._error
        yield


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        (404, "the server could not find the requested resource", "kubectl apply --server-side -f deploy/chart/crds"),
        (403, 'cannot list resource "workers"', "grant it to the gateway's service account"),
    ],
)
async def test_a_problem_says_what_to_do(code, message, advice):
    """Definitions that are not installed, and a permission that is missing; the objects are not known then."""
    objects = PolicyObjects(Failing(code, message), lambda: None)
    watching = asyncio.create_task(objects.run())
    await until(lambda: "GET" in (objects.problem or ""))
    assert message in objects.problem
    assert advice in objects.problem
    assert not objects.known
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
