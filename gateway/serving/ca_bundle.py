"""The file of the CA bundle with which kube-apiserver verifies the gateway's certificate."""

from pathlib import Path


class CaBundleError(Exception):
    """The operator's: the file cannot be used. ``str(error)`` says why, and what to do."""


def read_ca_bundle(path: Path) -> bytes:
    """The file's bytes: certificates in PEM, and no private key.

    Raises:
        CaBundleError: it is none.
    """
    from cryptography import x509  # noqa: PLC0415 - it takes as long to load as the rest of a command

    try:
        content = path.read_bytes()
        if b"PRIVATE KEY-----" in content:
            raise CaBundleError(
                f"--ca-bundle: {path}: contains a private key; use a file with the CA's certificate only"
            )
        x509.load_pem_x509_certificates(content)
    except OSError as error:
        raise CaBundleError(
            f"--ca-bundle: {path}: cannot be read: {error.strerror}; check the path and its permissions"
        ) from None
    except ValueError:
        raise CaBundleError(
            f"--ca-bundle: {path}: contains no certificates in PEM; use the file of the CA's certificate"
        ) from None
    return content
