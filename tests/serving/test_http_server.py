"""The HTTP table, row by row, over real TLS; and what an unfriendly client may do without an effect on others."""

import asyncio
import contextlib
import errno
import gc
import json
import socket
import ssl
import struct
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.policies.model import Phase
from gateway.serving.connection import Connection
from gateway.serving.http_server import HttpReply
from gateway.serving.plans import Target
from gateway.serving.refusals import Refusal
from gateway.serving.route_table import no_entry

JSON = {"Content-Type": "application/json"}
REVIEW = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"%s","object":"'
EXAMPLES = min(settings().max_examples, 500)
"""Each example is two TLS connections: even the long run has no time for thousands."""
UID = "456d3fc2-78a1-4c68-a6ee-8bb5ea8aab9e"
WAIT_SECONDS = 60.0
"""Seconds that the rest of a body may take where the client is to have sent all of it, on whatever machine."""


def is_one_line(headers, body):
    return (
        headers["Content-Type"] == "text/plain; charset=utf-8"
        and body.startswith(b"admission-gateway: ")
        and body.endswith(b"\n")
        and body.count(b"\n") == 1
        and b"<" not in body
    )


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def post_head(*fields, target="/mutate?timeout=30s"):
    lines = [f"POST {target} HTTP/1.1", "Host: gateway", "Content-Type: application/json", *fields, "", ""]
    return "\r\n".join(lines).encode()


class Waiting:
    """A handler that never answers, and records its begin and its end."""

    def __init__(self):
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    async def __call__(self, target, body, started, ends, *, overloaded, flow, trace):
        self.begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


# ---------------------------------------------------------------------------------- what is judged


def test_an_entry_is_judged_as_such(serve):
    """The path of an entry that there is reaches the judge with its name."""
    served = serve(entries=[Target(Phase.VALIDATING, "group.a.example.com")])
    assert served.post(path="/validate/group.a.example.com?timeout=10s")[0] == 200
    assert served.judge.called[0][0] == Target(Phase.VALIDATING, "group.a.example.com")


def test_an_entry_that_vanishes_while_its_body_comes_is_a_404(serve):
    """Where the judge knows it no more, the answer is the same as if it had never been there."""

    async def judge(target, body, started, ends, *, overloaded, flow, trace):
        raise no_entry(target.path)

    served = serve(judge, entries=[Target(Phase.MUTATING, "a")])
    status, _, body = served.post(path="/mutate/a")
    assert status == 404
    assert b"no such entry" in body


def test_recorded_requests_reach_the_judge_as_they_were_sent(serve, recordings, answered):
    """Every recorded request of a real API server, its very headers and target, reaches the judge byte for byte."""
    served = serve()
    connection = served.tls()
    # One was recorded over HTTP/2, which the API server never speaks to a Service.
    http1 = [each for each in recordings.values() if not each["headers"][0][0].startswith(":")]
    for recording in http1:
        path = "/mutate" if recording["phase"] == "mutating" else "/validate"
        target = path + recording["target"][recording["target"].index("?") :]
        body = recording["body"].encode()
        fields = [f"{name}: {len(body) if name == 'Content-Length' else value}" for name, value in recording["headers"]]
        head = "\r\n".join([f"POST {target} HTTP/1.1", *fields, "", ""])
        connection.sendall(head.encode() + body)
        status, headers, reply = answered(connection)
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert json.loads(reply) == {"judged": len(body)}
        target, received, *_ = served.judge.called[-1]
        assert (target.phase.value, target.entry, received) == (recording["phase"], None, body)
    assert len(served.judge.called) == len(http1) > 100
    assert served.front.connections == 1


@pytest.mark.parametrize("line", ["POST /mutate HTTP/2.0", "POST /mutate HTTP/0.9", "POST /mutate"])
def test_another_version_of_http_is_refused(serve, answered, line):
    """In HTTP/1.1, although the parser reads it: its framing is another."""
    connection = serve().tls()
    connection.sendall(f"{line}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}".encode())
    status, headers, body = answered(connection)
    assert (status, headers["Connection"]) == (400, "close")
    assert is_one_line(headers, body)


