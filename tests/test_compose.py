"""The compose file uses existing settings, pins its images and contains no passwords."""

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_app import secret_files
from stream_app.settings import Settings

ROOT = Path(__file__).parents[1]


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
            assert re.fullmatch(r"[\w/.-]+:\d[\w.]*", service["image"]), name
        if name != "migrate":
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
    trusted = web["environment"]["FORWARDED_ALLOW_IPS"]
    assert trusted == f"${{RAPPORT_PROXY_ADDRESS:-{network['gateway']}}}"
    assert all(port.startswith("127.0.0.1:") for port in web["ports"])
