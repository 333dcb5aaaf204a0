"""Fields that somebody may look for, and that there are none of: an error that says why and what to do instead.

They are known by name, to be told from misspelt ones. A field that was accepted and had no effect would be a rule that
somebody believes to be in force.
"""

from collections.abc import Mapping

from gateway.policies import wording
from gateway.policies.fields import Field


def refuse_fields(owner: Field, table: Mapping[str, str]) -> None:
    """Report each field of the table that stands in ``owner``: its name, and why it is refused."""
    for name, because in table.items():
        if not owner.get(name).absent:
            owner.get(name).refuse(wording.forbidden(because))
