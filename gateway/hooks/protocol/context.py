"""What a hook is called with: shell-operator's binding context, an array of one element.

::

    [{"binding": NAME, "type": "Validating", "review": {"request": {"uid": …, …}},
      "snapshots": {NAME: [{"object": …}]}}]

The request's members are the bytes of the document, which has only what the policy may see. The uid is new for each
call. ``snapshots`` is present only if the binding includes some.
"""

import json
import uuid

from gateway.policies.model import Phase

TYPES = {Phase.VALIDATING: "Validating", Phase.MUTATING: "Mutating"}
"""shell-operator's name of each phase."""


def binding_context(
    binding: str, phase: Phase, document: bytes, snapshots: bytes | None = None, *, uid: str = ""
) -> bytes:
    """The binding context as JSON.

    Args:
        binding: the binding's name.
        phase: the phase in which it is called.
        document: the members of an AdmissionRequest that the policy may see, as a JSON object without uid.
        snapshots: a JSON object, lists of objects by the names of ``kubernetes`` bindings; None: the binding includes
            none.
        uid: of the request; empty: a new one.
    """
    members = document.strip()[1:-1].strip()
    request = b'{"uid":%s%s%s}' % (_json(uid or str(uuid.uuid4())), b"," if members else b"", members)
    added = b"" if snapshots is None else b',"snapshots":' + snapshots
    return b'[{"binding":%s,"type":%s,"review":{"request":%s}%s}]\n' % (
        _json(binding),
        _json(TYPES[phase]),
        request,
        added,
    )


def _json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode(errors="replace")
