"""A worker whose judging has an effect: each line of the file named by LEDGER is a review that was judged, by its uid.

LEDGER=effects.txt python -m tests.webhooks.ledger --listen unix:ledger.sock
"""

import os

from admission_worker import Worker, allow

worker = Worker("ledger", version="1")


@worker.validating("read")
def read(request):
    """Has no effect."""
    return allow(audit_annotations={"judged": "yes"})


@worker.validating("enter")
def enter(request):
    """Enters the review."""
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(ledger, f"{request.uid}\n".encode())  # one write of a short line: whole, or not at all
    finally:
        os.close(ledger)
    return allow(audit_annotations={"entered": "yes"})


if __name__ == "__main__":
    worker.main()
