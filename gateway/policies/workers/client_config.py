"""WebhookClientConfig: read, with Kubernetes' validation (k8s.io/apiserver/pkg/util/webhook/validation.go)."""

import base64
from typing import Final

from gateway.bounds import MAX_PORT
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.fields.versions import DEFAULT_PORT
from gateway.policies.names import dns_label_1035, dns_subdomain
from gateway.policies.workers.ca_bundle import read_ca_bundle
from gateway.policies.workers.targets import ServiceReference, WebhookTarget
from gateway.policies.workers.urls import UrlError, parse_url

MAX_SEGMENT_ERRORS: Final = 20
"""Reported errors of one path: each repeats the path, so that a path of slashes would grow with its square."""

REVIEW_VERSIONS: Final = ("v1", "v1beta1")
"""AcceptedAdmissionReviewVersions: those that the API server, and so the gateway, speaks."""

CLIENT_CONFIG: Final = ("url", "service", "caBundle")
"""Its fields."""

ONE_OF: Final = "exactly one of url or service is required"

PORT_RANGE: Final = f"port is not valid: must be between 1 and {MAX_PORT}, inclusive"

SERVICE: Final = ("namespace", "name", "path", "port")
"""The fields of a service."""

_FORM: Final = "; desired format: https://host[/path]"
ONLY_HTTPS: Final = f"'https' is the only allowed URL scheme{_FORM}"


def read_client_config(config: Field, *, native: bool = True) -> WebhookTarget:
    """Exactly one of url and service, and the authorities to trust there.

    ``native``: as Kubernetes has it, also where that is lax or misleading; else as it is meant.
    """
    url, service = config.get("url"), config.get("service")
    if url.absent == service.absent:
        config.refuse(field_errors.required(ONE_OF))
        return WebhookTarget()
    bundle = config.get("caBundle")
    return WebhookTarget(
        url=read_url(url),
        service=read_service(service, native=native),
        ca_bundle=_decoded_bundle(bundle) if native else read_ca_bundle(bundle),
    )


def read_review_versions(field: Field, default: tuple[str, ...] | None) -> tuple[str, ...]:
    """The versions of AdmissionReview that a webhook speaks, the one that it likes best first.

    ``default`` are those of one without the field; None: it is required.
    """
    versions = field.texts()
    if versions is None:
        return ()
    if not versions and default is not None:
        return default
    if not versions:
        field.refuse(field_errors.required("must specify one of " + ", ".join(REVIEW_VERSIONS)))
        return ()
    seen: set[str] = set()
    for item, text in versions:
        if text in seen:
            item.refuse(field_errors.invalid(text, "duplicate version"))
            continue
        seen.add(text)
        item.refuse_each(text, dns_label_1035(text))
    if seen.isdisjoint(REVIEW_VERSIONS):
        detail = "must include at least one of " + ", ".join(REVIEW_VERSIONS)
        field.refuse(field_errors.invalid([text for _, text in versions], detail))
    return tuple(text for _, text in versions)


def read_url(field: Field) -> str:
    """ValidateWebhookURL, with https required; "" if there is none that can be used."""
    text = field.text()
    if text is None:
        return ""
    before = len(field.findings)
    try:
        url = parse_url(text)
    except UrlError as error:
        field.refuse(field_errors.required(f"url must be a valid URL: {error}{_FORM}"))
        return ""
    if url.scheme != "https":
        field.refuse(field_errors.invalid(url.scheme, ONLY_HTTPS))
    if not url.host:
        field.refuse(field_errors.invalid(url.host, f"host must be specified{_FORM}"))
    if url.user is not None:
        field.refuse(field_errors.invalid(url.user, "user information is not permitted in the URL"))
    if url.fragment:
        field.refuse(field_errors.invalid(url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        field.refuse(field_errors.invalid(url.query, "query parameters are not permitted in the URL"))
    return text if len(field.findings) == before else ""


def read_service(field: Field, *, native: bool = True) -> ServiceReference | None:
    """ValidateWebhookService; None if there is none that can be used. ``native``: see read_client_config."""
    if not field.mapping():
        return None
    before = len(field.findings)
    namespace, name = field.get("namespace").text(""), field.get("name").text("")
    # ValidateWebhookService takes namespace and name; Kubernetes' own call hands it name and namespace. So an empty
    # namespace is reported at the name, and an empty name at the namespace, since 2018.
    if namespace == "":
        field.get("name" if native else "namespace").refuse(field_errors.required())
    if name == "":
        field.get("namespace" if native else "name").refuse(field_errors.required())
    number = field.get("port").number()
    port = DEFAULT_PORT if number is None else int(number)
    if not 1 <= port <= MAX_PORT:
        field.get("port").refuse(field_errors.invalid(port, PORT_RANGE))
    path = field.get("path").text("")
    errors = _path_errors(path or "")[:MAX_SEGMENT_ERRORS]
    field.get("path").refuse_each(path or "", errors)
    if len(field.findings) > before or not namespace or not name or path is None:
        return None
    return ServiceReference(namespace=namespace, name=name, path=path, port=port)


def _path_errors(path: str) -> list[str]:
    if path in {"", "/"}:
        return []
    if path == "//":
        return ["segment[0] may not be empty"]
    errors = [] if path.startswith("/") else ["must start with a '/'"]
    # Go cuts the first byte off, whatever it is: of another character than "/", the rest stays.
    checked = path.encode()[1:].decode("latin-1").removesuffix("/")
    for index, segment in enumerate(checked.split("/")):
        if len(errors) >= MAX_SEGMENT_ERRORS:
            break
        if not segment:
            errors.append(f"segment[{index}] may not be empty")
        else:
            errors += [f"segment[{index}]: {error}" for error in dns_subdomain(segment)]
    return errors


def _decoded_bundle(field: Field) -> bytes:
    """The bundle's bytes. It is base64 (``decoding``); Kubernetes looks no further when an object is created."""
    text = field.text("") or ""
    return base64.b64decode(text, validate=False)