@pytest.mark.parametrize(
    ("target", "seconds"),
    [
        ("/mutate?timeout=10s", 8.95),
        ("/mutate?timeout=1s", 0.45),
        ("/validate?timeout=30s", 28.95),
        ("/validate", 8.95),
        ("/validate?", 8.95),
        ("/mutate?dry=1&timeout=3s", 1.95),
        ("/mutate?timeout=%33s", 1.95),
        ("/mutate?timeout=soon", 8.95),
        ("https://gateway/mutate?timeout=3s", 1.95),
    ],
)
def test_the_budget_is_that_of_the_target(serve, answered, target, seconds):
    """The judge's time ends where the query parameter timeout says, wherever in the target it stands."""
    served = serve()
    connection = served.tls()
    # In one piece: of the shortest budget, a body that comes later may have missed it.
    connection.sendall(post_head("Content-Length: 2", target=target) + b"{}")
    assert answered(connection)[0] == 200
    _, _, started, ends, _ = served.judge.called[0]
    assert ends - started == pytest.approx(seconds)


def test_a_reply_goes_out_as_it_is(serve):
    """Status, body and type of the judge's reply are the answer's, without the versions of our libraries."""

    async def judge(target, body, started, ends, *, overloaded, flow, trace):
        return HttpReply(status=400, body=b"no review\n", content_type="text/plain")

    status, headers, body = serve(judge).post()
    assert (status, headers["Content-Type"], body) == (400, "text/plain", b"no review\n")
    assert headers["Server"] == "admission-gateway"


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json; v=1",
    ],
)
def test_json_is_json_however_it_is_written(serve, content_type):
    """Media types are case-insensitive and may have parameters (RFC 9110, 8.3.1)."""
    assert serve().post(headers={"Content-Type": content_type})[0] == 200


def test_a_chunked_body_is_put_together(serve, answered):
    """The API server never sends chunks, but they are HTTP."""
    served = serve()
    connection = served.tls()
    connection.sendall(post_head("Transfer-Encoding: chunked") + chunked(b'{"a"', b": 1", b"}"))
    assert answered(connection)[0] == 200
    assert served.judge.called[0][1] == b'{"a": 1}'


def test_a_body_that_comes_slowly_is_put_together(serve, answered):
    """Header and body in one byte a segment are one request all the same."""
    served = serve()
    connection = served.tls()
    for byte in post_head("Content-Length: 8") + b'{"a": 1}':
        connection.sendall(bytes([byte]))
    assert answered(connection)[0] == 200
    assert served.judge.called[0][1] == b'{"a": 1}'


def test_continue_is_said_to_who_waits_for_it(serve, answered):
    """Expect: 100-continue is answered before the body is read, and the answer follows on the same connection."""
    served = serve()
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 2", "Expect: 100-continue"))
    assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"{}")
    assert answered(connection)[0] == 200


def test_pipelined_requests_are_answered_in_order(serve, answered):
    """Requests sent without waiting are judged one after the other; nothing is mixed up."""
    served = serve()
    connection = served.tls()
    bodies = [b"x" * size for size in (1, 70_000, 2, 3)]
    connection.sendall(b"".join(post_head(f"Content-Length: {len(body)}") + body for body in bodies))
    assert [json.loads(answered(connection)[2])["judged"] for _ in bodies] == [1, 70_000, 2, 3]


def test_a_connection_serves_many_requests(serve):
    """Keep-alive: a thousand requests need one handshake."""
    served = serve()
    client = served.client()
    for _ in range(1000):
        client.request("POST", "/validate?timeout=10s", b"{}", JSON)
        response = client.getresponse()
        response.read()
        assert (response.status, response.headers["Connection"]) == (200, None)
    assert served.front.connections == 1
    assert len(served.judge.called) == 1000


def test_a_body_of_just_the_limit_is_judged(serve):
    """20,000,000 bytes are not too large, and nothing of them is held afterwards."""
    served = serve()
    assert served.post(b" " * 20_000_000)[0] == 200
    assert served.front.load.body_bytes == 0


