"""A worker and how it is reached, once read. Values only: frozen, keyword-only, without behaviour."""

from msgspec import Struct

from gateway.policies.errors import Place


class GrpcTls(Struct, frozen=True, kw_only=True):
    """How the connection to a gRPC worker is secured.

    ``ca_file`` (PEM, read when connecting) or ``ca_bundle`` (PEM) are the authorities; neither: the system's.
    ``cert_file`` and ``key_file`` are what the gateway proves itself with; both or neither. A relative file begins in
    the target's ``directory``. ``server_name`` is the DNS name that the worker's certificate must carry; never empty.
    """

    server_name: str
    ca_file: str = ""
    ca_bundle: bytes = b""
    cert_file: str = ""
    key_file: str = ""


class GrpcTarget(Struct, frozen=True, kw_only=True):
    """How a gRPC worker is reached, and how it is started where the gateway does that.

    ``target`` is empty where the gateway is to make a socket for the worker that it starts; else a gRPC name
    (``dns:///host:port``, ``unix:/path``, ``host:port``); ``command`` is what the gateway starts and supervises, in
    ``directory`` (that of the file it was written in), or empty. ``tls``: None is plain text. ``connections``: how many
    are kept to it, all its addresses together; None: as many as the flag of the process sets.
    """

    target: str
    command: tuple[str, ...] = ()
    directory: str = ""
    tls: GrpcTls | None = None
    connections: int | None = None


class ServiceReference(Struct, frozen=True, kw_only=True):
    """A v1 ServiceReference: a Service in the cluster, a path there ("" for /), a port."""

    namespace: str
    name: str
    path: str = ""
    port: int = 443


class WebhookTarget(Struct, frozen=True, kw_only=True):
    """A v1 WebhookClientConfig: an existing webhook, by ``url`` or by ``service`` (exactly one of them).

    ``ca_bundle`` is PEM, or empty for the system's roots; ``review_versions`` are its admissionReviewVersions.
    """

    url: str = ""
    service: ServiceReference | None = None
    ca_bundle: bytes = b""
    review_versions: tuple[str, ...] = ("v1",)


class QueueTarget(Struct, frozen=True, kw_only=True):
    """A queue in Redis Streams, from which bridges feed gRPC workers.

    ``stream`` is what all its keys in Redis have in common. ``key_file`` holds the keys with which everything in it is
    sealed; a relative one begins in ``directory``, that of the file in which it is named.
    """

    stream: str
    key_file: str
    directory: str = ""


class HookTarget(Struct, frozen=True, kw_only=True):
    """A shell-operator hook: an executable file.

    A relative ``path`` begins in ``directory``, that of the document's file. ``snapshots_of`` are the kinds
    (apiVersion, kind) of the objects in its snapshots; ``objects`` are these objects, from other documents: canonical
    JSON, sorted.
    """

    path: str
    directory: str = ""
    snapshots_of: tuple[tuple[str, str], ...] = ()
    objects: tuple[bytes, ...] = ()


class Worker(Struct, frozen=True, kw_only=True):
    """Who judges, and how it is reached: exactly one of ``grpc``, ``queue``, ``webhook`` and ``hook``.

    The name is that of a Worker document, which policies use; that of a native configuration's webhook is
    ``KIND/CONFIGURATION/WEBHOOK``, which no document can have.
    """

    name: str
    grpc: GrpcTarget | None = None
    queue: QueueTarget | None = None
    webhook: WebhookTarget | None = None
    hook: HookTarget | None = None
    place: Place = Place(file="", line=0)

    @property
    def address(self) -> str:
        """Where it is, for people: a gRPC target, a URL, a Service, a program, or a stream. Of a command only the
        program: its arguments may hold a password.
        """
        if self.grpc is not None:
            return self.grpc.target or f"command {self.grpc.command[0]}"
        if self.webhook is not None:
            service = self.webhook.service
            if service is None:
                return self.webhook.url
            return f"https://{service.name}.{service.namespace}.svc:{service.port}/{service.path.removeprefix('/')}"
        if self.queue is not None:
            return f"queue {self.queue.stream}"
        return f"hook {self.hook.path}" if self.hook is not None else ""
