"""What a hook is asked: shell-operator's binding context, an array of one element.

::

    [{"binding": NAME, "type": "Validating", "review": {"request": {"uid": …, …}},
      "snapshots": {NAME: [{"object": …}]}}]

The request's members are the document's bytes as they are: what was not granted is not in there. The uid is a fresh one
for each call. ``snapshots`` is there only if the binding asks for some.
"""

import json
import uuid

from gateway.policies.model import Phase

TYPES = {Phase.VALIDATING: "Validating", Phase.MUTATING: "Mutating"}
"""What each phase is called there."""


def binding_context(
    binding: str, phase: Phase, document: bytes, snapshots: bytes | None = None, *, uid: str = ""
) -> bytes:
    """The JSON text.

    Args:
        binding: its name.
        phase: in which it is asked.
        document: the granted members of an AdmissionRequest, as a JSON object without uid.
        snapshots: a JSON object, lists of objects by the names of ``kubernetes`` bindings; None: the binding asks for
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
