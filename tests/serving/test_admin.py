"""Health and metrics, as Kubernetes' own components show them."""

import http.client
import json
import socket

import pytest

from gateway.policies.model import Cache, Phase
from gateway.serving.acceptor import ListenError
from gateway.serving.admin import AdminListener, Check
from gateway.serving.limits import Limits
from gateway.serving.purge import PurgePage
from gateway.serving.refusals import Refusal
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import ADMIN_REQUESTS_REJECTED, HTTP_REQUESTS_REJECTED
from tests.world import policy

CACHE = Cache(ttl=60)


class Admin:
    """An admin listener, and what a probe sees of it."""

    def __init__(self, loop):
        self.state = {"config": None, "certificates": None}
        self.loop = loop
        self.notes = {}
        self.cached = [
            policy("a", cache=CACHE),
            policy("a", phase=Phase.VALIDATING, cache=CACHE),
            policy("b", cache=CACHE),
        ]
        self.purged = []
        self.events = Metrics()
        self.counted = True
        self.listener = AdminListener(
            checks=self.checks,
            metrics=self.metrics,
            pages={"/purge": PurgePage(lambda: self.cached, self.purge, lambda: "Redis is full")},
            limits=Limits(shutdown_seconds=0.05),
            events=self.events,
        )
        self.address = loop.run(self.listener.start("127.0.0.1", 0))

    def checks(self):
        if isinstance(self.state, Exception):
            raise self.state
        return [Check(name, why, self.notes.get(name)) for name, why in self.state.items()]

    async def metrics(self, *, openmetrics):
        if self.state is None:
            raise RuntimeError("a secret of ours")
        return ("open" if openmetrics else "text/plain; version=0.0.4; charset=utf-8"), b"reviews_total 1\n"

    async def purge(self, policies):
        if self.state is None:
            raise RuntimeError("a secret of ours")
        self.purged.append(policies)
        return self.counted

    def get(self, target, method="GET", body=None, headers=None):
        client = http.client.HTTPConnection(*self.address, timeout=20)
        try:
            client.request(method, target, body, headers or {})
            response = client.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            client.close()


@pytest.fixture
def admin(loop):
    listening = Admin(loop)
    yield listening
    loop.run(listening.listener.stop())


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/livez", "ok\n"),
        ("/readyz", "ok\n"),
        ("/livez?verbose", "[+]heartbeat ok\nlivez check passed\n"),
        ("/readyz?verbose", "[+]config ok\n[+]certificates ok\nreadyz check passed\n"),
        ("/readyz?verbose=true", "[+]config ok\n[+]certificates ok\nreadyz check passed\n"),
    ],
)
def test_all_is_well(admin, target, body):
    """200 and ok; with verbose each check by name, in Kubernetes' form."""
    status, headers, observed = admin.get(target)
    assert (status, observed) == (200, body)
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("target", ["/readyz", "/readyz?verbose"])
def test_a_failed_check_is_a_503_that_says_which_and_why(admin, target):
    """Not ready says what is missing; alive is something else."""
    admin.state = {"config": "none loaded from /etc/policies yet", "certificates": None}
    expected = "[-]config failed: none loaded from /etc/policies yet\n[+]certificates ok\nreadyz check failed\n"
    status, _, body = admin.get(target)
    assert (status, body) == (503, expected)
    assert admin.get("/livez")[0] == 200
    admin.state = {"config": None}
    assert admin.get("/readyz")[::2] == (200, "ok\n")


def test_a_note_is_no_failure(admin):
    """A passed check may have a note in the verbose output, and does not fail readiness."""
    admin.notes = {"config": "the last good one is served"}
    assert admin.get("/readyz")[::2] == (200, "ok\n")
    expected = "[+]config ok: the last good one is served\n[+]certificates ok\nreadyz check passed\n"
    assert admin.get("/readyz?verbose")[::2] == (200, expected)
    admin.state = {"config": "none", "certificates": None}
    assert "[-]config failed: none\n" in admin.get("/readyz")[2]


