"""A schema registry on loopback: `python -m servers.schema_registry`.

Apicurio Registry, in memory, with its Confluent-compatible REST API. It comes from Maven Central,
once, into build/schema-registry.
"""

import argparse
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx

from stream_app.worker.kafka.broker import die_with_parent, free_port

REPOSITORY: Final = Path(__file__).resolve().parents[1]
VERSION: Final = "2.5.11.Final"
ARTIFACT: Final = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
API: Final = "/apis/ccompat/v7"
HEAP: Final = "-Xmx256m"
PATIENCE: Final = 90.0


class RegistryMissing(Exception):
    """The registry cannot be run here; the message says what is missing."""


def program() -> Path:
    """The registry's jar, fetched through Maven on first use.

    Raises:
        RegistryMissing: Java or Maven is missing, or it cannot be fetched.
    """
    if shutil.which("java") is None:
        raise RegistryMissing("Apicurio Registry needs Java 17 or later (`java`)")
    folder = REPOSITORY / "build" / "schema-registry" / VERSION
    jar = folder / f"apicurio-registry-app-{VERSION}-runner.jar"
    if jar.is_file():
        return jar
    if shutil.which("mvn") is None:
        raise RegistryMissing("Apicurio Registry is fetched with Maven (`mvn`)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        goal = [COPY, f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={unfinished}"]
        done = subprocess.run(
            ["mvn", "-q", "-B", *goal], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RegistryMissing(f"Maven could not fetch Apicurio Registry: {done.stdout[-500:]}")
        [packed] = Path(unfinished).glob("*.tar.gz")
        with tarfile.open(packed) as files:
            if hasattr(tarfile, "data_filter"):  # Python 3.11.4
                files.extraction_filter = tarfile.data_filter
            files.extractall(Path(unfinished, "files"))  # noqa: S202 (the publisher's own archive)
        with suppress(OSError):  # another process may have been faster
            Path(unfinished, "files").rename(folder)
    return jar


@contextmanager
def running(folder: Path, port: int = 0) -> Iterator[str]:
    """Run an empty registry within the `with` block; yields the address of its Confluent API.

    Raises:
        RegistryMissing: it cannot be run here.
    """
    jar = program()
    port = port or free_port()
    address = f"http://127.0.0.1:{port}"
    options = ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
    with (folder / "schema-registry.log").open("ab") as log:
        process = subprocess.Popen(
            ["java", HEAP, "-XX:TieredStopAtLevel=1", *options, "-jar", jar],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509
        )
    try:
        _await(process, f"{address}{API}/subjects")
        yield f"{address}{API}"
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(process: "subprocess.Popen[bytes]", url: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up and process.poll() is None:
        with suppress(httpx.HTTPError):
            if httpx.get(url).status_code == httpx.codes.OK:
                return
        time.sleep(0.2)
    raise RegistryMissing("Apicurio Registry does not start")


def main() -> None:
    """Run a registry until interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory() as folder, running(Path(folder), options.port) as url:
            print(f"The registry is running: RAPPORT_SCHEMA_REGISTRY_URL={url}", flush=True)
            signal.pause()
    except RegistryMissing as problem:
        raise SystemExit(f"error: {problem}") from problem
    except KeyboardInterrupt:
        print("stopping", flush=True)


if __name__ == "__main__":
    main()
