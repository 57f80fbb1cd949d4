"""The compose file uses existing settings, pins its images and contains no passwords."""

import json
import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from stream_app import __version__, secret_files
from stream_app.analytics.views.schema import READER
from stream_app.settings import Settings

ROOT = Path(__file__).parents[1]
ONCE = ("migrate", "grafana-login")
"""Services that end when their work is done."""


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))


def test_every_rapport_variable_is_a_setting(compose: dict[str, Any]) -> None:
    known = {f"RAPPORT_{name.upper()}" for name in Settings.model_fields}
    known |= set(secret_files.variables(Settings).values())
    used = {
        name
        for service in compose["services"].values()
        for name in service["environment"]
        if name.startswith("RAPPORT_")
    }
    assert used
    assert used <= known


def test_images_are_pinned_and_long_running_services_have_health_checks(
    compose: dict[str, Any],
) -> None:
    for name, service in compose["services"].items():
        digest = "" if "build" in service else r"@sha256:[0-9a-f]{64}"
        assert re.fullmatch(rf"[\w/.-]+:v?\d[\w.]*{digest}", service["image"]), name
        if name not in ONCE:
            assert service["healthcheck"], name
            assert service["restart"] == "unless-stopped", name
            assert service["deploy"]["resources"]["limits"]["memory"], name


def test_each_image_is_built_once_and_named_after_the_release(compose: dict[str, Any]) -> None:
    built = {
        (service["build"]["args"]["REQUIREMENTS"], service["image"])
        for service in compose["services"].values()
        if "build" in service
    }
    assert built == {
        ("worker", f"rapport-worker:{__version__}"),
        ("web", f"rapport-web:{__version__}"),
        ("gpu", f"rapport-gpu:{__version__}"),
    }
    for requirements, _ in built:
        assert (ROOT / "requirements" / f"{requirements}.txt").is_file()


def test_base_images_are_pinned_by_digest() -> None:
    bases = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert len(bases) == 3
    for base in bases:
        assert re.fullmatch(r"python:3\.11\.\d+-slim@sha256:[0-9a-f]{64}", base), base


def test_images_install_nothing_without_a_hash() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    installs = [line for line in lines if re.search(r"\bpip .*\b(install|wheel) ", line)]
    assert len(installs) == 4
    for line in installs:
        assert "--require-hashes" in line or "--no-deps" in line, line
        assert "pip wheel" not in line or "--no-build-isolation" in line


