"""Bad input to one running ``serve``: each a clear answer and a log line, no traceback, and the next request served."""

import json
import random
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.integration.client import Answer, Client, message, post
from tests.integration.process import WAIT_SECONDS, parsed
from tests.integration.running import policy, source
from tests.traffic import recording, recordings

WITNESS = Path(__file__).parent / "witness.py"
EVERYTHING = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]

GOOD = recording("cm-create.0m")
UID = json.loads(GOOD.body)["request"]["uid"]
LIMIT = 200_000


@pytest.fixture(scope="module")
def process(serving, tmp_path_factory):
    """A gateway whose policies read and change every object, with a small body limit."""
    folder = tmp_path_factory.mktemp("bad")
    every = {"worker": "witness", "rules": EVERYTHING}
    text = source(
        workers={"witness": {"target": "unix:witness.sock", "command": ["python", str(WITNESS)]}},
        mutating=[policy("stamp", **every)],
        validating=[policy("gate", **every)],
    )
    (folder / "policies.yaml").write_text(text)
    arguments = ("--policies", folder / "policies.yaml", "--worker-startup-timeout", 30, "--limit-body-bytes", LIMIT)
    yield (started := serving(*arguments).ready())
    # No input is an internal error, and none affects another client.
    assert started.process.poll() is None
    assert started.internal_errors() == []


@pytest.fixture
def client(process, trust):
    """A connection; and at its end, another one on which an ordinary request is answered."""
    with Client(process.port, trust) as connected:
        yield connected
    with Client(process.port, trust) as other:
        assert other.send(message(GOOD)).response["allowed"]


@pytest.fixture
def warned(process):
    """``warned(why)``: the warning that was logged in this test and whose text holds ``why``.

    Of more than ten in a second, the line that says how many were left out.
    """
    before = len(list(process.err))

    def find(why, field="why"):
        def new(line):
            entry = parsed(line)
            if entry is None or entry["level"] != "warning":
                return False
            return why in str(entry.get(field, "")) or entry.get("left_out", 0) > 0

        lines = process.err
        assert lines.find(lambda line: new(line) and line in list(lines)[before:]) is not None
        return True

    return find


def review(**changes):
    """The good review with these members of its request changed; absent where None is given."""
    body = json.loads(GOOD.body)
    body["request"] = {name: value for name, value in (body["request"] | changes).items() if value is not None}
    return json.dumps(body).encode()


def envelope(**changes):
    """The good review with these members changed."""
    body = json.loads(GOOD.body) | changes
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def nested(levels):
    """The good review, so many levels deep: the review, its request, its object, and arrays."""
    inner = (levels - 3) * "[" + (levels - 3) * "]"
    return review(object={"a": "DEEP"}).replace(b'"DEEP"', inner.encode())


def is_one_line(answer: Answer):
    return (
        answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        and answer.text.startswith("admission-gateway: ")
        and answer.text.endswith("\n")
        and answer.text[:-1].isprintable()
        and len(answer.text) < 500
    )


