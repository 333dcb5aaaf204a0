"""``python -m worker_conformance``: the command."""

from worker_conformance.command import main

if __name__ == "__main__":
    main()