# -------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("request_of", "status", "refusal", "says"),
    [
        ({"path": "/"}, 404, Refusal.PATH, b'nothing at "/"'),
        ({"path": "/mutate/entry"}, 404, Refusal.PATH, b"/mutate/entry"),
        ({"path": "/mutate/"}, 404, Refusal.PATH, b"/mutate/"),
        ({"path": "/MUTATE"}, 404, Refusal.PATH, b"/MUTATE"),
        ({"path": "/%6dutate"}, 404, Refusal.PATH, b"/%6dutate"),
        ({"method": "GET", "body": None}, 405, Refusal.METHOD, b"GET"),
        ({"method": "HEAD", "body": None}, 405, Refusal.METHOD, b""),
        ({"method": "PUT"}, 405, Refusal.METHOD, b"PUT"),
        ({"method": "OPTIONS", "body": None}, 405, Refusal.METHOD, b"OPTIONS"),
        ({"headers": {}}, 415, Refusal.CONTENT_TYPE, b"no Content-Type"),
        ({"headers": {"Content-Type": ""}}, 415, Refusal.CONTENT_TYPE, b"application/json"),
        ({"headers": {"Content-Type": ";;;"}}, 415, Refusal.CONTENT_TYPE, b";;;"),
        ({"headers": {"Content-Type": "text/plain"}}, 415, Refusal.CONTENT_TYPE, b"text/plain"),
        ({"headers": {"Content-Type": "application/yaml"}}, 415, Refusal.CONTENT_TYPE, b"application/yaml"),
        ({"headers": {"Content-Type": "application/json; charset=latin1"}}, 415, Refusal.CONTENT_TYPE, b"latin1"),
        ({"headers": JSON | {"Content-Encoding": "gzip"}}, 415, Refusal.CONTENT_ENCODING, b"gzip"),
        ({"headers": JSON | {"Expect": "miracles"}}, 417, Refusal.EXPECTATION, b"miracles"),
    ],
)
def test_each_row_of_the_table(serve, logs, request_of, status, refusal, says):
    """A refusal has its status, says in one line what is wrong, is logged and counted once, and affects no other."""
    served = serve()
    observed, headers, body = served.post(**request_of)
    assert observed == status
    assert says in body
    if request_of.get("method") != "HEAD":
        assert is_one_line(headers, body)
    assert (headers["Allow"] == "POST") is (status == 405)
    assert headers["Retry-After"] is None
    assert served.events == [("refused", refusal)]
    assert served.judge.called == []
    assert served.is_well()
    assert [entry["refusal"] for entry in logs] == [refusal.value]


def test_a_refused_request_that_is_complete_does_not_end_its_connection(serve):
    """The error of one request costs the next no handshake."""
    served = serve()
    client = served.client()
    for path, status in [("/nowhere", 404), ("/mutate", 200), ("/elsewhere", 404), ("/validate", 200)]:
        client.request("POST", path, b"{}", JSON)
        response = client.getresponse()
        response.read()
        assert response.status == status
    assert served.front.connections == 1


def test_not_knowing_is_not_allowing(serve):
    """Without a configuration every review gets a 503 that says why, an unknown path a 404; with it, all is well."""
    served = serve(not_ready="no configuration has been loaded from /etc/policies yet")
    for path in ("/mutate", "/validate"):
        status, headers, body = served.post(path=path)
        assert status == 503
        assert is_one_line(headers, body)
        assert b"no configuration has been loaded from /etc/policies yet" in body
    assert served.post(path="/other")[0] == 404
    assert served.judge.called == []
    served.routes.not_ready = None
    assert served.is_well()


# --------------------------------------------------------------------------------------- too large


def send_all_then_read(served, head, body, answered):
    """A client that writes everything before it reads anything."""
    with served.tls() as connection:
        connection.sendall(head)
        connection.sendall(body)
        return answered(connection)


