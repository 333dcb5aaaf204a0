"""A check that an expression makes by ``authorizer``, and its result: authorizer.Attributes and Decision, as values."""

import msgspec


class AuthorizationCheck(msgspec.Struct, frozen=True, kw_only=True):
    """May a user do something? (SubjectAccessReviewSpec's words.)

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


class Authorization(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a check: allowed or not, and why; ``error``: of the authorizer, which ``errored()`` shows."""

    allowed: bool = False
    reason: str = ""
    error: str = ""
