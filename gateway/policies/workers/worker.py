"""The Worker document: how a worker is reached. Exactly one of ``grpc``, ``queue``, ``webhook`` and ``hook`` is set.

A webhook here is the same as in a native configuration, but that it is named, so that policies of ours can be put to
it, with ``inputs``, ``cache``, ``mode`` and all else that they have.
"""

from typing import Final

from msgspec.structs import replace

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.metadata import read_name
from gateway.policies.workers.client_config import CLIENT_CONFIG, read_client_config, read_review_versions
from gateway.policies.workers.files_only import refuse_files_only
from gateway.policies.workers.grpc_target import read_grpc
from gateway.policies.workers.hook_target import read_hook
from gateway.policies.workers.queue_target import read_queue
from gateway.policies.workers.targets import WebhookTarget, Worker

_DOCUMENT: Final = ("apiVersion", "kind", "metadata", "spec", "status")
TRANSPORTS: Final = ("grpc", "queue", "webhook", "hook")
ONE_OF: Final = "must specify exactly one of " + ", ".join(TRANSPORTS)
VERSIONS: Final = "admissionReviewVersions"
_DEFAULT_VERSIONS: Final = ("v1",)
"""Of a webhook without AdmissionReview versions: what every webhook written since 2019
does."""


def read_worker(document: Field, directory: str, *, in_cluster: bool = False) -> tuple[str | None, Worker | None]:
    """The Worker's name (None: it has no usable one), and the Worker itself if there is no error in it.

    ``directory`` is that of the file it stands in: relative paths begin there, and its command is started there.
    ``in_cluster``: it is an object of the cluster, which must not start programs.
    """
    before = len(document.findings)
    document.mapping(_DOCUMENT)
    name = read_name(document)
    worker = _read(document, directory, name or "")
    if in_cluster:
        refuse_files_only(document.get("spec"))
    if name is None or worker is None or len(document.findings) > before:
        return name, None
    return name, worker


def _read(document: Field, directory: str, name: str) -> Worker | None:
    spec = document.get("spec")
    if spec.absent:
        spec.refuse(field_errors.required())
    if not spec.mapping(TRANSPORTS):
        return None
    found = [transport for transport in TRANSPORTS if not spec.get(transport).absent]
    if len(found) != 1:
        spec.refuse(field_errors.required(ONE_OF) if not found else field_errors.invalid(found, ONE_OF))
        return None
    worker = Worker(name=name, place=document.place)
    (transport,) = found
    field = spec.get(transport)
    match transport:
        case "grpc":
            worker = replace(worker, grpc=read_grpc(field, directory, name))
        case "queue":
            worker = replace(worker, queue=read_queue(field, directory))
        case "webhook":
            worker = replace(worker, webhook=_webhook(field))
        case _:
            worker = replace(worker, hook=read_hook(field, directory))
    # What is no object at all has been reported.
    return worker


def _webhook(field: Field) -> WebhookTarget | None:
    if not field.mapping((*CLIENT_CONFIG, VERSIONS)):
        return None
    target = read_client_config(field, native=False)
    versions = field.get(VERSIONS)
    return replace(target, review_versions=read_review_versions(versions, _DEFAULT_VERSIONS))