@pytest.mark.parametrize("api_version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_too_large_is_a_denial_that_arrives(serve, answered, logs, api_version):
    """20 MB and one byte, a uid in front: eight of eight clients that write first and read later get a denial, 413."""
    served = serve(drain_seconds=WAIT_SECONDS)
    body = (REVIEW % UID.encode()).replace(b"admission.k8s.io/v1", api_version.encode()).ljust(20_000_001, b"x")
    for _ in range(8):
        status, headers, reply = send_all_then_read(served, post_head("Content-Length: 20000001"), body, answered)
        review = json.loads(reply)
        assert (status, headers["Content-Type"], headers["Connection"]) == (200, "application/json", "close")
        assert (review["uid"], review["apiVersion"], review["code"]) == (UID, api_version, 413)
        assert "20000001 bytes" in review["message"]
        assert "20000000" in review["message"]
        assert "REQUEST_TOO_LARGE" in review["message"]
    assert served.events == [("refused", Refusal.BODY_SIZE), ("limit", "body_bytes")] * 8
    assert len(logs) == 8
    assert served.is_well()


def test_too_large_without_a_uid_is_a_413_that_arrives(serve, answered):
    """20 MB and one byte of anything: eight of eight clients get a plain 413."""
    served = serve(drain_seconds=WAIT_SECONDS)
    for _ in range(8):
        head = post_head("Content-Length: 20000001")
        status, headers, reply = send_all_then_read(served, head, b"x" * 20_000_001, answered)
        assert status == 413
        assert is_one_line(headers, reply)
        assert headers["Connection"] == "close"
    assert served.is_well()


@pytest.mark.parametrize("uid", [UID, ""])
def test_too_large_in_chunks_is_reported_as_well(serve, answered, uid):
    """A body without a declared length is refused when it passes the limit; what was held of it is given back."""
    served = serve(body_bytes=1_000_000, drain_seconds=WAIT_SECONDS)
    body = (REVIEW % uid.encode()).ljust(3_000_000, b"x")
    pieces = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
    head = post_head("Transfer-Encoding: chunked")
    status, _, reply = send_all_then_read(served, head, chunked(*pieces), answered)
    assert status == (200 if uid else 413)
    assert uid.encode() in reply
    served.until(lambda: served.front.load.body_bytes == 0)
    assert served.is_well()


def test_too_large_is_reported_to_who_waits_to_send_it(serve, answered):
    """A client that announces too large a body (Expect) is rejected before it sends it."""
    served = serve()
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 20000001", "Expect: 100-continue"))
    assert answered(connection)[0] == 413


def flood(connection):
    while True:
        connection.sendall(b"x" * 1_000_000)


def test_no_more_is_drained_than_the_limit(serve):
    """A refused body without an end is not read for ever: the connection is closed under it."""
    served = serve(drain_bytes=1_000_000, body_bytes=100_000, shutdown_seconds=0.05)
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 1000000000000"))
    with pytest.raises(OSError):
        flood(connection)
    assert served.is_well()


def test_bodies_together_are_bounded(serve, answered):
    """When the bodies in flight reach their limit, the next is refused with 429, and the others are served."""
    judge = Waiting()
    served = serve(judge, body_bytes=600_000, body_bytes_in_flight=1_000_000, drain_seconds=WAIT_SECONDS)
    first = served.tls()
    first.sendall(post_head("Content-Length: 600000") + b"x" * 600_000)
    assert judge.begun.wait(20)
    status, headers, reply = send_all_then_read(served, post_head("Content-Length: 600000"), b"x" * 600_000, answered)
    assert status == 429
    assert is_one_line(headers, reply)
    assert b"OVERLOADED" in reply
    assert headers["Retry-After"] is None
    served.until(lambda: served.front.load.body_bytes == 600_000)
    first.close()
    assert judge.cancelled.wait(20)
    served.until(lambda: served.front.load.body_bytes == 0)


def test_a_body_is_charged_to_its_own_tenant(serve, answered):
    """It is not known from the first bytes: those of unknown tenants, however many, are no reason to refuse it."""
    judge = Waiting()
    served = serve(judge, body_bytes=600_000, body_bytes_in_flight=1_000_000)
    first = served.tls()
    first.sendall(post_head("Content-Length: 600000") + b"x" * 600_000)
    assert judge.begun.wait(20)
    body = b'{"kind":"AdmissionReview","request":{"uid":"u","namespace":"n","operation":"CREATE","object":"%s"}}'
    body %= b"x" * 5000
    second = served.tls()
    second.sendall(post_head(f"Content-Length: {len(body)}") + body[:500])
    served.until(lambda: served.front.load.requests == 2)
    second.sendall(body[500:])
    served.until(lambda: served.front.load.body_bytes == 600_000 + len(body))
    first.close()
    second.close()
    served.until(lambda: served.front.load.body_bytes == 0)


def test_reviews_beyond_the_limit_are_judged_as_overloaded(serve):
    """The handler gets the reviews above the limit marked, and answers them itself."""
    waiting = Waiting()
    reported = []

    async def judge(target, body, started, ends, *, overloaded, flow, trace):
        reported.append(overloaded is not None)
        if overloaded:
            return HttpReply(status=200, body=b"too many")
        return await waiting(target, body, started, ends, overloaded=overloaded, flow=flow, trace=trace)

    served = serve(judge, reviews_in_flight=1, wait_seconds=0.05)
    first = served.tls()
    first.sendall(post_head("Content-Length: 2") + b"{}")
    assert waiting.begun.wait(20)
    assert served.post()[2] == b"too many"
    assert reported == [False, True]
    assert ("limit", "reviews_in_flight") in served.events
    first.close()
    assert waiting.cancelled.wait(20)


# ---------------------------------------------------------------------------------- time and hang-ups


def test_a_body_that_does_not_arrive_is_a_408(serve, answered, logs):
    """When the budget ends before the body is here, the answer has how much is missing, and the connection ends."""
    served = serve(drain_seconds=0.01)
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 1000", target="/mutate?timeout=1s") + b"half")
    status, headers, body = answered(connection)
    assert status == 408
    assert is_one_line(headers, body)
    assert b"4 of 1000 bytes" in body
    assert connection.recv(1) == b""
    assert served.judge.called == []
    assert [entry["refusal"] for entry in logs] == ["body_time"]


def test_a_truncated_body_is_noted_and_affects_no_other_client(serve, logs):
    """A client that closes in the middle of its body leaves one log line, no traceback, and no memory held."""
    served = serve()
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 1000000") + b"x" * 500_000)
    served.until(lambda: served.front.load.body_bytes == 500_000)
    connection.close()
    served.until(lambda: served.events)
    assert served.events == [("refused", Refusal.HANGUP)]
    served.until(lambda: served.front.load.requests == 0)
    assert served.front.load.body_bytes == 0
    assert [entry["refusal"] for entry in logs] == ["hangup"]
    assert "exc_info" not in logs[0]
    assert served.is_well()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_hang_up_cancels_the_judge(serve, logs, how):
    """When the API server closes its connection, the review is cancelled."""
    judge = Waiting()
    served = serve(judge)
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 2") + b"{}")
    assert judge.begun.wait(20)
    if how == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    assert judge.cancelled.wait(20)
    served.until(lambda: served.front.load.requests == 0 == served.front.load.reviews)
    assert logs == []


def test_a_header_that_does_not_end_ends_the_connection(serve, answered):
    """A header that trickles is answered with 408 when its time is over."""
    served = serve(header_seconds=0.05)
    connection = served.tls()
    connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: gate")
    status, headers, body = answered(connection)
    assert status == 408
    assert is_one_line(headers, body)
    assert connection.recv(1) == b""
    assert ("refused", Refusal.HEADER_TIME) in served.events


def test_an_idle_connection_is_not_taken_for_an_unfinished_header(serve, answered):
    """Between two requests, no time runs but that of keep-alive: 120 s, more than the API server's 90."""
    served = serve(header_seconds=0.02)
    connection, other = served.tls(), served.tls()
    connection.sendall(post_head("Content-Length: 2") + b"{}")
    assert answered(connection)[0] == 200
    # Another connection's end shows that the time is over, without guessing.
    other.sendall(b"POST")
    assert answered(other)[0] == 408
    connection.sendall(post_head("Content-Length: 2") + b"{}")
    assert answered(connection)[0] == 200


def test_a_client_that_takes_no_answer_loses_its_connection(serve):
    """Answers that pile up unread are given up. (The first one vanishes in TLS's and the kernel's buffers.)"""

    async def judge(target, body, started, ends, *, overloaded, flow, trace):
        return HttpReply(status=200, body=b"x" * 50_000_000)

    served = serve(judge, write_seconds=0.05)
    connection = served.tls()
    connection.sendall((post_head("Content-Length: 2") + b"{}") * 2)
    served.until(lambda: ("refused", Refusal.UNREAD) in served.events)
    served.until(lambda: served.front.connections == 0)


# ------------------------------------------------------------------------------------- bad bytes


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST /mutate HTTP/9.9\r\n\r\n", 400),
        (b"POST /mutate HTTP/1.1\r\n\r\n", 400),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"CONNECT gateway:443 HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        (b"POST /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n", 431),
        (b"POST /mutate HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 100 + b"\r\n", 431),
    ],
)
def test_bad_http_is_answered_in_one_line(serve, answered, logs, sent, status):
    """What is no HTTP request of ours gets one line of plain text and leaves one line in the log, no traceback."""
    served = serve(linger_seconds=WAIT_SECONDS)
    connection = served.tls()
    connection.sendall(sent)
    observed, headers, body = answered(connection)
    assert observed == status
    assert is_one_line(headers, body)
    connection.close()
    assert len(logs) == 1
    assert "exc_info" not in logs[0]
    assert served.is_well()


