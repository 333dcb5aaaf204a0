"""All failures of calls of a webhook, with their reason codes. No other module of this package makes one.

The messages are kube-apiserver's if it has one: ``failed calling webhook "NAME": …``. The hint, which is in the log
too, is what the operator can do.

=========================================================  ======================
error                                                      reason
=========================================================  ======================
no connection: DNS, TCP, TLS, rejected certificate         WORKER_UNAVAILABLE
the connection is lost before the answer is complete       WORKER_UNAVAILABLE
the deadline has passed                                    WORKER_TIMEOUT
another status than 2xx, a redirect to another host        WORKER_FAILURE
an answer that is not HTTP, too large, or not gzip         INVALID_RESPONSE
an invalid AdmissionReview (``reviews``)                   INVALID_RESPONSE
too many bytes in memory                                   OVERLOADED
credentials, authorities or a URL that cannot be used      CONFIGURATION
no version of AdmissionReview in common                    CONFIGURATION
an exception in the gateway                                INTERNAL
=========================================================  ======================
"""

import errno
import json
import os
import socket
import ssl
from typing import Final

import aiohttp

from gateway.engine.verdicts import Failure
from gateway.reasons import Reason
from gateway.transports.messages import one_line
from gateway.transports.webhook.tls_errors import ended_hint, handshake_message

_ATTEMPTED: Final = "failed to call webhook"
_RESET: Final = frozenset({errno.ECONNRESET, errno.EPIPE})