def test_metrics_are_passed_on(admin):
    """Content-Type and body are the exporter's."""
    status, headers, body = admin.get("/metrics")
    assert (status, body) == (200, "reviews_total 1\n")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_head_is_get_without_a_body(admin):
    """A probe may use HEAD."""
    assert admin.get("/readyz", "HEAD")[::2] == (200, "")
    admin.state = {"config": "none"}
    assert admin.get("/readyz", "HEAD")[::2] == (503, "")


@pytest.mark.parametrize("target", ["/", "/mutate", "/livez/", "/healthz", "//livez"])
def test_other_paths_are_a_404(admin, target):
    """What is not there says what is, in one line."""
    status, headers, body = admin.get(target)
    assert status == 404
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert body.count("\n") == 1
    assert "/livez, /readyz, /metrics, /purge" in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_a_405(admin, method):
    """Nothing here can be changed."""
    status, headers, _ = admin.get("/livez", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(("target", "state"), [("/metrics", None), ("/readyz", RuntimeError("a secret of ours"))])
def test_a_failing_page_is_a_500_and_one_log_line(admin, logs, target, state):
    """An exception of our own is not shown to the network, and does not end the listener."""
    admin.state = state
    status, _, body = admin.get(target)
    assert status == 500
    assert "secret" not in body
    assert [entry["log_level"] for entry in logs] == ["error"]
    assert admin.get("/livez")[0] == 200


def test_a_body_ends_the_connection(admin):
    """Requests have no body here; one that does not end delays no other."""
    client = http.client.HTTPConnection(*admin.address, timeout=20)
    client.putrequest("POST", "/livez")
    client.putheader("Content-Length", "1000000000")
    client.endheaders(b"x")
    response = client.getresponse()
    assert (response.status, response.headers["Connection"]) == (405, "close")
    client.close()
    assert admin.get("/livez")[0] == 200


# ------------------------------------------------------------------------------------------------------- purge

A, B = "test/a.test.example.com", "test/b.test.example.com"


def test_a_purge_names_its_policies(admin):
    """Each named policy is purged, once; and whether other replicas will know is said."""
    status, headers, body = admin.get(f"/purge?policy={A}&policy={A}", "POST")
    assert (status, json.loads(body)) == (200, {"purged": [A], "replicasNotified": True})
    assert (headers["Content-Type"], headers["Cache-Control"]) == ("application/json", "no-store")
    assert admin.purged == [[A]]
    admin.counted = False
    body = admin.get(f"/purge?policy={B}&policy={A}", "POST")[2]
    assert json.loads(body) == {"purged": [B, A], "replicasNotified": False, "why": "Redis is full"}
    admin.counted = None
    assert json.loads(admin.get(f"/purge?policy={A}", "POST")[2]) == {"purged": [A], "replicasNotified": None}


@pytest.mark.parametrize("query", ["", "?", "?policies=a", f"?policy={A}&all=1"])
def test_a_purge_of_nothing_is_a_400(admin, query):
    """The request must name what to purge."""
    status, _, body = admin.get(f"/purge{query}", "POST")
    assert status == 400
    assert "/purge?policy=CONFIGURATION/NAME" in body
    assert admin.purged == []


def test_an_unknown_policy_is_a_404_that_names_the_known_ones(admin):
    """Then nothing is purged, what is known included."""
    status, _, body = admin.get(f"/purge?policy={A}&policy=test/%0Ac", "POST")
    assert (status, admin.purged) == (404, [])
    assert body == (
        f'admission-gateway: "test/\\nc" is no policy with a cache; nothing is purged; those with one are {A}, {B}\n'
    )
    admin.cached = []
    assert "has no cache, nor has any other policy" in admin.get(f"/purge?policy={A}", "POST")[2]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_a_purge_is_a_post(admin, method):
    """A GET does not purge."""
    status, headers, _ = admin.get(f"/purge?policy={A}", method)
    assert (status, headers["Allow"], admin.purged) == (405, "POST", [])


def test_a_web_page_does_not_purge(admin):
    """A browser sends what any page wants, and names the page in Origin."""
    status, _, _ = admin.get(f"/purge?policy={A}", "POST", headers={"Origin": "http://localhost:9443"})
    assert (status, admin.purged) == (403, [])


def test_a_purge_that_breaks_is_a_500(admin, logs):
    """As any page."""
    admin.state = None
    status, _, body = admin.get(f"/purge?policy={A}", "POST")
    assert status == 500
    assert "secret" not in body


def test_without_a_cache_there_is_no_purge(loop):
    """A listener without one says that there is nothing."""
    listener = AdminListener(checks=dict, metrics=Metrics().written)
    address = loop.run(listener.start("127.0.0.1", 0))
    client = http.client.HTTPConnection(*address, timeout=20)
    client.request("POST", "/purge")
    assert client.getresponse().status == 404
    client.close()
    loop.run(listener.stop())


def test_tls_on_the_plain_port_is_answered_and_logged_once(admin, logs):
    """Who speaks TLS to the plain port ends in one log line."""
    with socket.create_connection(admin.address, timeout=20) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert client.recv(1000).startswith(b"HTTP/1.0 400 Bad Request")
    assert len(logs) == 1
    assert "exc_info" not in logs[0]


def test_what_is_refused_is_counted(admin, logs):
    """By reason, and apart from the reviews' listener: each is a line of the log, too."""
    assert [admin.get(path, method)[0] for path, method in (("/x", "GET"), ("/y", "GET"), ("/livez", "POST"))] == [
        404,
        404,
        405,
    ]
    assert admin.get(f"/purge?policy={A}", "POST", headers={"Origin": "http://x"})[0] == 403
    with socket.create_connection(admin.address, timeout=20) as client:
        client.sendall(b"nonsense\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.0 400 ")
    counted = {reason: admin.events.value(ADMIN_REQUESTS_REJECTED, reason) for reason in Refusal}
    assert {reason: number for reason, number in counted.items() if number} == {
        Refusal.PATH: 2,
        Refusal.METHOD: 1,
        Refusal.FORBIDDEN: 1,
        Refusal.MALFORMED: 1,
    }
    assert len(logs) == 5
    assert not any(admin.events.value(HTTP_REQUESTS_REJECTED, reason) for reason in Refusal)


def test_a_flood_is_a_few_lines(admin, logs):
    """And counted whole."""
    with socket.create_connection(admin.address, timeout=20) as client:
        client.sendall(b"GET /nope HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)
        received = b""
        while received.count(b"HTTP/1.1 404") < 500:
            received += client.recv(65536)
    assert admin.events.value(ADMIN_REQUESTS_REJECTED, Refusal.PATH) == 500
    # Ten a second, and what was left out: the requests may take some seconds on a busy machine.
    assert sum(line.get("left_out", 1) for line in logs) <= 500
    assert len(logs) < 250


def test_a_taken_port_is_the_operators_to_solve(loop, admin):
    """An address in use is an error that names it."""
    other = AdminListener(checks=dict, metrics=admin.metrics)
    with pytest.raises(ListenError, match=rf"127\.0\.0\.1:{admin.address[1]}.*in use"):
        loop.run(other.start(*admin.address))


def test_localhost_is_every_loopback_address_on_one_port(loop):
    """A name with several addresses is listened to on all of them, port 0 being one port for all."""
    listener = AdminListener(checks=dict, metrics=Metrics().written)
    _, port = loop.run(listener.start("localhost", 0))
    client = http.client.HTTPConnection("localhost", port, timeout=20)
    client.request("GET", "/readyz")
    assert client.getresponse().status == 200
    client.close()
    loop.run(listener.stop())
