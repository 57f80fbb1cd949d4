"""Ids of schemas: registration, look-up, logins, TLS, and what is said when there is no id."""

import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from stream_app.commands.service import doctor
from stream_app.contracts import schema
from stream_app.settings import Settings
from stream_app.worker.kafka.broker import free_port
from stream_app.worker.kafka.schema_registry import (
    NotRegistered,
    RegistryRefused,
    RegistrySilent,
    described,
    schema_ids,
)
from tests.certificates import Authority
from tests.worker.registry_double import RegistryDouble, running


@pytest.fixture
def registry() -> Iterator[RegistryDouble]:
    with running() as found:
        yield found


def settings(url: str | None, **changes: Any) -> Settings:
    return Settings().model_copy(update={"schema_registry_url": url, **changes})


def test_without_a_registry_there_are_no_ids() -> None:
    assert schema_ids(settings(None)) == {}


def test_schemas_are_registered_under_the_names_of_topics(registry: RegistryDouble) -> None:
    ids = schema_ids(settings(registry.url))
    assert ids == {"dialogue.turn-scores": 1, "dialogue.session-scores": 2, "dialogue.alerts": 3}
    assert described(ids).startswith("dialogue.turn-scores-value has id 1, ")
    [registered] = registry.subjects["dialogue.alerts-value"]
    assert json.loads(registered) == schema.build("alert")
    assert schema_ids(settings(registry.url + "/")) == ids, "registering again changes nothing"


def test_schemas_can_be_looked_up_instead(registry: RegistryDouble) -> None:
    looking = settings(registry.url, schema_registry_register=False)
    with pytest.raises(NotRegistered, match=r"turn_score under dialogue\.turn-scores-value"):
        schema_ids(looking)
    assert registry.subjects == {}
    ids = schema_ids(settings(registry.url))
    assert schema_ids(looking) == ids
    registry.subjects["dialogue.turn-scores-value"] = ["{}"]
    with pytest.raises(NotRegistered, match=r"RAPPORT_SCHEMA_REGISTRY_REGISTER=true"):
        schema_ids(looking)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_registry_that_cannot_answer_yet_is_asked_again(
    registry: RegistryDouble, status: int
) -> None:
    registry.answers = [(status, b"later"), (status, {"error_code": 50003, "message": "leader"})]
    assert len(schema_ids(settings(registry.url))) == 3
    assert len(registry.asked) == 5
    registry.always = (status, {"message": "no leader"})
    with pytest.raises(RegistrySilent, match=rf"status {status}\): no leader"):
        schema_ids(settings(registry.url), patience=0.1)


def test_a_registry_that_does_not_answer_is_named_without_a_login() -> None:
    gone = settings(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(RegistrySilent, match=r"^the schema registry 127\.0\.0\.1 does not answer"):
        schema_ids(gone, patience=0.1)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((401, b""), "refuses the login"),
        ((403, {"message": "not yours"}), r"refuses the login \(status 403\): not yours; see"),
        ((409, {"error_code": 409, "message": "PROPERTY_REMOVED"}), "incompatible .*: PROPERTY_"),
        ((422, {"error_code": 42201, "message": "no JSON"}), "does not accept the schema turn_sco"),
        ((404, b"<html>"), "answered with status 404; RAPPORT_SCHEMA_REGISTRY_URL must be"),
        ((301, b""), "answered with status 301; RAPPORT_SCHEMA_REGISTRY_URL must be"),
        ((200, b"<html>"), "answered without the id"),
        ((200, {"id": "1"}), "answered without the id"),
        ((200, {"id": -1}), "answered without the id"),
        ((200, {"id": 2**32}), "answered without the id"),
        ((200, b"\xff"), "answered without the id"),
        ((200, {"version": 1}), "answered without the id"),
        ((400, {"error_code": "x", "message": 5}), "answered with status 400;"),
    ],
    ids=lambda given: str(given)[:24] if isinstance(given, tuple) else "",
)
def test_refusals_are_explained_and_not_repeated(
    registry: RegistryDouble, answer: tuple[int, Any], words: str
) -> None:
    registry.always = answer
    with pytest.raises(RegistryRefused, match=words):
        schema_ids(settings(registry.url))
    assert len(registry.asked) == 1