class WebhookCallError(Exception):
    """A call has failed. ``stale_connection``: it was sent on an idle connection, and there was no response at all."""

    def __init__(self, failure: Failure, *, stale_connection: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.stale_connection = stale_connection


def timeout_failure(name: str, url: str) -> Failure:
    """The deadline has passed."""
    hint = "it did not answer in time; check what it waits for, or raise timeoutSeconds"
    return _named(Reason.WORKER_TIMEOUT, name, f"Post {_quoted(url)}: context deadline exceeded", hint)


class Failures:
    """Converts the errors of one webhook to failures.

    Args:
        worker: its Worker's name.
        dialled: HOST:PORT to connect to.
        host: the name that its certificate must have.
        characters: how much of the webhook's text a message keeps.
    """

    __slots__ = ("_characters", "_dialled", "_host", "_worker")

    def __init__(self, worker: str, dialled: str, host: str, characters: int) -> None:
        self._worker = worker
        self._dialled = dialled
        self._host = host
        self._characters = characters

    # ------------------------------------------------------------------------------------------- the connection

    def of(  # noqa: PLR0911 - a table
        self, name: str, url: str, error: Exception, *, has_client_certificate: bool, reused: bool
    ) -> Failure:
        """An exception of aiohttp.

        ``has_client_certificate``: whether the gateway presents one; ``reused``: whether the connection was used
        before.
        """
        match error:
            case aiohttp.ClientConnectorCertificateError():
                return self._tls(name, url, error.certificate_error, has_client_certificate=has_client_certificate)
            case aiohttp.ClientConnectorDNSError():
                return self._unknown_host(name, url, error.os_error)
            case aiohttp.ClientConnectorError():
                return self._connecting(
                    name, url, error.os_error, has_client_certificate=has_client_certificate, reused=reused
                )
            case aiohttp.ClientPayloadError():
                return self._lost(name)
            case aiohttp.ClientResponseError() | aiohttp.http.HttpProcessingError():
                return self._no_http(name, url, error.message)
            case OSError() if not isinstance(error, aiohttp.ServerConnectionError):
                return self._connecting(name, url, error, has_client_certificate=has_client_certificate, reused=reused)
        message, hint = self.one_line(str(error)) or type(error).__name__, _CHECK
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            message = f"dial tcp {self._dialled}: i/o timeout"
        elif isinstance(error, aiohttp.ServerDisconnectedError):
            # Python 3.13: also if the webhook rejects the handshake; before, that was a reset connection.
            message = "EOF"
            hint = _CLOSED if reused else ended_hint(has_client_certificate=has_client_certificate)
        return self._unavailable(name, url, message, hint)

    def _unknown_host(self, name: str, url: str, error: OSError) -> Failure:
        host = self._dialled.rpartition(":")[0]
        hint = "outside of its cluster, a Service has no DNS name; set its address with --resolve"
        return self._unavailable(name, url, f"dial tcp: lookup {host}: {_lookup_message(error)}", hint)

    def _connecting(
        self, name: str, url: str, error: OSError, *, has_client_certificate: bool, reused: bool
    ) -> Failure:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError):
            cause = cause.__cause__
        if isinstance(cause, ssl.SSLError):
            return self._tls(name, url, cause, has_client_certificate=has_client_certificate)
        # Without errno: uvloop's own error, or aiohttp could not write to a closed connection.
        if error.errno is None or error.errno in _RESET:
            message = f"read tcp {self._dialled}: read: {_os_message(error)}" if error.errno else "EOF"
            return self._unavailable(
                name, url, message, _CLOSED if reused else ended_hint(has_client_certificate=has_client_certificate)
            )
        return self._unavailable(name, url, f"dial tcp {self._dialled}: connect: {_os_message(error)}", _CHECK)

    def _tls(self, name: str, url: str, error: Exception, *, has_client_certificate: bool) -> Failure:
        message, hint = handshake_message(error, self._host, has_client_certificate=has_client_certificate)
        return self._unavailable(name, url, message, hint)

    def _no_http(self, name: str, url: str, observed: str) -> Failure:
        return self._invalid(
            name,
            f"Post {_quoted(url)}: net/http: HTTP/1.x transport connection broken: malformed HTTP response: "
            f"{self.one_line(observed)}",
            "webhooks are called over HTTP/1.1; check which server listens at this address",
        )

    def _lost(self, name: str) -> Failure:
        return _named(
            Reason.WORKER_UNAVAILABLE,
            name,
            "unexpected error when reading response body. Please retry. Original error: unexpected EOF",
            _CLOSED,
        )

    def closed(self, name: str) -> Failure:
        """The gateway has closed its connections to the webhook."""
        return _named(Reason.WORKER_UNAVAILABLE, name, "the gateway has closed its connections", "")

    # ---------------------------------------------------------------------------------------------- the answer

    def status(self, name: str, status: int, message: str) -> Failure:
        """Another status than 2xx, with kube-apiserver's message."""
        hint = f"it answered with the HTTP status {status}; see its log"
        return _named(Reason.WORKER_FAILURE, name, self.one_line(message), hint)

    def redirected(self, name: str, url: str, status: int, location: str) -> Failure:
        """A redirect that is not followed."""
        return _named(
            Reason.WORKER_FAILURE,
            name,
            f"Post {_quoted(url)}: redirected with status {status} to {_quoted(self.one_line(location))}",
            "only 307 and 308 to the same host and port are followed, because the review and the credentials are for "
            "the configured webhook; configure its new URL",
        )

    def too_many_redirects(self, name: str, url: str, count: int) -> Failure:
        """More redirects than are followed."""
        return _named(
            Reason.WORKER_FAILURE,
            name,
            f"Post {_quoted(url)}: stopped after {count} redirects",
            "check which server answers at this address",
        )

    def unsupported_encoding(self, name: str, coding: str) -> Failure:
        """Another Content-Encoding than gzip."""
        return self._invalid(
            name,
            f"the answer has Content-Encoding {_quoted(self.one_line(coding))}",
            "only gzip is accepted",
        )

    def broken_gzip(self, name: str) -> Failure:
        """A body that is declared as gzip, and is invalid."""
        return self._invalid(
            name, "gzip: invalid header, checksum or end", "the answer has Content-Encoding gzip; see the webhook's log"
        )

    def too_large(self, name: str, limit: int) -> Failure:
        """An answer above the limit."""
        return self._invalid(
            name,
            f"the answer has more than {limit} bytes, which is the limit webhook_answer_bytes",
            "the limit applies after decompression; check what the webhook sends, or raise the limit",
        )

    def too_many_values(self, name: str, limit: int) -> Failure:
        """An answer with more JSON values than the limit."""
        return self._invalid(
            name,
            f"the answer has more than {limit} values, which is the limit webhook_answer_values",
            "check what the webhook sends, or raise the limit",
        )

    def bad_media_type(self, name: str, why: str) -> Failure:
        """A Content-Type that cannot be parsed."""
        return self._invalid(name, f"Internal error occurred: {why}", "its Content-Type cannot be parsed")

    def empty(self, name: str, status: int, content_type: str) -> Failure:
        """A success without a body."""
        shown = self.one_line(content_type) or "application/json"
        return self._invalid(
            name,
            f"0-length response with status code: {status} and content type: {shown}",
            "it must answer with an AdmissionReview",
        )

    # -------------------------------------------------------------------------------------------- before a call

    def no_version(self, name: str) -> Failure:
        """The webhook supports no version of AdmissionReview that the gateway supports."""
        return Failure(
            reason=Reason.CONFIGURATION,
            message=f'failed calling webhook "{name}": could not create admission objects: webhook does not accept '
            "known AdmissionReview versions (v1, v1beta1)",
        )

    def unusable(self, name: str, why: str) -> Failure:
        """Authorities or credentials that cannot be used, or a URL that cannot be called."""
        return Failure(
            reason=Reason.CONFIGURATION, message=f'failed calling webhook "{name}": could not get REST client: {why}'
        )

    def too_much(self, held: int, limit: int) -> Failure:
        """Too many bytes are in memory."""
        return Failure(
            reason=Reason.OVERLOADED,
            message=f"webhook {self._worker!r}: {held} bytes of open calls and their answers are held, and the limit "
            f"worker_backlog_bytes is {limit}; check whether it hangs, or run more replicas of it",
        )

    def internal(self, error: Exception) -> Failure:
        """An error in the gateway."""
        return Failure(reason=Reason.INTERNAL, message=f"calling webhook {self._worker!r}: {type(error).__name__}")

    # ------------------------------------------------------------------------------------------------ messages

    def _unavailable(self, name: str, url: str, message: str, hint: str) -> Failure:
        return _named(Reason.WORKER_UNAVAILABLE, name, f"Post {_quoted(url)}: {message}", hint)

    def _invalid(self, name: str, message: str, hint: str) -> Failure:
        return _named(Reason.INVALID_RESPONSE, name, message, hint)

    def one_line(self, text: str) -> str:
        """A webhook's text, on one line and cut."""
        return one_line(text, self._characters)


_CHECK: Final = "check that it runs and listens at this address"
_CLOSED: Final = "it closed the connection without an answer; check whether it was stopped, and its log"


def _named(reason: Reason, name: str, text: str, hint: str) -> Failure:
    message = f'failed calling webhook "{name}": {_ATTEMPTED}: {text}'
    return Failure(reason=reason, message=message, hint=hint)


def _os_message(error: OSError) -> str:
    """In lower case, as in Go."""
    return os.strerror(error.errno).lower() if error.errno and error.errno > 0 else (error.strerror or str(error))


def _lookup_message(error: OSError) -> str:
    return "no such host" if error.errno in {socket.EAI_NONAME, socket.EAI_NODATA} else (error.strerror or str(error))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
