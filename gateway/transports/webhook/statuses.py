"""What kube-apiserver says of a webhook's HTTP status that is no success: the words of its client library.

A table, NewGenericServerResponse (k8s.io/apimachinery, pkg/api/errors). For three of the codes the webhook's own words
count, if it answered in text. Before all that: a body that is a metav1.Status of a failure says itself what to say.
Everything from 200 to 206 is a success.
"""

import json
from typing import Any, Final

from gateway.transports.webhook.media import MediaTypeError, media_type

SUCCESSES: Final = range(200, 207)

_SHOWN_BYTES: Final = 2048
"""maxUnstructuredResponseTextBytes: so much of a body may be repeated. Our own limit of a message comes after it."""

_STATUS_BYTES: Final = 65_536
"""Of a body that may be a metav1.Status: a larger one is not looked into. Its message is cut to a line in any case."""

_SERVER_ERROR: Final = 500

_WORDS: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}

_NOT_ACCEPTABLE: Final = 406
_OWN_WORDS: Final = {403, 415}
_UNKNOWN: Final = "unknown"


def status_words(status: int, content_type: str, body: bytes) -> str:
    """Why a call with this status has failed."""
    return _own_status(body) or _generic(status, _text(content_type, body))


def _generic(status: int, said: str) -> str:
    if status in _WORDS:
        return _WORDS[status]
    if status in _OWN_WORDS:
        return said
    if status == _NOT_ACCEPTABLE:
        unable = "the server was unable to respond with a content type that the client supports"
        return unable if said in {"", _UNKNOWN} else said
    if status >= _SERVER_ERROR:
        quoted = json.dumps(said, ensure_ascii=False)
        return f"an error on the server ({quoted}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _text(content_type: str, body: bytes) -> str:
    """The webhook's own words, where it says that these are text."""
    try:
        is_text = not content_type or media_type(content_type).startswith("text/")
    except MediaTypeError:
        is_text = False
    return body[:_SHOWN_BYTES].decode(errors="replace").strip() if is_text else _UNKNOWN


def _own_status(body: bytes) -> str:
    """The message of a metav1.Status; nothing if the body is none."""
    if not body.lstrip().startswith(b"{") or len(body) > _STATUS_BYTES:
        return ""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict) or value.get("kind") != "Status" or value.get("status") != "Failure":
        return ""
    message = value.get("message")
    return message if isinstance(message, str) else ""
