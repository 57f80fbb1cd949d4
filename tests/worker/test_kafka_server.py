"""The server of the tests: other processes take ports, too."""

import socket
from pathlib import Path

import pytest

from servers import kafka


@pytest.mark.services
def test_a_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    cluster = kafka.Cluster(tmp_path)
    taken = cluster.nodes[0].port
    with socket.create_server(("127.0.0.1", taken)):
        try:
            cluster.start()
            port = cluster.nodes[0].port
            assert port != taken
            assert cluster.address == f"127.0.0.1:{port}"
            socket.create_connection(("127.0.0.1", port)).close()
        finally:
            cluster.stop()
