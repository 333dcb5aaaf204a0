"""The curl of these tests: ``curl -s URL``, over plain HTTP. Not every machine has the real one."""

import sys
import urllib.error
import urllib.request


def main(argv):
    """Print what is at the address."""
    silent, url = argv
    assert silent == "-s", f"this curl does not know {silent}"
    try:
        with urllib.request.urlopen(url, timeout=30) as response:  # noqa: S310 - our own gateway
            sys.stdout.buffer.write(response.read())
    except urllib.error.HTTPError as error:
        sys.stdout.buffer.write(error.read())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
