"""Where a request ends is never a matter of opinion: what another server may read as two, this one refuses as one.

kube-apiserver sends one Content-Length and no Transfer-Encoding. A proxy in front of the gateway may read doubtful
framing otherwise; then a client could hide a second request, with another path, in the body of the first.
"""

import contextlib
import re

import pytest

from gateway.serving.refusals import Refusal

HEAD = b"POST /mutate?timeout=30s HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"
SMUGGLED = b"POST /validate HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKS = b"\r\n2\r\n{}\r\n0\r\n\r\n"


def fields(*lines):
    """A request with these fields and a body of chunks."""
    return HEAD + b"".join(line + b"\r\n" for line in lines) + CHUNKS


def sized(*lines, body=b"{}"):
    """A request with these fields and a body without chunks."""
    return HEAD + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def chunks(content):
    """A request whose chunks are these bytes."""
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + content


SHAPES = {
    "TE gzip, chunked": fields(b"Transfer-Encoding: gzip, chunked"),
    "TE chunked, chunked": fields(b"Transfer-Encoding: chunked, chunked"),
    "TE chunked, identity": fields(b"Transfer-Encoding: chunked, identity"),
    "TE identity": fields(b"Transfer-Encoding: identity"),
    "TE of another name": fields(b"Transfer-Encoding: xchunked"),
    "TE with a control character": fields(b"Transfer-Encoding: \x0bchunked"),
    "TE in quotes": fields(b'Transfer-Encoding: "chunked"'),
    "TE with a parameter": fields(b"Transfer-Encoding: chunked;q=1"),
    "TE twice": fields(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    "TE twice, gzip first": fields(b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked"),
    "TE with a space before the colon": fields(b"Transfer-Encoding : chunked"),
    "TE on a folded line": fields(b"Transfer-Encoding:", b" chunked"),
    "TE in HTTP/1.0": fields(b"Transfer-Encoding: chunked").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "TE empty, with CL": sized(b"Transfer-Encoding:", b"Content-Length: 2"),
    "CL, then TE": fields(b"Content-Length: 2", b"Transfer-Encoding: chunked"),
    "TE, then CL": fields(b"Transfer-Encoding: chunked", b"Content-Length: 2"),
    "CL twice, equal": sized(b"Content-Length: 2", b"Content-Length: 2"),
    "CL twice, different": sized(b"Content-Length: 2", b"Content-Length: 3"),
    "CL as a list": sized(b"Content-Length: 2, 2"),
    "CL with a sign": sized(b"Content-Length: +2"),
    "CL in hexadecimal": sized(b"Content-Length: 0x2"),
    "CL of two numbers": sized(b"Content-Length: 2 2"),
    "CL empty": sized(b"Content-Length:"),
    "CL with a space before the colon": sized(b"Content-Length : 2"),
    "CL with an underscore": sized(b"Content_Length: 2"),
    "CL on a folded line": sized(b"Content-Length:", b" 2"),
    "a body without a length": sized(),
    "a folded line": sized(b"X: a", b" b", b"Content-Length: 2"),
    "a folded line first": HEAD.replace(b"Host", b" Host") + b"Content-Length: 2\r\n\r\n{}",
    "bare LF": sized(b"Content-Length: 2").replace(b"\r\n", b"\n"),
    "one bare LF": sized(b"X: a\nContent-Length: 2"),
    "a bare LF at the end": HEAD + b"Content-Length: 2\r\n\n{}",
    "bare CR": sized(b"X: a\rContent-Length: 2"),
    "NUL": sized(b"X: a\0b", b"Content-Length: 2"),
    "no colon": sized(b"X", b"Content-Length: 2"),
    "no name": sized(b": x", b"Content-Length: 2"),
    "two hosts": sized(b"Host: h", b"Content-Length: 2"),
    "a space after the size of a chunk": chunks(b"2 \r\n{}\r\n0\r\n\r\n"),
    "LF in chunks": chunks(b"2\n{}\n0\n\n"),
    "a chunk's size with 0x": chunks(b"0x2\r\n{}\r\n0\r\n\r\n"),
    "a chunk's size below zero": chunks(b"-2\r\n{}\r\n0\r\n\r\n"),
    "a chunk's size above 64 bits": chunks(b"ffffffffffffffff2\r\n{}\r\n0\r\n\r\n"),
    "a chunk without its end": chunks(b"2\r\n{}xx0\r\n\r\n"),
    "a chunk extension of 1 MB": chunks(b"2;" + b"a" * 1_000_000 + b"\r\n{}\r\n0\r\n\r\n"),
    "a chunk's size of 1 MB": chunks(b"0" * 1_000_000 + b"2\r\n{}\r\n0\r\n\r\n"),
    "a million bytes in chunks of one": chunks(b"1\r\n \r\n" * 300_000 + b"0\r\n\r\n"),
    "trailers of 1 MB": chunks(b"2\r\n{}\r\n0\r\n" + b"X: a\r\n" * 170_000 + b"\r\n"),
    "CL in the trailer": chunks(b"2\r\n{}\r\n0\r\nContent-Length: 50\r\n\r\n"),
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 30,
    "HTTP/1.2": sized(b"Content-Length: 2").replace(b"HTTP/1.1", b"HTTP/1.2"),
    "tabs in the request line": b"POST\t/mutate\tHTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}",
    "a control character in the path": sized(b"Content-Length: 2").replace(b"/mutate", b"/mut\x01ate"),
}


@pytest.fixture
def one_front(serve):
    return serve(linger_seconds=0.05)


@pytest.mark.parametrize("name", SHAPES)
def test_doubtful_framing_is_refused_and_ends_the_connection(one_front, name):
    """One answer of 4xx, then the end: what follows on the connection is never read as a request."""
    judged, events = len(one_front.judge.called), len(one_front.events)
    with one_front.tls() as connection:
        received = exchange(connection, SHAPES[name] + SMUGGLED)
    statuses = re.findall(rb"^HTTP/1\.[01] (\d{3}) ", received, re.MULTILINE)
    assert len(statuses) == 1
    assert statuses[0].startswith(b"4")
    assert len(one_front.judge.called) == judged
    refused = [label for kind, label in one_front.events[events:] if kind == "refused"]
    assert len(refused) == 1
    assert refused[0] in {Refusal.MALFORMED, Refusal.BODY_FRAMING, Refusal.HEADER_SIZE}


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
def test_a_request_to_upgrade_is_answered_and_ends_the_connection(one_front, protocol):
    """The upgrade is ignored (RFC 9110, 7.8); what follows could be of either protocol."""
    judged = len(one_front.judge.called)
    with one_front.tls() as connection:
        request = sized(b"Connection: Upgrade", b"Upgrade: " + protocol, b"Content-Length: 2")
        received = exchange(connection, request + SMUGGLED)
    assert received.count(b"HTTP/1.1 200 OK") == received.count(b"HTTP/1.") == 1
    assert len(one_front.judge.called) == judged + 1


@pytest.mark.parametrize(
    "lines",
    [
        (b"Content-Encoding: gzip",),
        (b"Content-Encoding: identity", b"Content-Encoding: gzip"),
        (b"Content-Encoding: identity, gzip",),
        (b"Content-Encoding: br",),
        (b"Content-Encoding:",),
    ],
)
def test_no_body_is_decompressed(one_front, lines):
    """A bomb is refused by its header, whatever it holds."""
    judged = len(one_front.judge.called)
    with one_front.tls() as connection:
        received = exchange(connection, sized(*lines, b"Content-Length: 2", b"Connection: close"))
    assert received.startswith(b"HTTP/1.1 415 ")
    assert len(one_front.judge.called) == judged


def test_one_header_is_bounded_in_all(serve, answered):
    """Fields that are each short enough make a header that is not, in one piece or in many."""
    served = serve(linger_seconds=20)
    field = b"X-Field: " + b"a" * 4_000 + b"\r\n"
    for pieces in ([HEAD + field * 20 + b"Content-Length: 2\r\n\r\n{}"], [HEAD, *[field] * 20]):
        connection = served.tls()
        for piece in pieces:
            try_to_send(connection, piece)
        status, _, text = answered(connection)
        assert status == 431
        assert b"a header of more than 32768 bytes" in text
    assert served.judge.called == []
    assert served.is_well()


def test_unfinished_headers_are_bounded_together(serve, answered):
    """Beyond the limit for all, one more is refused; those that are complete, or gone, do not count."""
    served = serve(header_bytes_in_flight=20_000)
    many = [served.tls() for _ in range(2)]
    for connection in many:
        connection.sendall(HEAD + b"X: " + b"a" * 8_000)
    headers = served.front._connections.unfinished_headers
    served.until(lambda: headers.size > 16_000)
    one_more = served.tls()
    one_more.sendall(HEAD + b"X: " + b"a" * 8_000)
    status, _, text = answered(one_more)
    assert status == 431
    assert b"the unfinished headers of all clients" in text
    assert ("limit", "header_bytes_in_flight") in served.events

    many[0].sendall(b"\r\nContent-Length: 2\r\n\r\n{}")
    assert answered(many[0])[0] == 200
    for connection in (*many, one_more):
        connection.close()
    served.until(lambda: headers.size == 0)
    assert served.is_well()


def exchange(connection, sent):
    """What is answered to these bytes until the connection ends, or the server waits for more."""
    try_to_send(connection, sent)
    received = b""
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            received += piece
    return received


def try_to_send(connection, sent):
    """Send as much as is taken: a server that refuses may take no more."""
    with contextlib.suppress(OSError):
        connection.sendall(sent)
