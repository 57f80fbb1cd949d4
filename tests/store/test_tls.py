"""PostgreSQL with TLS: the certificate is checked, and a wrong one is a sentence."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from servers import postgres
from stream_app.errors import StoreUnavailable
from stream_app.store.stream import schema
from stream_app.store.stream.repository import open_store
from tests.certificates import Authority
from tests.commands.conftest import Rapport, rapport_process  # noqa: F401  # a fixture

pytestmark = pytest.mark.slow

PASSWORD = "zanzibar"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def tls_server(authority: Authority) -> Iterator[postgres.Server]:
    folder = postgres.binaries()
    if folder is None:
        pytest.skip("PostgreSQL's server (initdb, postgres) is not installed")
    running = postgres.Server(folder)
    try:
        certificate, key = authority.issue("server", ["localhost"])
        running.serve_tls(certificate.read_bytes(), key.read_bytes(), "app", PASSWORD)
        yield running
    finally:
        running.remove()


def url(server: postgres.Server, host: str = "localhost", **query: str) -> str:
    base = make_url(server.url()).set(host=host, username="app", password=PASSWORD)
    return base.update_query_dict(query).render_as_string(hide_password=False)


def test_the_certificate_is_checked_and_the_connection_is_encrypted(
    tls_server: postgres.Server, authority: Authority
) -> None:
    checked = url(tls_server, sslmode="verify-full", sslrootcert=str(authority.file))
    store = open_store(checked)
    try:
        schema.upgrade(store)
        store.ping()
        with store.engine.connect() as connection:
            found = connection.exec_driver_sql(
                "SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            ).one()
        assert found[0] is True
        assert found[1] in {"TLSv1.2", "TLSv1.3"}
    finally:
        store.close()


def test_the_command_connects_with_a_password_from_a_file(
    tls_server: postgres.Server,
    authority: Authority,
    rapport_process: Rapport,  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n", "utf-8")
    checked = url(tls_server, sslmode="verify-full", sslrootcert=str(authority.file))
    without = checked.replace(f":{PASSWORD}@", "@")
    assert without != checked
    done = rapport_process(
        "db",
        "upgrade",
        RAPPORT_DATABASE_URL=without,
        RAPPORT_DATABASE_PASSWORD_FILE=str(tmp_path / "password"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("schema ")


def refused(rapport: Rapport, address: str) -> str:
    """The one line that the command prints."""
    done = rapport("db", "upgrade", RAPPORT_DATABASE_URL=address)
    assert done.returncode == 1, done.stdout
    [line] = done.stderr.splitlines()
    assert PASSWORD not in line
    return line


def test_another_authority_is_one_sentence(
    tls_server: postgres.Server,
    rapport_process: Rapport,  # noqa: F811
    tmp_path: Path,
) -> None:
    other = Authority(tmp_path, "other")
    address = url(tls_server, sslmode="verify-full", sslrootcert=str(other.file))
    line = refused(rapport_process, address)
    assert line.startswith("rapport: the database's certificate was refused: ")
    assert "certificate verify failed" in line
    assert "sslrootcert" in line


def test_another_host_name_is_one_sentence(
    tls_server: postgres.Server,
    authority: Authority,
    rapport_process: Rapport,  # noqa: F811
) -> None:
    """The certificate is for localhost, not for the address."""
    query = {"sslmode": "verify-full", "sslrootcert": str(authority.file)}
    line = refused(rapport_process, url(tls_server, "127.0.0.1", **query))
    assert line.startswith("rapport: the database's certificate was refused: ")
    assert 'does not match host name "127.0.0.1"' in line


def test_an_authority_file_that_is_missing_is_one_sentence(
    tls_server: postgres.Server,
    rapport_process: Rapport,  # noqa: F811
    tmp_path: Path,
) -> None:
    query = {"sslmode": "verify-full", "sslrootcert": str(tmp_path / "none.pem")}
    line = refused(rapport_process, url(tls_server, **query))
    assert "none.pem" in line


def test_the_server_refuses_connections_without_tls(tls_server: postgres.Server) -> None:
    """Otherwise the tests above would prove little."""
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url(tls_server, sslmode="disable"))
    store = open_store(url(tls_server, sslmode="disable"))
    with pytest.raises(StoreUnavailable, match="the database does not answer"):
        store.ping()
    store.close()
