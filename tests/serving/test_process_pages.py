"""Who may call which pages of a gateway with several processes."""

import http.client
from types import SimpleNamespace

import pytest

from gateway.serving import web
from gateway.serving.access import AdminAccess
from gateway.serving.credential_files import ADMIN_TOKENS, CredentialFile
from gateway.serving.limits import Limits
from gateway.serving.processes.admin import PodAdminListener

TOKEN = "a" * 32


class Pages:
    """Pages that note what a process is asked for."""

    def __init__(self):
        self.asked_for = []

    async def process(self, request, number, target):
        del request
        self.asked_for.append((number, target))
        return web.Response(body=b"page")

    async def other(self, request):
        del request
        return web.Response(body=b"page")

    async def metrics(self, *, openmetrics):
        del openmetrics
        return "text/plain", b""

    livez = readyz = purge = explain = dashboard = other


@pytest.fixture
def listener(loop, tmp_path):
    """A listener with a token, and its pages."""
    tokens = tmp_path / "tokens"
    tokens.write_text(TOKEN)
    pages = Pages()
    made = PodAdminListener(pages, AdminAccess(CredentialFile(tokens, ADMIN_TOKENS)), Limits(shutdown_seconds=0.05))
    address = loop.run(made.start("127.0.0.1", 0))

    def get(path, **headers):
        client = http.client.HTTPConnection(*address, timeout=20)
        try:
            client.request("GET", path, headers=headers)
            return client.getresponse().status
        finally:
            client.close()

    yield SimpleNamespace(get=get, asked_for=pages.asked_for)
    loop.run(made.stop())


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/livez", 200),
        ("/metrics", 200),
        ("/explain/1", 401),
        ("/purge", 401),
        ("/process/1/metrics", 401),
        ("/process/1/findings", 401),
        ("/process/1/ui/", 200),
        ("/process/1/ui/api/live", 401),
        ("/process/1/%75i/%61pi/live", 401),
        ("/process/1%2Fui%2Fx/findings", 401),
        ("/process/1%2Fui/findings", 401),
        ("/%70rocess/1/ui/../findings", 401),
        ("/process/1/ui/%2e%2e/findings", 200),
    ],
)
def test_a_token_is_needed_for_what_a_process_is_asked_for(listener, path, status):
    """The path that decides is the one that the process gets, however it is written."""
    assert listener.get(path) == status
    for _, target in listener.asked_for:
        assert target.startswith("/ui/")
    listener.asked_for.clear()
    assert listener.get(path, Authorization=f"Bearer {TOKEN}") in {200, 404}
