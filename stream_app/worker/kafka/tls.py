"""How clients check a server's certificate and show their own."""

import ssl
from collections.abc import Callable
from pathlib import Path

from stream_app.errors import RapportError


def client_context(
    prefix: str,
    ca: Path | None,
    certificate: Path | None,
    key: Path | None,
    key_password: str,
    error: Callable[[str], RapportError],
) -> ssl.SSLContext:
    """Check the server against the system's authorities, or only those of a file.

    Args:
        prefix: of the variables ``…_CA_FILE``, ``…_CERTIFICATE_FILE`` and ``…_KEY_FILE``.
        ca: PEM file of the accepted authorities.
        certificate: PEM file of the client's certificate, for servers that demand one.
        key: PEM file of its key; None if the key is in the same file.
        key_password: of the key, or empty.
        error: creates what is raised.

    Raises:
        RapportError: ``error``, if a file cannot be loaded or the certificate is missing.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as problem:
        raise error(_unusable(f"{prefix}_CA_FILE", ca, problem)) from None
    if certificate is None:
        if key is not None:
            raise error(f"{prefix}_KEY_FILE needs {prefix}_CERTIFICATE_FILE")
        return context
    try:  # with None as password, OpenSSL would ask at the terminal
        context.load_cert_chain(certificate, key, key_password)
    except OSError as problem:
        missing = next((file for file in (certificate, key) if file and not file.exists()), None)
        name = f"{prefix}_CERTIFICATE_FILE with {prefix}_KEY_FILE"
        raise error(_unusable(name, missing, problem)) from None
    return context


def _unusable(name: str, file: Path | None, problem: OSError) -> str:
    reason = getattr(problem, "reason", None) or problem.strerror or type(problem).__name__
    what = f" ({file})" if file else ""
    return f"{name}{what} cannot be loaded: {reason}"
