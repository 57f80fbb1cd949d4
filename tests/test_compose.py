"""The compose file uses existing settings, pins its images and contains no passwords."""

import json
import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_app import secret_files
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
        if "image" in service:
            assert re.fullmatch(r"[\w/.-]+:v?\d[\w.]*", service["image"]), name
        if name not in ONCE:
            assert service["healthcheck"], name
            assert service["restart"] == "unless-stopped", name
            assert service["deploy"]["resources"]["limits"]["memory"], name


def test_passwords_have_no_default(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    assert re.search(r"PASSWORD:-", text) is None
    assert (
        "${RAPPORT_DB_PASSWORD:?"
        in compose["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"]
    )


def test_workers_start_after_the_migration(compose: dict[str, Any]) -> None:
    needs = compose["services"]["worker"]["depends_on"]
    assert needs["migrate"] == {"condition": "service_completed_successfully"}
    assert needs["kafka"] == {"condition": "service_healthy"}


def test_kafka_has_the_version_of_the_tests(compose: dict[str, Any]) -> None:
    pom = (ROOT / "servers" / "pom.xml").read_text("utf-8")
    version = compose["services"]["kafka"]["image"].partition(":")[2]
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
    assert login["environment"]["READ_ROLE"] == Settings().database_read_role
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
                source = volume["source"]
                assert (ROOT / source).exists() or source == "./notifications.yaml"
                assert volume["read_only"]
                assert volume["bind"] == {"create_host_path": False}


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
