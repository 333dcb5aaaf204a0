"""What docker-compose.yml's services share: ``setup.py DIRECTORY NAME...`` makes what is missing there.

``tls/``: a CA, and a certificate for the names; ``seal.keys`` and ``queue.keys``: keys for what is in Redis;
``admin.token``: opens the gateways' dashboards. Only this user can read keys and token.
"""

import base64
import secrets
import sys
from pathlib import Path

from gateway.serving.development_certificates import ensure_development_certificates

_KEY_BYTES = 32
"""Of a seal key (docs/operate.md)."""


def main(directory: Path, names: list[str]) -> None:
    """Make the files, keep those that exist."""
    directory.mkdir(parents=True, exist_ok=True)
    ensure_development_certificates(directory / "tls", names)
    for name in ("seal.keys", "queue.keys"):
        _write(directory / name, base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode())
    _write(directory / "admin.token", secrets.token_urlsafe(_KEY_BYTES))


def _write(path: Path, line: str) -> None:
    if not path.exists():
        new = path.with_suffix(".new")
        new.touch(0o600)
        new.write_text(f"{line}\n")
        new.replace(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