def test_the_largest_id_fits(registry: RegistryDouble) -> None:
    registry.always = (200, {"id": 2**32 - 1, "guid": "x"})
    assert set(schema_ids(settings(registry.url)).values()) == {2**32 - 1}


def test_what_the_registry_says_is_one_short_line(registry: RegistryDouble) -> None:
    registry.always = (422, {"error_code": 42201, "message": "a\nb\x1b[31m" + "c" * 100_000})
    with pytest.raises(RegistryRefused) as problem:
        schema_ids(settings(registry.url))
    assert len(str(problem.value)) < 400
    assert str(problem.value).isprintable()


def test_a_login_is_sent(registry: RegistryDouble) -> None:
    registry.login = "rapport:pässword: 7"
    name, secret = registry.login.split(":", 1)
    login = {"schema_registry_username": name, "schema_registry_password": SecretStr(secret)}
    assert len(schema_ids(settings(registry.url, **login))) == 3
    with pytest.raises(RegistryRefused, match="refuses the login") as problem:
        schema_ids(settings(registry.url, **(login | {"schema_registry_username": "x"})))
    assert secret not in str(problem.value)


@pytest.mark.parametrize(
    ("url", "changes", "words"),
    [
        ("registry:8081", {}, "must be an http or https address"),
        ("", {}, "must be an http or https address"),
        ("http://", {}, "must be an http or https address"),
        ("http://[", {}, "must be an http or https address"),
        ("http://host:port", {}, "must be an http or https address"),
        ("https://me:secret@host", {}, "must not contain a login"),
        ("https://host", {"schema_registry_username": "me"}, "need each other"),
        ("https://host", {"schema_registry_password": SecretStr("secret")}, "need each other"),
        (
            "http://registry.example",
            {"schema_registry_username": "me", "schema_registry_password": SecretStr("secret")},
            "must be an https address",
        ),
        ("https://host", {"schema_registry_ca_file": "/nowhere"}, "_CA_FILE .* cannot be loaded"),
        ("https://host", {"schema_registry_key_file": "/nowhere"}, "_KEY_FILE needs"),
    ],
    ids=range(11),
)
def test_settings_that_cannot_work_are_explained(
    url: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(RegistryRefused, match=f"RAPPORT_SCHEMA_REGISTRY.*{words}") as problem:
        schema_ids(settings(url, **changes))
    assert "secret" not in str(problem.value)


def test_certificates_of_both_sides_are_checked(tmp_path_factory: pytest.TempPathFactory) -> None:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    other = Authority(tmp_path_factory.mktemp("other"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.file)
    context.load_cert_chain(*authority.issue("server", ["localhost"]))
    context.verify_mode = ssl.CERT_REQUIRED
    certificate, key = authority.issue("client", ["rapport"], password="locked")
    shown = {
        "schema_registry_ca_file": authority.file,
        "schema_registry_certificate_file": certificate,
        "schema_registry_key_file": key,
        "schema_registry_key_password": SecretStr("locked"),
    }
    with running(context) as registry:
        assert len(schema_ids(settings(registry.url, **shown))) == 3
        distrusting = settings(registry.url, **(shown | {"schema_registry_ca_file": other.file}))
        with pytest.raises(RegistryRefused, match="its certificate was refused"):
            schema_ids(distrusting)
        with pytest.raises(RegistrySilent, match="does not answer"):
            schema_ids(settings(registry.url, schema_registry_ca_file=authority.file), patience=0.1)


def test_doctor_looks_and_registers_nothing(registry: RegistryDouble) -> None:
    assert "not framed" in doctor._registry(settings(None))
    assert "first worker registers" in doctor._registry(settings(registry.url))
    with pytest.raises(NotRegistered):
        doctor._registry(settings(registry.url, schema_registry_register=False))
    assert registry.subjects == {}
    schema_ids(settings(registry.url))
    assert "dialogue.alerts-value has id 3" in doctor._registry(settings(registry.url))
