"""Several web processes behind HAProxy with the shipped configuration."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from servers import haproxy
from stream_app.store.accounts.people import People
from stream_app.work.passwords import hash_password
from stream_app.worker.kafka.broker import free_port
from stream_app.worker.kafka.topics import declare_topics
from tests.certificates import Authority
from tests.web.server import Web

PASSWORD = "long enough to pass"
HOST = "localhost"


@dataclass
class Proxied:
    """``webs`` share database and topics; ``url`` is the proxy's."""

    webs: list[Web]
    port: int
    authority: Path

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    def client(self, **options: Any) -> httpx.Client:
        """A browser without sign-in, at the proxy."""
        return httpx.Client(base_url=self.url, verify=self.tls, timeout=20, **options)

    def program(self, name: str) -> httpx.Client:
        """A program with a token of this account, at the proxy."""
        headers = {"Authorization": f"Bearer {self.webs[0].tokens[name]}"}
        return self.client(headers=headers)

    def sign_in(self, name: str, client: httpx.Client) -> httpx.Response:
        People(self.webs[0].store).set_password(name, hash_password(PASSWORD))
        return client.post(
            "/sign-in", data={"name": name, "password": PASSWORD}, headers={"Origin": self.url}
        )


@contextmanager
def behind_proxy(
    folder: Path, count: int, broker: str, changes: dict[str, Any]
) -> Iterator[Proxied]:
    """Start the processes, then the proxy."""
    authority = Authority(folder)
    certificate, key = authority.issue("proxy", [HOST])
    both = folder / "proxy.pem"
    both.write_bytes(certificate.read_bytes() + key.read_bytes())
    webs = []
    with ExitStack() as stack:
        for number in range(count):
            own = folder / f"web-{number}"
            own.mkdir()
            webs.append(Web(own, broker, {"web_https": True, **changes}))
            stack.callback(webs[-1].stop)
        asyncio.run(declare_topics(webs[0].settings))
        starting = [threading.Thread(target=web.start) for web in webs]
        for thread in starting:
            thread.start()
        for thread in starting:
            thread.join()
        port = free_port()
        ports = [web.port for web in webs]
        stack.enter_context(haproxy.running(folder, port, both, ports, free_port()))
        yield Proxied(webs, port, authority.file)
