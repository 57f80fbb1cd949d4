"""A real OpenID Connect provider as a process on this machine."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from stream_app.worker.kafka.broker import free_port

USERS = (
    {"sub": "1001", "preferred_username": "sue", "groups": ["north-leads"]},
    {"sub": "1002", "preferred_username": "sue", "groups": ["north-leads"]},
    {"sub": "1003", "preferred_username": "newcomer", "groups": ["staff", "counsellors"]},
    {"sub": "1004", "preferred_username": "visitor", "groups": ["staff"]},
    {"sub": "1005", "preferred_username": "pump", "groups": []},
    {"sub": "1006", "groups": ["north-leads"]},
    {"sub": "1007", "preferred_username": "boss", "groups": ["north-leads"]},
    {"sub": "1008", "preferred_username": "kim", "realm_access": {"roles": ["counsellors"]}},
)


@contextmanager
def running_provider() -> Iterator[str]:
    """Run it for the ``with`` block; yields the issuer."""
    port = free_port()
    claims = [f"--user-claims={json.dumps(user)}" for user in USERS]
    process = subprocess.Popen(
        [sys.executable, "-m", "oidc_provider_mock", "-p", str(port), "-n", "true", *claims],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        give_up = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{address}/.well-known/openid-configuration").raise_for_status()
                break
            except httpx.TransportError:
                assert process.poll() is None
                assert time.monotonic() < give_up
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(10)
