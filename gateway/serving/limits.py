"""Every bound of the HTTP server, with the reason for its value.

A request that reaches a limit is answered or its connection closed; it never waits without end.
"""

from typing import Final

from gateway.bounds import BODY_BYTES, READABLE_VALUES, Bounds, budgeted, of_body, tunable

_API_SERVER_IDLE_SECONDS: Final = 90
"""kube-apiserver's idle timeout for webhook connections. It does not retry a POST if the gateway closes earlier."""

SHUTDOWN_DELAY_SECONDS: Final = 10.0
"""How long a stopping gateway serves in any case: the time in which clients may still be led here. The EndpointSlice
controller and its watches take about 1 s, kube-proxy waits up to 1 s between two changes (minSyncPeriod) and takes up
to 5 s for a large cluster: 7 s, and some for a node that is busy."""

DRAIN_SECONDS: Final = 25.0
"""How long a stopping gateway serves at most: 5 s less than the 30 s that Kubernetes gives a pod by default. Then it
closes connections that have been idle for so long that a request in just that moment is unlikely."""

MAX_CONNECTION_AGE_SECONDS: Final = 60.0
"""A new replica gets connections only as old ones are replaced: within about a minute, as an HPA expects. At 1 ms for a
TLS handshake, the 100 connections of two API servers with two entries each (25 idle ones per entry) take 0.2 % of a
core."""