def test_broken_chunks_are_answered_at_once(serve, answered, logs):
    """A body whose chunks are malformed is refused when that is seen, not when its time is over."""
    served = serve(linger_seconds=WAIT_SECONDS)
    connection = served.tls()
    connection.sendall(post_head("Transfer-Encoding: chunked", target="/mutate?timeout=30s") + b'4\r\n{"a"\r\n')
    served.until(lambda: served.front.load.requests == 1)
    connection.sendall(b"zz\r\n" + b"x" * 1_000_000)
    status, headers, body = answered(connection)
    assert status == 400
    assert is_one_line(headers, body)
    assert b"chunk" in body
    assert [entry["refusal"] for entry in logs] == ["body_framing"]
    assert served.is_well()


def test_plain_http_is_reported_that_this_is_tls(serve, answered, logs):
    """Who speaks plain HTTP to the TLS port reads what to do instead, whatever it sends along."""
    served = serve(linger_seconds=WAIT_SECONDS)
    with served.raw() as connection:
        connection.sendall(post_head("Content-Length: 900000") + b"x" * 900_000)
        status, headers, body = answered(connection)
    assert status == 400
    assert is_one_line(headers, body)
    assert b"https://" in body
    assert [entry["refusal"] for entry in logs] == ["plain_http"]
    assert served.is_well()


