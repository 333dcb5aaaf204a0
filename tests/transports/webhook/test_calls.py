"""What a webhook is sent, and what counts as its answer."""

import asyncio
import gzip
import json

import pytest

from gateway.documents.documents import DocumentBuilder
from gateway.engine.verdicts import Allow, Deny, Failure
from gateway.policies.model import Phase
from gateway.reasons import Reason
from gateway.review.request import decode
from gateway.scopes.inputs import Inputs
from tests.traffic import recording, recordings
from tests.transports.webhook.caller import question
from tests.transports.webhook.servers import http, json_patch, review

HEADERS = ["Host", "User-Agent", "Content-Length", "Accept", "Content-Type", "Accept-Encoding"]


def reviews():
    """Recorded reviews, in the version in which they were sent."""
    return [each for each in recordings() if len(each.body) < 1_000_000]


async def test_a_call_has_the_bytes_of_kube_apiserver_but_for_the_uid(calling):
    """A policy without inputs is sent what kube-apiserver sent the gateway, byte for byte, with a fresh uid."""
    for version in ("v1", "v1beta1"):
        async with calling(versions=(version,)) as (hook, caller):
            for each in reviews():
                request = decode(each.body)
                if request.api_version != f"admission.k8s.io/{version}":
                    continue
                document = DocumentBuilder(request).of(Inputs.EVERYTHING, None, changed=False)
                assert isinstance(await caller.call(document=document.content), Allow), each.name
                got = hook.got[-1]
                assert got.body == each.body.replace(request.uid.encode(), got.uid.encode()), each.name
                assert got.uid != request.uid
            assert hook.got


async def test_the_headers_are_those_of_kube_apiserver_in_their_order(calling):
    """Nothing more than it sends, nothing less, and the Host as it writes it."""
    recorded = dict(recording("cm-create.0m").headers)
    async with calling() as (hook, caller):
        await caller.call()
        await caller.call(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate="a=1")
    plain, traced = hook.got
    assert [name for name, _ in plain.headers] == HEADERS == list(recorded)
    expected = recorded | {"Host": f"127.0.0.1:{hook.port}", "Content-Length": str(len(plain.body))}
    assert dict(plain.headers) == expected
    assert [name for name, _ in traced.headers] == [*HEADERS[:-1], "Traceparent", "Tracestate", HEADERS[-1]]
    assert dict(traced.headers)["Tracestate"] == "a=1"


async def test_each_call_has_a_uid_of_its_own(calling):
    """Also where the question is the same."""
    async with calling() as (hook, caller):
        for _ in range(3):
            await caller.call()
    assert len({got.uid for got in hook.got}) == 3


@pytest.mark.parametrize(
    ("seconds", "own", "said"), [(3.95, 30.0, "4s"), (100.0, 7.0, "7s"), (5.0, 0.5, "1s"), (1000.0, 1000.0, "30s")]
)
async def test_the_timeout_is_what_is_left_rounded_up(calling, seconds, own, said):
    """At most the policy's own, at least one second, at most thirty."""
    async with calling() as (hook, caller):
        await caller.call(seconds=seconds, timeout=own)
    assert hook.got[0].target == f"/judge?timeout={said}"


@pytest.mark.parametrize(("versions", "said"), [(("v1beta1", "v1"), "v1beta1"), (("v7", "v1", "v1beta1"), "v1")])
async def test_the_first_known_version_is_spoken(calling, versions, said):
    """As kube-apiserver takes the first one that it knows."""
    async with calling(versions=versions) as (hook, caller):
        assert isinstance(await caller.call(), Allow)
    assert hook.got[0].review["apiVersion"] == f"admission.k8s.io/{said}"


async def test_no_version_in_common_is_an_error_of_the_configuration(calling):
    """Nothing is sent."""
    async with calling(versions=("v7",)) as (hook, caller):
        answer = await caller.call()
    assert not hook.got
    assert answer.reason is Reason.CONFIGURATION
    assert answer.message == (
        'failed calling webhook "judge.test.example.com": could not create admission objects: webhook does not accept '
        "known AdmissionReview versions (v1, v1beta1)"
    )


async def test_verdicts_are_taken_over(calling):
    """Allow with a patch, deny with a status."""
    operations = [{"op": "add", "path": "/metadata/labels", "value": {}}]

    def script(got):
        if got.review["request"]["operation"] == "CREATE":
            return http(body=review(got, **json_patch(*operations), warnings=["w"]))
        return http(body=review(got, allowed=False, status={"code": 418, "message": "no", "reason": "Because"}))

    async with calling(script) as (_, caller):
        allowed = await caller.call()
        denied = await caller.call(document=b'{"operation":"DELETE"}')
    assert isinstance(allowed, Allow)
    assert json.loads(allowed.change.content) == operations
    assert allowed.warnings == ("w",)
    assert denied == Deny(code=418, message="no", reason="Because")