class Limits(Bounds):
    """Bounds of one HTTP server. Seconds are floats, all others are counts or bytes; all are greater than zero."""

    body_bytes: int = tunable(BODY_BYTES, "The largest AdmissionReview.")
    """The largest AdmissionReview, ``gateway.bounds.BODY_BYTES``. Messages, answers and patches follow it."""

    depth: int = 256
    """Nesting of a review. Kubernetes' own decoders stop at 10,000 levels; real objects need a few dozen, CRDs most.
    Every recursive reader in the gateway and the workers must handle it: CPython's limit is 1,000 frames."""

    uid_prefix_bytes: int = 4096
    """How far into a review that is too large its uid is looked for. The API server writes kind, apiVersion and
    request.uid first: they end within 130 bytes; 4 KB leaves room for other senders' order and costs one page."""

    line_bytes: int = 8190
    """A request target. The longest that the API server builds is ``/validate/`` + 253 + 9 + ``?timeout=30s``."""

    field_bytes: int = 8190
    """One header field. The largest that the API server sends is Authorization: a service account token of 1 to 2
    KB."""

    headers: int = 64
    """Header fields. The API server sends 8 at most; a mesh's proxies add about 20."""

    header_bytes: int = 32_768
    """One header. The API server's have 0.3 KB, and a token of 1 to 2 KB; a mesh's proxies add certificates and traces,
    some KB: three times as much as that."""

    header_bytes_in_flight: int = budgeted(128)
    """The headers of all connections that have arrived in part: 8 MiB by default, 256 of the largest. A header comes in
    one piece, so there are none in an ordinary moment. They take three times as much, a fortieth of the budget."""

    handshake_seconds: float = 10.0
    """From the connection to the end of the TLS handshake: kube-apiserver's own ``TLS handshake timeout``."""

    header_seconds: float = 10.0
    """From a request's first byte to the end of its header, which the API server sends in one piece."""

    keepalive_seconds: float = tunable(120.0, "Seconds that a connection may be idle.")
    """How long a connection may be idle: the API server's 90 s and a third, so that it is always the API server that
    closes."""

    write_seconds: float = 30.0
    """How long a client may read none of an answer: the largest ``timeout`` of a webhook, after which no client
    waits."""

    overrun_seconds: float = 1.0
    """How far past its budget a review may run before the server cancels it. The budget ends at most 1.05 s before the
    API server's own deadline, so no client waits any longer."""

    drain_seconds: float = 5.0
    """How long the rest of a refused body is read, so that the client gets the reason: 40 MB at 64 Mbit/s."""

    drain_bytes: int = of_body(20)
    """How many bytes of a refused body are read: two bodies of the largest size. After that the connection closes."""

    linger_seconds: float = 1.0
    """How long a connection stays open after an answer to bytes that were no HTTP, which have no known end."""

    shutdown_seconds: float = 2.0
    """How long a closing connection waits for the other side's TLS close_notify; Go's clients send it at once."""

    stop_seconds: float = 30.0
    """How long ``stop`` waits for reviews in flight: more than the largest budget, 28.95 s."""

    reviews_in_flight: int = tunable(1024, "Reviews in flight.")
    """Reviews being judged; beyond it they are judged as overloaded. An API server has at most 200 mutating requests in
    flight (``--max-mutating-requests-inflight``), so five of them fit; at 0.2 ms each, 1024 are a fifth of a second of
    work."""

    wait_seconds: float = 2.0
    """How long a review waits to begin, unless half of its budget is less. Then it may be refused, in its turn: 300
    are in a second, which cost a tenth of a core. An API server has 600 requests in flight by default, so that two
    seconds are enough for them."""

    handshakes: int = 1024
    """Connections whose TLS handshake is not complete; beyond it the oldest is closed, first of those that have sent
    nothing. As many as wait in the kernel: ``backlog``."""

    body_bytes_in_flight: int = budgeted(8, "Bytes of bodies in flight.")
    """Bodies received and not yet answered, in bytes: an eighth of the memory budget, because with documents and
    messages to workers a body of 3 MB takes 16 MB, measured; together two thirds of the budget. (What is parsed is
    charged by its values.) By default 128 KB for each of the 1024 reviews, 44 of 3 MB, or six of the largest; one
    namespace has half of it."""

    connections: int = budgeted(524_288)
    """TLS connections: 2,048 by default; 40 KB each when idle, and up to 0.4 MB while much arrives. An API server keeps
    25 for each entry: three of them, 27 entries. One more ends the oldest that has not brought a review yet."""

    readable_values: int = READABLE_VALUES
    """JSON values, and names of members, of a review of which a part is read: see ``gateway.review.request``."""

    values_in_flight: int = budgeted(2_048)
    """JSON values, and names of members, of reviews that are parsed together: 89 bytes each, a 23rd of the memory
    budget; by default 524,288, and 47 MB. So many may be of small reviews, 1024 in flight with 512 each, of which a pod
    has 200; as many of light ones; and 7/4 of it of heavy ones, which are two of the largest that are read, and more.
    One namespace has half of each. A full garbage collection takes 40 ns for each: 21 ms. So this is never more than
    1,048,576, however large the budget is."""

    heartbeat_seconds: float = 10.0
    """How long the event loop may stand still until ``/livez`` fails: longer than any work, and soon enough that the
    kubelet, which asks three times, restarts the container within a minute."""

    scrapes: int = 4
    """Answers with metrics that are written at the same time; another request gets 503. Two Prometheus servers, each
    with one scrape after a timeout still unread. A page of two thousand policies has 8 MB."""

    retained_decisions: int = tunable(2_000, "Decisions retained for explain and the dashboard.")
    """Decisions retained for /explain and the dashboard, half of them refused or failed: a cluster that refuses one
    request a second can explain the last quarter of an hour. About a pod, a decision has 8 KB, or 24 KB if a policy
    needed its parsed object: 2,000 are 16 to 48 MB, and a garbage collection takes some milliseconds longer."""

    retained_bytes: int = budgeted(16)
    """The same in estimated bytes: a sixteenth of the memory budget, 64 MiB by default, 32 KB for each of the 2,000. A
    decision above a sixty-fourth of that is retained without its objects."""

    backlog: int = 1024
    """Connections that wait in the kernel to be accepted. Bursts of 225 new ones were seen from one API server."""

    def check_together(self) -> None:
        """Refuse what cannot work together: a ValueError that names the limit."""
        if self.keepalive_seconds <= _API_SERVER_IDLE_SECONDS:
            raise ValueError(
                f"limit keepalive_seconds is {self.keepalive_seconds}: it must be greater than kube-apiserver's idle "
                f"time, {_API_SERVER_IDLE_SECONDS} s, because it does not retry a request if the gateway closes first"
            )
