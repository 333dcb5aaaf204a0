"""``admission-gateway purge``: its request to a gateway, and its exit codes."""

import http.server
import socket
import threading
from types import SimpleNamespace

import pytest

DONE, UNKNOWN, COULD_NOT = 0, 1, 2


@pytest.fixture
def listening():
    """Something that gives one answer to everything: ``listening(status, body)``; its ``url``, and what was called."""
    servers = []

    def start(status, body=b""):
        called, tokens = [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                called.append(self.path)
                tokens.append(self.headers["Authorization"])
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
        return SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", called=called, tokens=tokens)

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_purge_says_what_it_purged(run, listening):
    """Exit 0, and each policy once."""
    gateway = listening(200, b'{"purged": ["a/b", "c/d e"], "replicasNotified": true}')
    done = run("purge", "a/b", "c/d e", "a/b", "--admin", f"{gateway.url}/")
    assert (done.code, done.out) == (DONE, "purged: a/b, c/d e\n")
    assert gateway.called == ["/purge?policy=a%2Fb&policy=c%2Fd+e&policy=a%2Fb"]


def test_where_the_gateway_is_may_stand_in_the_environment(run, listening):
    """As each flag; no proxy of the environment is used. Without Redis no other replica is notified."""
    gateway = listening(200, b'{"purged": ["a/b"], "replicasNotified": null}')
    env = {"ADMISSION_GATEWAY_ADMIN": gateway.url, "http_proxy": "http://127.0.0.1:1"}
    done = run("purge", "a/b", env=env)
    assert (done.code, done.out, done.err) == (DONE, "purged: a/b\n", "")


def test_a_token_of_the_admin_listener_is_sent(run, listening, tmp_path):
    """The first one of the file that the gateway has, which the pod's environment names to both."""
    (tmp_path / "tokens").write_text("# new\none\ntwo\n")
    gateway = listening(200, b'{"purged": ["a/b"], "replicasNotified": null}')
    env = {"ADMISSION_GATEWAY_ADMIN_TOKEN_FILE": str(tmp_path / "tokens")}
    assert run("purge", "a/b", "--admin", gateway.url, env=env).code == DONE
    assert run("purge", "a/b", "--admin", gateway.url).code == DONE
    assert gateway.tokens == ["Bearer one", None]


def test_a_token_file_that_cannot_be_used_is_exit_2(run, listening, tmp_path):
    """Nothing is called."""
    gateway = listening(200)
    done = run("purge", "a/b", "--admin", gateway.url, "--admin-token-file", tmp_path / "none")
    assert (done.code, gateway.called) == (COULD_NOT, [])
    assert f"--admin-token-file {tmp_path}/none: cannot be read: No such file" in done.err


@pytest.mark.parametrize("why", [b', "why": "Redis refuses SET"', b""])
def test_replicas_that_are_not_notified_are_exit_2(run, listening, why):
    """The output states what is purged, and why the other replicas are not notified."""
    gateway = listening(200, b'{"purged": ["a/b"], "replicasNotified": false%b}' % why)
    done = run("purge", "a/b", "--admin", gateway.url)
    assert (done.code, done.out) == (COULD_NOT, "purged in this replica only: a/b\n")
    cause = "Redis refuses SET" if why else "Redis did not answer in time"
    assert done.err.startswith(f"error: the other replicas are not notified: {cause};")


def test_an_unknown_policy_is_exit_1(run, listening):
    """The gateway's own words, which name the known ones, once."""
    gateway = listening(404, b'admission-gateway: "a/b" is no policy with a cache; those with one are c/d\n')
    done = run("purge", "a/b", "--admin", gateway.url)
    assert (done.code, done.out) == (UNKNOWN, "")
    assert done.err == 'error: "a/b" is no policy with a cache; those with one are c/d\n'


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (403, b"admission-gateway: only programs on this machine may purge\n", "only programs on this machine"),
        (500, b"", "answered 500 Internal Server Error"),
        (200, b"<html>hello</html>", "not a gateway's admin listener"),
        (200, b"[1]", "not a gateway's admin listener"),
        (503, b"\x1b[31m\xff", "?[31m"),
    ],
)
def test_whatever_else_answers_is_exit_2(run, listening, status, body, words):
    """One line, without what would control a terminal."""
    gateway = listening(status, body)
    done = run("purge", "a/b", "--admin", gateway.url)
    assert (done.code, done.out) == (COULD_NOT, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_no_gateway_is_exit_2(run):
    """The error names the URL."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = run("purge", "a/b", "--admin", url)
    assert done.code == COULD_NOT
    assert f"cannot reach a gateway at {url}" in done.err


def test_something_that_speaks_no_http_is_exit_2(run):
    """The error is that of a server without HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        done = run("purge", "a/b", "--admin", f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert done.code == COULD_NOT


@pytest.mark.parametrize(
    "url",
    ["", "localhost:9443", "ftp://h", "http://", "http://h/path", "http://h?x=1", "http://u:p@h", "http://h:99999"],
)
def test_a_wrong_url_is_wrong_usage(run, url):
    """Exit 2, and the form that is expected."""
    done = run("purge", "a/b", "--admin", url)
    assert done.code == COULD_NOT
    assert "is not http://HOST:PORT" in done.err


@pytest.mark.parametrize("url", ["http://u:hunter2@127.0.0.1:9443", "http://u:hunter2@h:x", "hunter2@"])
def test_no_password_is_repeated(run, url):
    """A URL with a password is refused without it: it may come from the environment, and end in a log."""
    done = run("purge", "a/b", env={"ADMISSION_GATEWAY_ADMIN": url})
    assert done.code == COULD_NOT
    assert "a URL with a user or password is not http://HOST:PORT" in done.err.replace("\n", " ")
    assert "hunter2" not in done.err + done.out