@pytest.mark.parametrize("sent", [b"\x00\x01\x02", b"\x16" * 1000, b"\x80\x2e\x01\x00"])
def test_no_tls_is_one_log_line(serve, logs, sent):
    """Bytes that are no TLS end the connection, and leave one line in the log, no traceback."""
    served = serve()
    served.raw().sendall(sent)
    served.until(lambda: served.events)
    assert served.events == [("refused", Refusal.TLS)]
    assert [entry["refusal"] for entry in logs] == ["tls"]
    assert served.is_well()


def test_a_tcp_probe_is_not_worth_a_word(serve, logs):
    """A load balancer that connects and closes is no error."""
    served = serve()
    served.raw().close()
    assert served.is_well()
    assert (served.events, logs) == ([], [])


def test_a_client_that_does_not_trust_us_is_named_in_the_log(serve, logs):
    """An API server with the wrong caBundle ends the handshake; the log says what to compare."""
    served = serve()
    with pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(served.raw(), server_hostname="localhost")
    served.until(lambda: served.events)
    assert "caBundle" in logs[0]["why"]


def test_a_handshake_that_does_not_end_is_ended(serve):
    """A connection that says nothing is not kept."""
    served = serve(handshake_seconds=0.5)
    silent, half = served.raw(), served.raw()
    half.sendall(b"\x16\x03\x01\x02\x00")
    assert silent.recv(1) == b""
    half.settimeout(20)
    try:
        ended = half.recv(100)
    except ConnectionError:
        ended = b""
    assert len(ended) < 100
    served.until(lambda: len(served.events) == 2)
    assert served.is_well_in_the_end()


