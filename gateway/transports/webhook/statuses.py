"""kube-apiserver's message about a webhook's HTTP status other than 200 to 206: that of its client library.

A table, NewGenericServerResponse (k8s.io/apimachinery, pkg/api/errors). For three of the codes the message is the
webhook's body, if that is text. A body that is a metav1.Status of a failure takes precedence: its message is used.
"""

import json
from typing import Any, Final

from gateway.transports.webhook.media import MediaTypeError, media_type

SUCCESSES: Final = range(200, 207)

_SHOWN_BYTES: Final = 2048
"""maxUnstructuredResponseTextBytes: how much of a body the message may have; ``message_characters`` applies too."""

_STATUS_BYTES: Final = 65_536
"""The maximum size of a body that is parsed as a metav1.Status. Its message is cut to a line in any case."""

_SERVER_ERROR: Final = 500

_MESSAGES: Final = {
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
_BODY_IS_MESSAGE: Final = {403, 415}
_UNKNOWN: Final = "unknown"


def status_message(status: int, content_type: str, body: bytes) -> str:
    """The message about a call with this status."""
    return _own_status(body) or _generic(status, _text(content_type, body))


def _generic(status: int, text: str) -> str:
    if status in _MESSAGES:
        return _MESSAGES[status]
    if status in _BODY_IS_MESSAGE:
        return text
    if status == _NOT_ACCEPTABLE:
        unable = "the server was unable to respond with a content type that the client supports"
        return unable if text in {"", _UNKNOWN} else text
    if status >= _SERVER_ERROR:
        quoted = json.dumps(text, ensure_ascii=False)
        return f"an error on the server ({quoted}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _text(content_type: str, body: bytes) -> str:
    """The body, if its Content-Type is text."""
    try:
        is_text = not content_type or media_type(content_type).startswith("text/")
    except MediaTypeError:
        is_text = False
    return body[:_SHOWN_BYTES].decode(errors="replace").strip() if is_text else _UNKNOWN


def _own_status(body: bytes) -> str:
    """The message of a metav1.Status; empty if the body is none."""
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