NO_REVIEWS = {
    "nothing": (b"", "empty"),
    "a word": (b"hello", "not JSON"),
    "a text": (b'"hello"', "not an AdmissionReview"),
    "an array": (b"[]", "not an AdmissionReview"),
    "null": (b"null", "not an AdmissionReview"),
    "an empty object": (b"{}", "not an AdmissionReview"),
    "two documents": (GOOD.body + GOOD.body, "not JSON"),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD.body, "not JSON"),
    "UTF-16": (GOOD.body.decode().encode("utf-16"), "not UTF-8"),
    "truncated": (GOOD.body[: len(GOOD.body) // 2], "not JSON"),
    "without its last bracket": (GOOD.body.rstrip()[:-1], "not JSON"),
    "invalid UTF-8": (GOOD.body.replace(b'"CREATE"', b'"CRE\xffATE"'), "not UTF-8"),
    "invalid UTF-8 in the object": (review(object={"data": "X"}).replace(b'"X"', b'"\xc0\xaf"'), "not UTF-8"),
    "257 levels": (nested(257), "deeper than 256 levels"),
    "100,000 levels": (50_000 * b"[" + 50_000 * b"]", "deeper than 256 levels"),
    "100,000 open brackets": (100_000 * b"[", "deeper than 256 levels"),
    "100,000 objects": (20_000 * b'{"a":', "deeper than 256 levels"),
    "another kind": (envelope(kind="Pod"), "not an AdmissionReview"),
    "no kind": (envelope(kind=None), "not an AdmissionReview"),
    "a kind that is a number": (envelope(kind=5), "not an AdmissionReview"),
    "another version": (envelope(apiVersion="admission.k8s.io/v2"), "apiVersion is not one of"),
    "another group": (envelope(apiVersion="admission.example.com/v1"), "apiVersion is not one of"),
    "no version": (envelope(apiVersion=None), "apiVersion is not one of"),
    "no request": (envelope(request=None), "has no request"),
    "a request that is null": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}',
        "no request",
    ),
    "a request that is a text": (envelope(request="x"), "not an AdmissionReview"),
    "an answer": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}}',
        "has no request",
    ),
    "no uid": (review(uid=None), "request.uid is missing or empty"),
    "an empty uid": (review(uid=""), "request.uid is missing or empty"),
    "a uid that is a number": (review(uid=7), "request.uid cannot be read"),
    "a uid that is an object": (review(uid={"a": "b"}), "request.uid cannot be read"),
    "no operation": (review(operation=None), "request.operation is missing"),
    "an unknown operation": (review(operation="PATCH"), "request.operation is not one of"),
    "no resource": (review(resource=None), "request.resource is missing"),
    "a resource that is a text": (review(resource="pods"), "request.resource cannot be read"),
    "a dryRun that is a text": (review(dryRun="yes"), "request.dryRun cannot be read"),
    "a lone surrogate": (review(uid="X").replace(b'"X"', b'"\\ud800"'), "not JSON"),
}


@pytest.mark.parametrize("name", NO_REVIEWS)
def test_what_is_no_review_is_refused_in_one_line(client, warned, name):
    """A body that is no AdmissionReview with a uid is HTTP 400, one line that says why, and that line in the log."""
    body, why = NO_REVIEWS[name]
    answer = client.send(post(body))
    assert answer.status == 400
    assert is_one_line(answer), answer
    assert why in answer.text
    assert warned(why, "error")
    assert client.send(message(GOOD)).response["uid"] == UID


HTTP = {
    "another path": (post(GOOD.body, "/v1/mutate?timeout=10s"), 404, "nothing at"),
    "a path below": (post(GOOD.body, "/mutate/entry?timeout=10s"), 404, "nothing at"),
    "the root": (post(GOOD.body, "/?timeout=10s"), 404, "nothing at"),
    "GET": (post(b"", "/mutate", ("Content-Type", None)).replace(b"POST", b"GET"), 405, "is not for /mutate"),
    "PUT": (post(GOOD.body).replace(b"POST", b"PUT", 1), 405, "is not for /mutate"),
    "no type": (post(GOOD.body, "/mutate", ("Content-Type", None)), 415, "no Content-Type"),
    "another type": (post(GOOD.body, "/mutate", ("Content-Type", "application/yaml")), 415, "is not supported"),
    "another charset": (
        post(GOOD.body, "/mutate", ("Content-Type", "application/json; charset=latin-1")),
        415,
        "is not supported",
    ),
    "compressed": (post(GOOD.body, "/mutate", ("Content-Encoding", "gzip")), 415, "Content-Encoding"),
}


@pytest.mark.parametrize("name", HTTP)
def test_a_wrong_header_is_refused_in_one_line(client, warned, name):
    """Path, method and type have their statuses: one line of text, a log line, and the connection lives on."""
    sent, status, why = HTTP[name]
    answer = client.send(sent)
    assert answer.status == status
    assert is_one_line(answer), answer
    assert why in answer.text
    assert warned(why)
    assert client.send(message(GOOD)).response["uid"] == UID