async def test_a_validating_call_may_not_patch(calling):
    """The phase is the call's."""
    async with calling(lambda got: http(body=review(got, **json_patch()))) as (_, caller):
        answer = await caller.call(phase=Phase.VALIDATING)
    assert answer.reason is Reason.INVALID_RESPONSE
    assert answer.message.endswith("validating webhook may not return response.patch")


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/vnd.kubernetes.protobuf", 'a/b; c="d"'])
async def test_the_content_type_does_not_matter(calling, content_type):
    """As long as it is one."""
    async with calling(lambda got: http(body=review(got), content_type=content_type)) as (_, caller):
        assert isinstance(await caller.call(), Allow)


async def test_a_content_type_that_is_none_is_a_failure(calling):
    """In the words of kube-apiserver."""
    async with calling(lambda got: http(body=review(got), content_type=";;;bad")) as (_, caller):
        answer = await caller.call()
    assert answer.reason is Reason.INVALID_RESPONSE
    assert answer.message.endswith("Internal error occurred: mime: no media type")


@pytest.mark.parametrize("status", [200, 201, 202, 206])
async def test_every_success_is_one(calling, status):
    """Not only 200."""
    async with calling(lambda got: http(status, review(got))) as (_, caller):
        assert isinstance(await caller.call(), Allow)


async def test_an_empty_answer_is_a_failure(calling):
    """A success with nothing in it."""
    async with calling(lambda _: http()) as (_, caller):
        answer = await caller.call()
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "0-length response with status code: 200 and content type: application/json" in answer.message


@pytest.mark.parametrize(
    ("status", "content_type", "body", "words"),
    [
        (400, "application/json", b"{}", "the server rejected our request for an unknown reason"),
        (403, "text/plain", b" go away \n", "go away"),
        (403, "application/json", b"{}", "unknown"),
        (404, "text/plain", b"x", "the server could not find the requested resource"),
        (500, "text/plain", b"oh no", 'an error on the server ("oh no") has prevented the request from succeeding'),
        (502, None, b"oh no", 'an error on the server ("oh no") has prevented the request from succeeding'),
        (503, "text/plain", b"", "the server is currently unable to handle the request"),
        (
            418,
            "text/plain",
            b"tea",
            "the server responded with the status code 418 but did not return more information",
        ),
        (207, "text/plain", b"", "the server responded with the status code 207 but did not return more information"),
        (304, "text/plain", None, "the server responded with the status code 304 but did not return more information"),
        (500, "application/json", b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no"}', "no"),
    ],
)
async def test_another_status_is_a_failure_in_the_words_of_kube_apiserver(calling, status, content_type, body, words):
    """Whatever its body says: a verdict in it is none."""
    answered = http(status, body or b"", content_type=content_type)
    async with calling(lambda _: answered) as (hook, caller):
        answer = await caller.call()
    assert (answer.reason, len(hook.got)) == (Reason.WORKER_FAILURE, 1)
    assert answer.message == f'failed calling webhook "judge.test.example.com": failed to call webhook: {words}'


async def test_gzip_is_unpacked_whole_or_in_members(calling):
    """As it was requested."""

    def script(got):
        content = review(got)
        return http(body=gzip.compress(content[:10]) + gzip.compress(content[10:]), content_encoding="gzip")

    async with calling(script) as (_, caller):
        assert isinstance(await caller.call(), Allow)


async def test_chunks_and_http_1_0_are_read(calling):
    """Chunked, and ended by the end of the connection without a word of TLS about it."""

    async def script(got, writer):
        content = review(got)
        if len(got.body) % 2:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content))
            await writer.drain()
        else:
            writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + content)
            await writer.drain()
            writer.close()

    async with calling(script) as (hook, caller):
        for document in (b'{"a":1}', b'{"a":12}'):
            assert isinstance(await caller.call(document=document), Allow)
    assert {len(got.body) % 2 for got in hook.got} == {0, 1}


async def test_a_large_answer_is_read_as_a_small_one(calling):
    """One that is read in a thread."""
    async with calling(lambda got: http(body=review(got, warnings=["w" * 1_000_000]))) as (_, caller):
        assert isinstance(await caller.call(), Allow)


async def test_a_cancelled_call_closes_its_connection(calling):
    """So the webhook sees it; one with side effects goes on to its end."""
    let_go = asyncio.Event()

    async def script(got, writer):
        await let_go.wait()
        writer.write(http(body=review(got)))
        await writer.drain()

    async with calling(script) as (hook, caller):
        answer, cancel = caller.put(question())
        await hook.reached.wait()
        hook.reached.clear()
        cancel()
        await caller.worker.idle()
        kept, cancel_kept = caller.put(question(cancellable=False))
        await hook.reached.wait()
        cancel_kept()
        let_go.set()
        await caller.worker.idle()
        assert caller.events.usable == 1
        answer.close()
        kept.close()


async def test_whatever_comes_is_no_exception(calling):
    """Bytes of no protocol are a failure with a name."""
    async with calling(lambda _: b"what?\r\n\r\n") as (_, caller):
        answer = await caller.call()
    assert isinstance(answer, Failure)
    assert answer.reason is Reason.INVALID_RESPONSE
    assert "malformed HTTP response" in answer.message
