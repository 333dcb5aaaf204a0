"""``admission-gateway explain``: its request to a gateway, what it prints, and its exit codes."""

import http.server
import json
import socket
import threading
from types import SimpleNamespace

import pytest

from gateway.engine.verdicts import Deny
from gateway.serving.explain import explanation
from gateway.telemetry.decision_memory import DecisionMemory
from gateway.telemetry.findings import Query, find
from tests.world import decide, policy

FOUND, UNKNOWN, COULD_NOT = 0, 1, 2


@pytest.fixture
def listening():
    """Something that gives one answer to everything: ``listening(status, body)``; its ``url``, and what was called."""
    servers = []

    def start(status, body=b""):
        called = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                called.append((self.path, self.headers["Authorization"]))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        servers.append((server, thread))
        return SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", called=called)

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def denial():
    """The document about a denial."""
    memory = DecisionMemory()
    memory.decided(decide([policy("a")], {"a": Deny(message="no tag")})[0])
    return json.dumps(explanation("u1", [find(memory, Query(uid="u1"))])).encode()


def test_the_story_is_printed(run, listening, tmp_path):
    """The uid is one segment of the path; the token of the file is sent."""
    (tmp_path / "tokens").write_text("one\n")
    gateway = listening(200, denial())
    done = run("explain", "u 1/..", "--admin", f"{gateway.url}/", "--admin-token-file", tmp_path / "tokens")
    assert (done.code, done.err) == (FOUND, "")
    assert done.out.startswith("DENIED: CREATE pods t/(no name yet)\n")
    assert "test/a.test.example.com denied it: no tag\n" in done.out
    assert gateway.called == [("/explain/u%201%2F..", "Bearer one")]


def test_the_document_is_printed_for_programs(run, listening):
    """As the gateway sent it."""
    gateway = listening(200, denial())
    done = run("explain", "u1", "--admin", gateway.url, "-o", "json")
    assert done.code == FOUND
    assert json.loads(done.out)["decisions"][0]["policies"][0]["reason"] == "DENIED"


def test_an_unknown_review_is_exit_1(run, listening):
    """The gateway's own words, once."""
    gateway = listening(404, b'admission-gateway: no decision of review "u" is retained\n')
    done = run("explain", "u", "--admin", gateway.url)
    assert (done.code, done.out, done.err) == (UNKNOWN, "", 'error: no decision of review "u" is retained\n')


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, b"admission-gateway: only programs on this machine may call it\n", "only programs on this machine"),
        (429, b"admission-gateway: 4 explanations\n", "4 explanations"),
        (200, b"<html>hello</html>", "not a gateway's admin listener"),
        (200, b"[1]", "not a gateway's admin listener"),
        (200, b'{"kind": "Explanation", "decisions": [{}]}', "not a gateway's admin listener"),
        (200, b'{"kind": "Other", "decisions": [], "related": []}', "not a gateway's admin listener"),
        (503, b"\x1b[31m\xff", "?[31m"),
    ],
)
def test_whatever_else_answers_is_exit_2(run, listening, status, body, words):
    """One line, without what would control a terminal."""
    gateway = listening(status, body)
    done = run("explain", "u", "--admin", gateway.url)
    assert (done.code, done.out) == (COULD_NOT, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_no_gateway_is_exit_2(run):
    """The error names the URL."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = run("explain", "u", "--admin", url)
    assert done.code == COULD_NOT
    assert f"cannot reach a gateway at {url}" in done.err