def test_a_review_that_is_too_large_is_denied(client, warned):
    """Where the uid stands in the first 4 KB, a review beyond the limit is answered by a review: a denial, code 413."""
    large = GOOD.body.replace(b'"object":{', b'"object":{"padding":"%s",' % (LIMIT * b"x"))
    answer = client.send(post(large))
    assert answer.status == 200
    assert answer.review["apiVersion"] == "admission.k8s.io/v1"
    assert answer.response["uid"] == UID
    assert answer.response["allowed"] is False
    status = answer.response["status"]
    assert (status["code"], status["reason"]) == (413, "RequestEntityTooLarge")
    assert status["message"].startswith("REQUEST_TOO_LARGE: ")
    assert warned("REQUEST_TOO_LARGE")


def test_a_review_that_is_too_large_is_recorded(client, process):
    """It is a bad event of the objective, and ``/explain`` has who sent what, and why it was refused."""
    failed = {"phase": "mutating", "outcome": "failed"}
    before = process.metric("reviews_total", **failed)
    client.send(post(review(uid="too-large", object={"padding": LIMIT * "x"})))
    assert process.metric("reviews_total", **failed) == before + 1
    (decision,) = json.loads(process.admin("/explain/too-large"))["decisions"]
    assert (decision["outcome"], decision["reason"]) == ("failed", "REQUEST_TOO_LARGE")
    assert (decision["status"]["code"], decision["policies"], decision["cuts"]) == (413, [], [])
    assert f"the limit is {LIMIT};" in decision["status"]["message"]
    sent = json.loads(GOOD.body)["request"]
    assert decision["request"]["name"] == sent["name"]
    assert decision["request"]["user"] == sent["userInfo"]["username"]
    text = process.admin("/explain/too-large?o=text")
    assert "The gateway refused it: REQUEST_TOO_LARGE: this AdmissionReview has " in text


def test_without_a_uid_in_its_beginning_too_large_is_413(client, warned):
    """Where the first 4 KB hold no uid, a body beyond the limit is HTTP 413 and one line."""
    answer = client.send(post(b'{"padding":"%s",' % (LIMIT * b"x") + GOOD.body[1:]))
    assert answer.status == 413
    assert is_one_line(answer)
    assert warned("REQUEST_TOO_LARGE")


def test_a_body_that_ends_too_early_is_a_hang_up(process, trust, client, warned):
    """A client that closes before its body is complete gets no answer, and is logged."""
    with Client(process.port, trust) as other:
        other.sendall(message(GOOD)[:-10])
    assert warned("closed before the body")


def test_what_is_no_http_is_refused(client, warned):
    """Bytes that are no HTTP are answered with 400 and one line."""
    answer = client.send(b"\x00\x01\x02 nonsense\r\n\r\n")
    assert answer.status == 400
    assert is_one_line(answer)
    assert warned("not an HTTP/1.1 request")


def test_plain_http_gets_an_answer_in_plain_http(process, client, warned):
    """Who forgets TLS is reported in plain HTTP."""
    with socket.create_connection(("127.0.0.1", process.port), timeout=WAIT_SECONDS) as connection:
        connection.sendall(message(GOOD))
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"https://" in said
    assert warned("plain HTTP")


def test_256_levels_are_judged(client):
    """A review may nest 256 levels deep, and is judged and changed like any other."""
    answer = client.send(post(nested(256)))
    assert answer.status == 200
    assert answer.response["uid"] == UID


def test_of_duplicate_keys_the_last_wins(client):
    """A key that is there twice counts with its last value, as in the API server's own decoder."""
    body = GOOD.body.replace(b'"request":{', b'"request":{"uid":"first","operation":"NONE",', 1)
    answer = client.send(post(body))
    assert answer.status == 200
    assert answer.response["uid"] == UID
    twice = b'{"request":{"uid":"first"},"kind":"Pod",' + GOOD.body[1:]
    assert client.send(post(twice)).response["uid"] == UID


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize("value", [[1], "text", 5, True, {}], ids=repr)
def test_an_object_of_another_type_is_answered(client, value, path):
    """An object that is none is for the policies to judge, or refused in one line; the uid is echoed."""
    answer = client.send(post(review(object=value, oldObject=value, options=value), f"{path}?timeout=10s"))
    if answer.status == 200:
        assert answer.response["uid"] == UID
        assert "patch" not in answer.response or value == {}
    else:
        assert answer.status == 400
        assert is_one_line(answer)