def test_every_container_is_restricted(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service, name


def test_secrets_come_from_files_that_the_service_is_given(compose: dict[str, Any]) -> None:
    given: set[str] = set()
    for name, service in compose["services"].items():
        secrets = set(service.get("secrets", ()))
        given |= secrets
        assert secrets <= compose["secrets"].keys(), name
        used = set(re.findall(r"/run/secrets[/:](\w+)", json.dumps(service)))
        assert used <= secrets, name
        for variable, value in service["environment"].items():
            if re.search(r"PASSWORD|SECRET|(_KEY)$", variable) and "JAAS" not in variable:
                assert variable.endswith("_FILE"), (name, variable)
                assert value.startswith("/run/secrets/"), (name, variable)
    assert given == compose["secrets"].keys()
    for name, secret in compose["secrets"].items():
        assert secret["file"] == f"${{RAPPORT_SECRETS:-./secrets}}/{name.replace('_', '-')}"


@pytest.mark.parametrize("password", ["p@ss:w/rd", "100%", "a#b?c=d&e", " blank ", "ü€"])
def test_any_password_reaches_the_database(
    compose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    """The service's own variables, with the secrets in another folder."""
    for name in ("database_password", "kafka_password"):
        (tmp_path / name).write_text(f"{password}\n", "utf-8")
    for name, value in compose["services"]["worker"]["environment"].items():
        if value is not None and not value.startswith("${"):  # None: as outside
            here = value.replace("/etc/rapport", str(ROOT / "servers" / "compose"))
            monkeypatch.setenv(name, here.replace("/run/secrets", str(tmp_path)))
    settings = Settings()
    url = sa.make_url(settings.database)
    assert (url.host, url.port, url.username, url.password) == (
        "postgres",
        5432,
        "rapport",
        password,
    )
    assert settings.kafka_password is not None
    assert settings.kafka_password.get_secret_value() == password


def test_workers_start_after_the_migration(compose: dict[str, Any]) -> None:
    needs = compose["services"]["worker"]["depends_on"]
    assert needs["migrate"] == {"condition": "service_completed_successfully"}
    assert needs["kafka"] == {"condition": "service_healthy"}


def test_a_worker_with_a_gpu_has_one_to_itself_and_never_falls_back(
    compose: dict[str, Any],
) -> None:
    service = compose["services"]["worker-gpu"]
    assert service["profiles"] == ["gpu"]
    assert service["environment"]["RAPPORT_PROVIDER"] == "cuda"
    [device] = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert service["networks"]["default"]["aliases"] == ["worker"], "where Prometheus finds it"
    plain = compose["services"]["worker"]["environment"]
    own = {**service["environment"]}
    own.pop("RAPPORT_PROVIDER")
    assert own == plain


def test_kafka_has_the_version_of_the_tests(compose: dict[str, Any]) -> None:
    pom = (ROOT / "servers" / "pom.xml").read_text("utf-8")
    version = compose["services"]["kafka"]["image"].partition(":")[2].partition("@")[0]
    assert f"<artifactId>kafka_2.13</artifactId>\n      <version>{version}</version>" in pom


def test_the_notifier_reads_the_mounted_file(compose: dict[str, Any]) -> None:
    notifier = compose["services"]["notifier"]
    [mounted] = notifier["volumes"]
    assert notifier["profiles"] == ["notifications"]
    assert notifier["environment"]["RAPPORT_NOTIFICATIONS"] == mounted["target"]
    assert mounted["read_only"]


def test_the_consoles_proxy_is_trusted_at_its_address(compose: dict[str, Any]) -> None:
    [network] = compose["networks"]["default"]["ipam"]["config"]
    assert ip_address(network["gateway"]) in ip_network(network["subnet"])
    web = compose["services"]["web"]
    trusted = web["environment"]["RAPPORT_WEB_PROXIES"]
    assert trusted == f"${{RAPPORT_PROXY_ADDRESS:-{network['gateway']}}}"
    assert all(port.startswith("127.0.0.1:") for port in web["ports"])


def test_grafana_runs_with_its_profile_only_and_reads_as_the_login_that_is_made_before(
    compose: dict[str, Any],
) -> None:
    services = compose["services"]
    names = {name for name, each in services.items() if each.get("profiles") == ["grafana"]}
    assert names == {"prometheus", "grafana-login", "grafana"}
    assert services["grafana"]["depends_on"]["grafana-login"] == {
        "condition": "service_completed_successfully"
    }
    login = services["grafana-login"]
    assert login["environment"]["READ_ROLE"] == READER
    assert all(port.startswith("127.0.0.1:") for name in names for port in ports(services[name]))
    monitoring = ROOT / "servers" / "monitoring"
    source = yaml.safe_load(
        (monitoring / "grafana/provisioning/datasources/rapport.yml").read_text("utf-8")
    )["datasources"][0]
    made = (monitoring / "reader.sql").read_text("utf-8")
    assert f"ALTER ROLE {source['user']} LOGIN" in made
    secret = source["secureJsonData"]["password"]
    for each in (services["grafana"], login):
        [name] = [name for name in each["secrets"] if "reader" in name]
        assert secret == f"$__file{{/run/secrets/{name}}}"
    for variable in re.findall(r"\$([A-Z][A-Z_]+)", json.dumps(source)):
        assert services["grafana"]["environment"][variable]


def ports(service: dict[str, Any]) -> list[str]:
    return service.get("ports", [])


def test_every_mounted_file_is_in_the_repository_or_named_in_the_head(
    compose: dict[str, Any],
) -> None:
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            if isinstance(volume, dict):
                source = volume["source"].removeprefix("${RAPPORT_GROUPS:-").removesuffix("}")
                assert (ROOT / source).exists() or source == "./notifications.yaml"
                assert volume["read_only"]
                assert volume["bind"] == {"create_host_path": False}


def test_on_busy_cores_the_console_comes_before_the_workers(compose: dict[str, Any]) -> None:
    usual = 1024  # Docker's default
    shares = {
        name: service.get("cpu_shares", usual) for name, service in compose["services"].items()
    }
    assert shares["web"] == max(shares.values())
    assert shares["web"] >= 4 * shares["worker"]


def test_prometheus_scrapes_the_health_ports_of_the_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    file = ROOT / "servers" / "monitoring" / "prometheus.yml"
    scraped = yaml.safe_load(file.read_text("utf-8"))["scrape_configs"]
    found = {}
    for job in scraped:
        for each in job.get("dns_sd_configs", []):
            found[each["names"][0]] = str(each["port"])
        for each in job.get("static_configs", []):
            found.update(target.split(":") for target in each["targets"])
    assert found.keys() == {"worker", "web", "notifier"}
    for name, port in found.items():
        assert services[name]["environment"]["RAPPORT_HEALTH_PORT"] == port
        assert services[name]["environment"]["RAPPORT_HEALTH_HOST"] == "0.0.0.0"