def test_client_certificates_are_required_where_there_is_a_ca_for_them(serve, certificates, logs):
    """With --client-ca a client without a certificate is not served; one with a certificate of that CA is."""
    served = serve(client_ca=certificates.ca_file)
    with pytest.raises(ssl.SSLError, match="TLSV13_ALERT_CERTIFICATE_REQUIRED"):
        served.post()
    served.until(lambda: served.events)
    assert "--client-ca" in logs[0]["why"]
    # The development CA signs servers only, and OpenSSL checks the purpose.
    served.client_context.load_cert_chain(certificates.cert_file, certificates.key_file)
    with pytest.raises((ssl.SSLError, OSError)):
        served.post()
    assert served.judge.called == []


def test_without_file_descriptors_accepting_pauses(serve, logs, monkeypatch):
    """When the process has no more descriptors, it says so, waits, and goes on where it was."""
    served = serve()
    monkeypatch.setattr("gateway.serving.acceptor._PAUSE_SECONDS", 0.01)
    accept = socket.socket.accept
    failures = iter([OSError(errno.EMFILE, "Too many open files")])

    def scarce(self):
        for failure in failures:
            raise failure
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", scarce)
    assert served.is_well()
    assert [entry["why"] for entry in logs] == ["Too many open files"]


@pytest.fixture
def one_front(serve):
    """One front for all examples of a property: it must survive them all."""
    return serve(linger_seconds=0.05)


def send_and_end(connection, sent):
    with contextlib.suppress(OSError):
        connection.sendall(sent)
        # The socket's own: that of ssl forgets the keys, and what is read afterwards is ciphertext.
        socket.socket.shutdown(connection, socket.SHUT_WR)


def read_to_the_end(connection):
    received = b""
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            received += piece
    return received


noise = st.one_of(
    st.binary(min_size=1, max_size=300),
    st.builds(lambda tail: b"POST /mutate HTTP/1.1\r\n" + tail, st.binary(max_size=300)),
    st.builds(lambda tail: post_head("Transfer-Encoding: chunked") + tail, st.binary(max_size=100)),
    st.builds(lambda tail: post_head("Content-Length: 5") + tail, st.binary(max_size=100)),
    st.builds(lambda first, tail: bytes([0x16, 3, first]) + tail, st.integers(0, 4), st.binary(max_size=300)),
)


@pytest.mark.property
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=noise)
def test_whatever_comes_over_tls_the_next_request_is_served(one_front, sent):
    """Any bytes inside TLS end in answers, or in the end of the connection; and the front serves on."""
    with one_front.tls() as connection:
        send_and_end(connection, sent)
        received = read_to_the_end(connection)
    assert received == b"" or received.startswith(b"HTTP/1.")
    assert b"Traceback" not in received
    assert one_front.is_well()


@pytest.mark.property
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=noise)
def test_whatever_comes_without_tls_the_next_request_is_served(one_front, sent):
    """Any bytes on the bare port end in an answer, an alert, or the end of the connection; and the front serves on."""
    with one_front.raw() as connection:
        send_and_end(connection, sent)
        read_to_the_end(connection)
    assert one_front.is_well()


# ------------------------------------------------------------------------------------ internal errors


def test_a_failing_judge_is_a_500_and_one_log_line(serve, logs):
    """An exception of our own is an answer to the client, and a traceback in the log only."""

    async def judge(target, body, started, ends, *, overloaded, flow, trace):
        raise ZeroDivisionError("a secret of ours")

    served = serve(judge)
    status, headers, body = served.post()
    assert status == 500
    assert is_one_line(headers, body)
    assert b"INTERNAL" in body
    assert b"secret" not in body
    assert [entry["log_level"] for entry in logs if entry.get("exc_info")] == ["error"]
    assert served.post()[0] == 500


def test_a_judge_that_cancels_itself_is_a_500(serve):
    """A cancellation from inside is not taken for a hang-up: the client gets its answer."""

    async def judge(target, body, started, ends, *, overloaded, flow, trace):
        raise asyncio.CancelledError

    assert serve(judge).post()[0] == 500


def test_a_judge_that_forgets_to_answer_is_a_500(serve, answered):
    """No connection hangs: past its budget a review is ended from outside."""
    judge = Waiting()
    served = serve(judge, overrun_seconds=0.01)
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 2", target="/mutate?timeout=1s") + b"{}")
    assert answered(connection)[0] == 500
    assert judge.cancelled.is_set()


