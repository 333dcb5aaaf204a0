"""Webhooks with certificates of one authority, in a loop like the gateway's."""

from contextlib import asynccontextmanager

import pytest
import uvloop

from gateway.policies.workers.targets import WebhookTarget
from tests.authorities import Authority
from tests.transports.webhook.caller import policy_caller
from tests.transports.webhook.servers import NAME, Hook, allows, served, server_context


def pytest_asyncio_loop_factories(config, item):
    """The gateway serves on uvloop."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def authority():
    """The CA of the webhooks' certificates."""
    return Authority("webhooks")


@pytest.fixture(scope="session")
def pair(authority, tmp_path_factory):
    """Files of a webhook's certificate and key."""
    return authority.issue(NAME, "127.0.0.1", "localhost").write(tmp_path_factory.mktemp("webhook"))


@pytest.fixture
def calling(authority, pair):
    """``async with calling(script) as (hook, calling)``: a webhook at 127.0.0.1, and a worker that calls it."""

    @asynccontextmanager
    async def call(script=allows, *, context=None, access=None, versions=("v1",), path="/judge", **limits):
        async with served(Hook(script), context or server_context(*pair)) as hook:
            target = WebhookTarget(
                url=f"https://127.0.0.1:{hook.port}{path}", ca_bundle=authority.pem, review_versions=versions
            )
            async with policy_caller(target, access=access, **limits) as caller:
                yield hook, caller

    return call