NUMBERS = {
    "1e400": b"1e400",
    "-1e400": b"-1e400",
    "1e-400": b"1e-400",
    "an integer of 10,000 digits": b"7" * 10_000,
    "a fraction of 10,000 digits": b"0." + b"7" * 10_000,
    "an exponent of 10,000 digits": b"1e" + b"9" * 10_000,
    "more than 64 bits": b"123456789012345678901234567890",
    "2^63": b"9223372036854775808",
    "2^53 and a bit": b"9007199254740993",
}


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_huge_number_is_answered(client, warned, name, path):
    """A number that no double holds is judged, or refused in one line: never a crash, never a silent allow."""
    body = review(object={"metadata": {"name": "n"}, "data": "N"}).replace(b'"N"', NUMBERS[name])
    answer = client.send(post(body, f"{path}?timeout=10s"))
    if answer.status == 200:
        assert answer.response["uid"] == UID
    else:
        assert answer.status == 400
        assert is_one_line(answer)
        assert warned("request.object cannot be read", "error")


# ------------------------------------------------------------------------------------------------------- random


FRAGMENTS = (b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u0000", b"\\ud83d", b"null", b"true", b"1e999", b"-0")
FRAGMENTS += (
    b"\x00",
    b"\xff",
    b"\xc3\x28",
    b"\xe2\x80\xa8",
    b'"uid":"x",',
    b'"request":{},',
    b'"uid":null,',
    b"\xf0\x9f",
)


def mutated(chance, bodies):
    """A recorded body with one to four accidents."""
    body = bytearray(chance.choice(bodies))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(body) + 1)
        match chance.randrange(6):
            case 0:
                body[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del body[at : at + chance.choice((1, 2, 10, 100, len(body)))]
            case 2:
                body[at:at] = chance.choice(FRAGMENTS)
            case 3:
                other = chance.choice(bodies)
                body[at:] = other[chance.randrange(len(other)) :]
            case 4:
                body[at:at] = body[at : at + chance.randrange(1, 200)]
            case _:
                # Early in the body, where the members are that the gateway reads.
                body[at % 300 : at % 300] = chance.choice(FRAGMENTS)
    return bytes(body)


def test_damaged_reviews_are_answered(process, trust, client):
    """Whatever accident a recorded body has had: a review with its uid, or 400 and one line; on one connection."""
    chance = random.Random(3)
    bodies = [each.body for each in recordings() if len(each.body) < 20_000]
    statuses = []
    for number in range(300):
        body = mutated(chance, bodies)
        answer = client.send(post(body, ("/mutate", "/validate")[number % 2] + "?timeout=10s"))
        statuses.append(answer.status)
        if answer.status == 200:
            # Python's own reader, which takes the last of two members too, is the oracle.
            called = json.loads(body)
            assert answer.response["uid"] == called["request"]["uid"], body
            assert answer.review["apiVersion"] == called["apiVersion"], body
        else:
            assert answer.status == 400, body
            assert is_one_line(answer), body
    assert {200, 400} == set(statuses)
    assert statuses.count(200) > 20


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no other TLS client can renegotiate")
def test_a_client_cannot_renegotiate(process, client):
    """TLS 1.2 lets a client ask for one handshake after another: the first is refused, and the connection ends."""
    del client
    command = ("openssl", "s_client", "-connect", f"127.0.0.1:{process.port}", "-tls1_2", "-legacy_renegotiation")
    asked = subprocess.run(command, input=b"R\n", capture_output=True, timeout=WAIT_SECONDS, check=False)
    assert b"Protocol  : TLSv1.2" in asked.stdout
    assert b"RENEGOTIATING" in asked.stdout + asked.stderr
    assert b"no renegotiation" in asked.stderr
    assert asked.returncode == 1