# ------------------------------------------------------------------------------------------ drain


def test_a_draining_front_serves_on_and_ends_each_connection_with_an_answer(serve, answered):
    """In a drain, idle connections stay open, new ones are accepted, and every answer says Connection: close."""
    served = serve()
    idle = served.tls()
    idle.sendall(post_head("Content-Length: 2") + b"{}")
    assert answered(idle)[1]["Connection"] is None
    served.loop.call(served.front.begin_drain)
    status, headers, _ = served.post()
    assert (status, headers["Connection"]) == (200, "close")
    idle.sendall(post_head("Content-Length: 2") + b"{}")
    status, headers, _ = answered(idle)
    assert (status, headers["Connection"]) == (200, "close")
    assert idle.recv(1) == b""
    assert served.post(path="/nowhere")[1]["Connection"] == "close"


def test_a_drain_ends_with_the_last_connection(serve, answered):
    """Without connections the window ends at once."""
    served = serve()
    idle = served.tls()
    idle.sendall(post_head("Content-Length: 2") + b"{}")
    answered(idle)
    draining = asyncio.run_coroutine_threadsafe(served.front.drain(3600), served.loop.loop)
    idle.sendall(post_head("Content-Length: 2") + b"{}")
    assert answered(idle)[0] == 200
    idle.close()
    draining.result(20)


def test_a_drain_ends_with_its_window(serve):
    """A connection that stays idle does not hold the process."""
    served = serve(shutdown_seconds=0.05)
    idle = served.tls()
    served.until(lambda: served.front.connections == 1)
    served.loop.run(served.front.drain(0.02, at_least=0.01))
    assert served.front.connections == 1
    served.loop.run(served.front.stop())
    assert idle.recv(1) == b""
    assert served.front.connections == 0


def test_stop_waits_for_what_is_in_hand(serve, answered):
    """A review that is being judged when we stop gets its answer; no new connection is accepted."""
    begun, go = threading.Event(), threading.Event()

    async def judge(target, body, started, ends, *, overloaded, flow, trace):
        begun.set()
        await asyncio.get_running_loop().run_in_executor(None, go.wait)
        return HttpReply(status=200, body=b"late but right")

    served = serve(judge, shutdown_seconds=0.05)
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 2") + b"{}")
    assert begun.wait(20)
    stopping = asyncio.run_coroutine_threadsafe(served.front.stop(), served.loop.loop)
    served.until(lambda: served.front.load.requests == 1)
    with pytest.raises(OSError):
        served.raw()
    go.set()
    status, headers, body = answered(connection)
    assert (status, headers["Connection"], body) == (200, "close", b"late but right")
    stopping.result(20)


def test_stop_breaks_handshakes_off(serve):
    """A handshake that has not ended at the stop is no request."""
    served = serve(shutdown_seconds=0.05)
    silent, half = served.raw(), served.raw()
    half.sendall(b"\x16\x03\x01\x02\x00")
    served.until(lambda: len(served.front._listener._tasks) == len(served.front._listener._silent) == 1)
    served.loop.run(served.front.stop())
    assert silent.recv(1) == b""
    assert half.recv(1) == b""


def test_stop_does_not_wait_for_ever(serve):
    """A review that outlasts the time to stop is cancelled."""
    judge = Waiting()
    served = serve(judge, stop_seconds=0.02, shutdown_seconds=0.02)
    connection = served.tls()
    connection.sendall(post_head("Content-Length: 2") + b"{}")
    assert judge.begun.wait(20)
    served.loop.run(served.front.stop())
    assert judge.cancelled.wait(20)


def test_a_connection_that_has_ended_is_freed_at_once(serve, answered):
    """It is part of no cycle of references, so no garbage collection needs to look for it."""
    served = serve()
    gc.collect()
    before = connections()
    client = served.tls()
    client.sendall(post_head("Content-Length: 2") + b"{}")
    assert answered(client)[0] == 200
    gc.disable()
    try:
        assert connections() == before + 1
        client.close()
        served.until(lambda: connections() == before)
    finally:
        gc.enable()


def connections():
    """How many connections this process has in memory."""
    return sum(type(each) is Connection for each in gc.get_objects())
