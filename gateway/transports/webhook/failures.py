"""Every way in which calling a webhook can go wrong, as a Failure with its reason code; here and nowhere else.

The messages are kube-apiserver's where it has words: ``failed calling webhook "NAME": …``. What to do about it stands
in the hint, and in the log.

=========================================================  ======================
what happens                                               reason
=========================================================  ======================
no connection: name, address, TLS, a proof refused         WORKER_UNAVAILABLE
the connection is lost before the answer is whole          WORKER_UNAVAILABLE
the deadline passes                                        WORKER_TIMEOUT
a status that is no success, a redirect that leads away    WORKER_FAILURE
an answer that is no HTTP, too large, packed otherwise     INVALID_RESPONSE
an AdmissionReview that says nothing (``reviews``)         INVALID_RESPONSE
too many calls are open, or too much is held               OVERLOADED
credentials, authorities or a URL that cannot be used      CONFIGURATION
no version of AdmissionReview in common                    CONFIGURATION
an exception of ours                                       INTERNAL
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
from gateway.transports.webhook.handshakes import ended_hint, handshake_words

_ATTEMPTED: Final = "failed to call webhook"
_RESET: Final = frozenset({errno.ECONNRESET, errno.EPIPE})


class AskError(Exception):
    """A call has failed. ``untouched``: it was sent on a connection that had been idle, and nothing came back."""

    def __init__(self, failure: Failure, *, untouched: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.untouched = untouched


def timeout_failure(name: str, url: str) -> Failure:
    """The deadline is over."""
    hint = "it did not answer in time; see what it waits for, or raise timeoutSeconds"
    return _named(Reason.WORKER_TIMEOUT, name, f"Post {_quoted(url)}: context deadline exceeded", hint)


class Failures:
    """Names what goes wrong with one webhook.

    Args:
        worker: its Worker's name.
        dialled: HOST:PORT that is connected to.
        host: what its certificate is for.
        characters: how much of the webhook's own words is kept.
    """

    __slots__ = ("_characters", "_dialled", "_host", "_worker")

    def __init__(self, worker: str, dialled: str, host: str, characters: int) -> None:
        self._worker = worker
        self._dialled = dialled
        self._host = host
        self._characters = characters

    # ------------------------------------------------------------------------------------------- the connection

    def of(  # noqa: PLR0911 - a table
        self, name: str, url: str, error: Exception, *, shows_certificate: bool, reused: bool
    ) -> Failure:
        """What aiohttp raised.

        ``shows_certificate``: whether the gateway has one to prove itself with; ``reused``: whether the connection had
        carried calls before.
        """
        match error:
            case aiohttp.ClientConnectorCertificateError():
                return self._tls(name, url, error.certificate_error, shows_certificate=shows_certificate)
            case aiohttp.ClientConnectorDNSError():
                return self._unknown_host(name, url, error.os_error)
            case aiohttp.ClientConnectorError():
                return self._connecting(name, url, error.os_error, shows_certificate=shows_certificate, reused=reused)
            case aiohttp.ClientPayloadError():
                return self._lost(name)
            case aiohttp.ClientResponseError() | aiohttp.http.HttpProcessingError():
                return self._no_http(name, url, error.message)
            case OSError() if not isinstance(error, aiohttp.ServerConnectionError):
                return self._connecting(name, url, error, shows_certificate=shows_certificate, reused=reused)
        words, hint = self.one_line(str(error)) or type(error).__name__, _LOOK
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            words = f"dial tcp {self._dialled}: i/o timeout"
        elif isinstance(error, aiohttp.ServerDisconnectedError):
            words, hint = "EOF", _CLOSED
        return self._unavailable(name, url, words, hint)

    def _unknown_host(self, name: str, url: str, error: OSError) -> Failure:
        host = self._dialled.rpartition(":")[0]
        hint = "outside of its cluster a Service has no name; say with --resolve where it is"
        return self._unavailable(name, url, f"dial tcp: lookup {host}: {_lookup_words(error)}", hint)

    def _connecting(self, name: str, url: str, error: OSError, *, shows_certificate: bool, reused: bool) -> Failure:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError):
            cause = cause.__cause__
        if isinstance(cause, ssl.SSLError):
            return self._tls(name, url, cause, shows_certificate=shows_certificate)
        # Without a number: in uvloop's words, or aiohttp could not write to what was closed.
        if error.errno is None or error.errno in _RESET:
            words = f"read tcp {self._dialled}: read: {_words(error)}" if error.errno else "EOF"
            return self._unavailable(
                name, url, words, _CLOSED if reused else ended_hint(shows_certificate=shows_certificate)
            )
        return self._unavailable(name, url, f"dial tcp {self._dialled}: connect: {_words(error)}", _LOOK)

    def _tls(self, name: str, url: str, error: Exception, *, shows_certificate: bool) -> Failure:
        words, hint = handshake_words(error, self._host, shows_certificate=shows_certificate)
        return self._unavailable(name, url, words, hint)

    def _no_http(self, name: str, url: str, observed: str) -> Failure:
        return self._invalid(
            name,
            f"Post {_quoted(url)}: net/http: HTTP/1.x transport connection broken: malformed HTTP response: "
            f"{self.one_line(observed)}",
            "the gateway speaks HTTP/1.1 with webhooks; see what listens there",
        )

    def _lost(self, name: str) -> Failure:
        return _named(
            Reason.WORKER_UNAVAILABLE,
            name,
            "unexpected error when reading response body. Please retry. Original error: unexpected EOF",
            _CLOSED,
        )

    def closed(self, name: str) -> Failure:
        """The gateway itself has let go of the webhook."""
        return _named(Reason.WORKER_UNAVAILABLE, name, "the gateway has closed its connections", "")

    # ---------------------------------------------------------------------------------------------- the answer

    def status(self, name: str, status: int, words: str) -> Failure:
        """A status that is no success, in kube-apiserver's words."""
        hint = f"it answered with the HTTP status {status}; see its log"
        return _named(Reason.WORKER_FAILURE, name, self.one_line(words), hint)

    def redirected(self, name: str, url: str, status: int, location: str) -> Failure:
        """A redirect that is not followed."""
        return _named(
            Reason.WORKER_FAILURE,
            name,
            f"Post {_quoted(url)}: redirected with status {status} to {_quoted(self.one_line(location))}",
            "307 and 308 are followed to the same host and port, and nothing else is: the review, and what the gateway "
            "proves itself with, are for the webhook that was configured; configure where it is",
        )

    def too_many_redirects(self, name: str, url: str, count: int) -> Failure:
        """Redirects without end."""
        return _named(
            Reason.WORKER_FAILURE,
            name,
            f"Post {_quoted(url)}: stopped after {count} redirects",
            "see what answers there",
        )

    def packed(self, name: str, coding: str) -> Failure:
        """A Content-Encoding that was not asked for."""
        return self._invalid(
            name,
            f"the answer has Content-Encoding {_quoted(self.one_line(coding))}",
            "gzip is accepted, and nothing else",
        )

    def broken_gzip(self, name: str) -> Failure:
        """Said to be gzip, and is not."""
        return self._invalid(
            name, "gzip: invalid header, checksum or end", "the answer says that it is gzip; see its log"
        )

    def too_large(self, name: str, limit: int) -> Failure:
        """More than may be read."""
        return self._invalid(
            name,
            f"the answer has more than {limit} bytes, which is the limit webhook_answer_bytes",
            "what gzip unpacks to counts, and an answer holds a patch, no padding; see what it sends, or raise it",
        )

    def too_many_values(self, name: str, limit: int) -> Failure:
        """More than may be made of it."""
        return self._invalid(
            name,
            f"the answer has more than {limit} values, which is the limit webhook_answer_values",
            "an answer holds a patch, and this is something else; see what it sends, or raise the limit",
        )

    def bad_media_type(self, name: str, why: str) -> Failure:
        """A Content-Type that cannot be parsed."""
        return self._invalid(name, f"Internal error occurred: {why}", "its Content-Type cannot be parsed")

    def empty(self, name: str, status: int, content_type: str) -> Failure:
        """A success without a body."""
        said = self.one_line(content_type) or "application/json"
        return self._invalid(
            name,
            f"0-length response with status code: {status} and content type: {said}",
            "it must answer with an AdmissionReview",
        )

    # -------------------------------------------------------------------------------------------- before a call

    def no_version(self, name: str) -> Failure:
        """It speaks no version that anybody knows."""
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

    def too_many(self, limit: int) -> Failure:
        """One more call than may be open."""
        return Failure(
            reason=Reason.OVERLOADED,
            message=f"webhook {self._worker!r} has {limit} calls open, which is the limit worker_in_flight; is it too "
            "slow? run more replicas of it, or raise the limit",
        )

    def too_much(self, held: int, limit: int) -> Failure:
        """More bytes than may be held."""
        return Failure(
            reason=Reason.OVERLOADED,
            message=f"webhook {self._worker!r}: {held} bytes of open calls and their answers are held, and the limit "
            f"worker_backlog_bytes is {limit}; see whether it hangs, or run more replicas of it",
        )

    def internal(self, error: Exception) -> Failure:
        """A mistake of ours."""
        return Failure(reason=Reason.INTERNAL, message=f"calling webhook {self._worker!r}: {type(error).__name__}")

    # ----------------------------------------------------------------------------------------------- the words

    def _unavailable(self, name: str, url: str, words: str, hint: str) -> Failure:
        return _named(Reason.WORKER_UNAVAILABLE, name, f"Post {_quoted(url)}: {words}", hint)

    def _invalid(self, name: str, words: str, hint: str) -> Failure:
        return _named(Reason.INVALID_RESPONSE, name, words, hint)

    def one_line(self, text: str) -> str:
        """A webhook's own words, for people."""
        return one_line(text, self._characters)


_LOOK: Final = "see whether it runs and listens there"
_CLOSED: Final = "it closed the connection without an answer; see whether it was stopped, and its log"


def _named(reason: Reason, name: str, words: str, hint: str) -> Failure:
    message = f'failed calling webhook "{name}": {_ATTEMPTED}: {words}'
    return Failure(reason=reason, message=message, hint=hint)


def _words(error: OSError) -> str:
    """As Go has them: in lower case."""
    return os.strerror(error.errno).lower() if error.errno and error.errno > 0 else (error.strerror or str(error))


def _lookup_words(error: OSError) -> str:
    return "no such host" if error.errno in {socket.EAI_NONAME, socket.EAI_NODATA} else (error.strerror or str(error))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
