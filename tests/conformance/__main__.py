"""``python -m tests.conformance FILE...``: run files of cases through the code of the gateway.

Prints one JSON line for each case (id, kind, expected, got, agrees, and difference, where it is a deliberate one) and a
summary to standard error. What kind a case is, its members say, not the file's name.

Exit status: 0 all agree, or differ deliberately; 1 some do not; 2 a file cannot be read, or none was given.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from tests.conformance.cases import FileError
from tests.conformance.running import run_file


def main(arguments: list[str]) -> int:
    """Run; the exit status."""
    if not arguments or any(each.startswith("-") for each in arguments):
        print("usage: python -m tests.conformance FILE...", file=sys.stderr)  # noqa: T201 - it is a command
        return 2
    status = 0
    for name in arguments:
        counts: Counter[str] = Counter()
        try:
            for line in run_file(Path(name)):
                print(json.dumps(line.as_json()))  # noqa: T201 - its output
                counts[line.result.difference or ("agree" if line.result.agrees else "DISAGREE")] += 1
        except FileError as error:
            print(error, file=sys.stderr)  # noqa: T201 - its errors
            status = 2
            continue
        reported = ", ".join(f"{count} {word}" for word, count in sorted(counts.items())) or "no cases"
        print(f"{name}: {reported}", file=sys.stderr)  # noqa: T201 - its summary
        status = max(status, 1 if counts["DISAGREE"] else 0)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
