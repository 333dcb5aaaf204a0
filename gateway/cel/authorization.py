"""What an expression asks of ``authorizer``, and what it is told: authorizer.Attributes and its Decision, as values."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthorizationCheck:
    """May somebody do something? (SubjectAccessReviewSpec's words.)

    ``service_account`` is (namespace, name), or None for the user of the request. Either ``path`` (a non-resource
    request) or the resource's members are set.
    """

    verb: str
    service_account: tuple[str, str] | None = None
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Authorization:
    """The answer to a check: allowed or not, why; or ``error``, which says why nobody can tell."""

    allowed: bool = False
    reason: str = ""
    error: str = ""
