"""A kubeconfig file, as far as kube-apiserver reads one for its webhooks: users, contexts, the current context.

Relative files begin in the directory of the kubeconfig. A kubeconfig with credential plugins (exec, auth-provider) or
impersonation, which is for API servers, fails the start: without them, the gateway would call webhooks as another user
than the operator intends.
"""

import base64
from pathlib import Path
from typing import Final

from gateway.gotypes.base64_text import base64_error
from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.texts import SourceText, read_documents
from gateway.policies.errors import Place, summary
from gateway.transports.webhook.client_credentials import AccessError, Credentials, Users

MAX_FILE_BYTES: Final = 1024 * 1024
"""A mounted Secret or ConfigMap holds at most 1 MiB."""

_REFUSED: Final = {
    "exec": "the gateway runs no credential plugins; use a tokenFile, which is read again when it changes",
    "auth-provider": "auth provider not supported",
    "as": "impersonation is for API servers, and means nothing to a webhook; remove it",
    "as-uid": "impersonation is for API servers, and means nothing to a webhook; remove it",
    "as-groups": "impersonation is for API servers, and means nothing to a webhook; remove it",
    "as-user-extra": "impersonation is for API servers, and means nothing to a webhook; remove it",
}


def read_kubeconfig(path: Path) -> Users:
    """The users in a kubeconfig file.

    Raises:
        AccessError: it cannot be read, is no kubeconfig, or has a user with unsupported fields.
    """
    document = read_document(path)
    if document is None:
        return Users()
    document.mapping()
    require_type(document, {"v1", None}, {"Config", None})
    named = _users(document.get("users"), path.parent)
    users = Users(named=named, current=_current(document, named))
    refuse_errors(document, path)
    return users


def _users(field: Field, directory: Path) -> dict[str, Credentials]:
    named: dict[str, Credentials] = {}
    for item in field.items() or ():
        if not item.mapping():
            continue
        name = item.get("name").text("") or ""
        if name in named:
            item.get("name").refuse(f"duplicate name {field_errors.quote(name)} in list")
        named[name] = _credentials(item.get("user"), directory)
    return named


def _current(document: Field, named: dict[str, Credentials]) -> Credentials | None:
    current = document.get("current-context").text("")
    found = None
    for item in document.get("contexts").items() or ():
        name, user = item.get("name").text(""), item.get("context").get("user").text("")
        if current and name == current and found is None:
            found = named.get(user or "")
    return found


def _credentials(user: Field, directory: Path) -> Credentials:
    if not user.absent:
        user.mapping()
    for name, why in _REFUSED.items():
        if not user.get(name).absent:
            user.get(name).refuse(why)
    credentials = Credentials(
        certificate=_data(user.get("client-certificate-data")),
        certificate_file=_file(user.get("client-certificate"), directory),
        key=_data(user.get("client-key-data")),
        key_file=_file(user.get("client-key"), directory),
        token=_header(user.get("token")),
        token_file=_file(user.get("tokenFile"), directory),
        username=user.get("username").text("") or "",
        password=user.get("password").text("") or "",
    )
    has_certificate = bool(credentials.certificate or credentials.certificate_file)
    if has_certificate != bool(credentials.key or credentials.key_file):
        missing, present = ("client-key", "client-certificate")[:: 1 if has_certificate else -1]
        user.get(present).refuse(f"needs {missing} too; set both")
    if (credentials.username or credentials.password) and (credentials.token or credentials.token_file):
        user.refuse("username/password or bearer token may be set, but not both")
    return credentials


def _data(field: Field) -> bytes:
    text = field.text("") or ""
    fault = base64_error(text)
    if fault is not None:
        # The text is not repeated: it may be half of a key.
        field.refuse(f"illegal base64 data at input byte {fault}")
        return b""
    return base64.b64decode(text)


def _file(field: Field, directory: Path) -> str:
    text = field.text("") or ""
    return str(directory / text) if text else ""


def _header(field: Field) -> str:
    """A token, which goes into a header."""
    text = field.text("") or ""
    if text and not is_header(text):
        field.refuse("must be printable ASCII without leading or trailing blanks, because it is sent in a header")
        return ""
    return text


def is_header(text: str) -> bool:
    """Whether a text can be sent in a header."""
    return text.isascii() and text.isprintable() and text == text.strip()


# ----------------------------------------------------------------------------------------- files of Kubernetes' kinds


def read_document(path: Path) -> Field | None:
    """The first document of a file; None if it is empty.

    Raises:
        AccessError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise AccessError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > MAX_FILE_BYTES:
        raise AccessError(f"{path}: has more than {MAX_FILE_BYTES} bytes; check that it is a configuration file")
    nodes, fault = read_documents(SourceText(name=str(path), content=content))
    if fault is not None:
        raise AccessError(f"{path}:{fault.line}: {fault}")
    if not nodes:
        return None
    return Field(node=nodes[0], place=Place(file=str(path), line=nodes[0].line), findings=[])


def require_type(document: Field, versions: set[str | None], kinds: set[str | None]) -> None:
    """Report another apiVersion or kind than one of these; None: it may be absent."""
    for field, known in ((document.get("apiVersion"), versions), (document.get("kind"), kinds)):
        text = field.text()
        if (text or None) not in known and not (text is None and not field.absent):
            field.refuse(field_errors.unsupported(text or "", sorted(filter(None, known))))


def refuse_errors(document: Field, path: Path) -> None:
    """Raise AccessError if any were reported."""
    if document.findings:
        raise AccessError(f"{path}:{document.findings[0].place.line}: {summary(document.findings)}")
