"""Sign-in at a real OpenID Connect provider, which runs as a process on this machine."""

import base64
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import RSAKey
from pydantic import SecretStr, ValidationError

from stream_app import bootstrap
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People, Person, PersonError
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from stream_app.web.console.sign_in import single_sign_on
from stream_app.web.services import Services
from stream_app.work.account_changes import AccountChanges
from stream_app.worker.kafka.broker import free_port
from tests import group_files
from tests.web.openid_provider import running_provider
from tests.web.people.client import Client

CONSOLE = "https://rapport.test"
ACCESS = {
    "heads": {"role": "supervisor", "all_teams": True},
    "north-leads": {"role": "supervisor", "team": "north"},
    "counsellors": {"role": "counsellor"},
}
CREATED = {"access": ACCESS, "create_accounts": True}
New = Callable[..., "SignIn"]


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with running_provider() as address:
        yield address


class SignIn:
    """A browser that signs in."""

    def __init__(self, client: Client, services: Services) -> None:
        self.client = client
        self.services = services
        self.cookie: dict[str, str] = {}
        self.asked: dict[str, str] = {}

    def leave(self, to: str = "/alerts") -> str:
        """Go to the provider and return its address."""
        answer = self.client.get("/sign-in/oidc", params={"to": to})
        assert answer.status_code == 303
        self.cookie = _cookie(answer)
        address = answer.headers["location"]
        self.asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        return address

    def authenticate(self, address: str, sub: str) -> str:
        """Sign in there and return the path of the callback."""
        answer = httpx.post(address, data={"sub": sub})
        assert answer.status_code == 302, answer.text
        back = answer.headers["location"]
        assert back.startswith(f"{CONSOLE}/sign-in/oidc/callback?")
        return back.removeprefix(CONSOLE)

    def come_back(self, path: str) -> httpx.Response:
        return self.client.get(path, headers=self.cookie | {"Sec-Fetch-Site": "cross-site"})

    def whole(self, sub: str) -> httpx.Response:
        return self.come_back(self.authenticate(self.leave(), sub))

    def account(self, answer: httpx.Response) -> dict[str, Any]:
        """The account that the answer signed in."""
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = self.client.get("/api/v1/me", headers=_cookie(answer)).json()
        return found


def _cookie(answer: httpx.Response) -> dict[str, str]:
    given = [each.partition(";")[0] for each in answer.headers.get_list("set-cookie")]
    return {"Cookie": "; ".join(each for each in given if not each.endswith('=""'))}


@pytest.fixture
def new(filled: Store, issuer: str, tmp_path: Path) -> New:
    """Makes browsers of a console where sue is the person 1001.

    ``sign_on``: of the file of groups; ``changes``: of the settings.
    """
    AccountChanges(filled, "(test)").bind("sue", issuer, "1001")
    url = SecretStr(filled.engine.url.render_as_string())

    def make(sign_on: dict[str, Any] | None = None, **changes: Any) -> SignIn:
        settings = Settings().model_copy(
            update={
                "database_url": url,
                "external_url": CONSOLE,
                "oidc_issuer": issuer,
                "oidc_client_id": "rapport",
                "oidc_client_secret": SecretStr("secret of the client"),
                "groups": group_files.written(tmp_path, single_sign_on=sign_on or {}),
                **changes,
            }
        )
        app = bootstrap.web(settings)
        return SignIn(Client(app, "", CONSOLE), app.state.services)

    return make


def refusals(store: Store) -> list[str | None]:
    return [e.detail for e in audit.latest(store) if e.action == "sign-in refused"]


def test_a_person_signs_in_and_reaches_the_wanted_page(new: New, filled: Store) -> None:
    browser = new()
    answer = browser.whole("1001")
    assert browser.account(answer)["name"] == "sue"
    assert '<meta http-equiv="refresh" content="0;url=/alerts">' in answer.text
    [sign_in] = [each for each in audit.latest(filled) if each.action == "sign-in"]
    assert (sign_in.person, sign_in.detail) == ("sue", "single sign-on")
    assert browser.asked["code_challenge_method"] == "S256"
    assert browser.asked["nonce"]


def test_without_a_wanted_page_people_begin_at_their_roles_page(
    new: New, filled: Store, issuer: str
) -> None:
    AccountChanges(filled, "(test)").bind("noor", issuer, "2002")
    browser = new()
    answer = browser.come_back(browser.authenticate(browser.leave("/"), "2002"))
    assert '<meta http-equiv="refresh" content="0;url=/me">' in answer.text
    answer = browser.come_back(browser.authenticate(browser.leave("/"), "1001"))
    assert '<meta http-equiv="refresh" content="0;url=/">' in answer.text


def test_the_form_offers_it_only_if_it_is_configured(new: New, filled: Store) -> None:
    assert 'href="/sign-in/oidc?to=/alerts"' in new().client.get("/sign-in?to=/alerts").text
    other = new(oidc_issuer=None).client
    assert "/sign-in/oidc" not in other.get("/sign-in").text
    assert other.get("/sign-in/oidc").status_code == 404


def test_the_code_is_exchanged_with_its_verifier(new: New, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = new()
    path = browser.authenticate(browser.leave(), "1001")
    sent: list[httpx.Request] = []
    send = httpx.AsyncClient.send

    async def recorded(
        self: httpx.AsyncClient, request: httpx.Request, **options: Any
    ) -> httpx.Response:
        sent.append(request)
        return await send(self, request, **options)

    monkeypatch.setattr(httpx.AsyncClient, "send", recorded)
    assert browser.come_back(path).status_code == 200
    [form] = [parse_qs(each.content.decode()) for each in sent if each.url.path.endswith("/token")]
    digest = hashlib.sha256(form["code_verifier"][0].encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert challenge == browser.asked["code_challenge"]


def test_a_wrong_state_is_refused(new: New, filled: Store) -> None:
    browser = new()
    path = browser.authenticate(browser.leave(), "1001")
    forged = path.replace(browser.asked["state"], "another-state")
    answer = browser.come_back(forged)
    assert answer.status_code == 403
    assert not any("rapport=" in each for each in answer.headers.get_list("set-cookie"))
    assert refusals(filled) == ["the state is another sign-in's"]


def test_an_expired_state_changes_neither_the_account_nor_the_sign_in(
    new: New, filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    People(filled).set_access(Person("sue", PersonRole.SUPERVISOR, team="north"))
    browser = new()
    before = browser.account(signed_in := browser.whole("1001"))
    assert before["team"] == "north"
    path = browser.authenticate(browser.leave(), "1001")
    browser.cookie = {"Cookie": f"{_cookie(signed_in)['Cookie']}; {browser.cookie['Cookie']}"}
    monkeypatch.setattr(single_sign_on, "SECONDS", -1)
    answer = browser.come_back(path)
    assert answer.status_code == 403
    assert refusals(filled) == ["the browser began no sign-in, or too long ago"]
    assert browser.account(signed_in) == before
    assert People(filled).find("sue").team == "north"


def test_a_callback_of_another_browser_is_refused(new: New, filled: Store) -> None:
    """An attacker cannot sign a victim in to the attacker's account."""
    attacker, victim = new(), new()
    path = attacker.authenticate(attacker.leave(), "1001")
    assert victim.come_back(path).status_code == 403
    victim.leave()
    assert victim.come_back(path).status_code == 403
    assert refusals(filled) == [
        "the state is another sign-in's",
        "the browser began no sign-in, or too long ago",
    ]


def test_a_token_with_another_nonce_is_refused(new: New, filled: Store) -> None:
    browser = new()
    address = browser.leave()
    replayed = address.replace(browser.asked["nonce"], "an-earlier-nonce")
    assert browser.come_back(browser.authenticate(replayed, "1001")).status_code == 403
    assert refusals(filled) == ["invalid code or token (InvalidClaimError)"]


def test_a_code_is_valid_once(new: New, filled: Store) -> None:
    browser = new()
    path = browser.authenticate(browser.leave(), "1001")
    assert browser.come_back(path).status_code == 200
    assert browser.come_back(path).status_code == 403
    assert refusals(filled) == ["invalid code or token (OAuthError)"]


def test_a_token_for_another_client_is_refused(new: New, filled: Store) -> None:
    browser = new()
    address = browser.leave().replace("client_id=rapport", "client_id=other")
    assert browser.come_back(browser.authenticate(address, "1001")).status_code == 403


def test_unknown_people_get_no_account(new: New, filled: Store) -> None:
    assert new().whole("1003").status_code == 403
    assert People(filled).find("newcomer") is None
    assert refusals(filled) == ["there is no account newcomer, or it is disabled"]


def test_disabled_accounts_stay_out(new: New, filled: Store) -> None:
    browser = new(CREATED)
    assert browser.whole("1001").status_code == 200
    People(filled).disable("sue")
    assert new().whole("1001").status_code == 403
    assert browser.whole("1001").status_code == 403
    assert People(filled).find("sue") is None


def test_a_name_given_to_somebody_else_does_not_open_the_account(new: New, filled: Store) -> None:
    assert new().whole("1001").status_code == 200
    assert new().whole("1002").status_code == 403
    assert refusals(filled) == ["the account sue is not bound to this person, who has the sub 1002"]


@pytest.mark.parametrize("role", [PersonRole.ADMIN, PersonRole.SUPERVISOR, PersonRole.INGEST])
@pytest.mark.parametrize("create", [False, True])
def test_a_name_opens_no_account(
    new: New, filled: Store, issuer: str, role: PersonRole, create: bool
) -> None:
    People(filled).add(Person("boss", role), None)
    browser = new({"access": ACCESS, "create_accounts": create})
    assert browser.whole("1007").status_code == 403
    assert People(filled).identity("boss") is None
    assert People(filled).find("boss").role is role
    assert refusals(filled) == [
        "the account boss is not bound to this person, who has the sub 1007"
    ]


def test_an_administrator_binds_an_account_to_a_person(
    new: New, filled: Store, issuer: str
) -> None:
    People(filled).add(Person("boss", PersonRole.ADMIN), None)
    browser = new()
    changes = AccountChanges(filled, "(test)")
    changes.bind("boss", issuer, "1007")
    assert browser.account(answer := browser.whole("1007"))["role"] == "admin"
    with pytest.raises(PersonError, match="signs in as sue"):
        changes.bind("boss", issuer, "1001")
    changes.bind("boss", issuer, "1009")
    assert browser.client.get("/api/v1/me", headers=_cookie(answer)).status_code == 401
    assert browser.whole("1007").status_code == 403


@pytest.mark.parametrize("role", [PersonRole.INGEST, PersonRole.STUDY])
def test_accounts_with_tokens_alone_are_not_bound(filled: Store, role: PersonRole) -> None:
    People(filled).add(Person("pump", role), None)
    with pytest.raises(PersonError, match="have tokens"):
        AccountChanges(filled, "(test)").bind("pump", "https://idp.example.org", "1005")


def test_a_disabled_person_does_not_come_back_under_another_name(
    new: New, filled: Store, issuer: str
) -> None:
    changes = AccountChanges(filled, "(test)")
    browser = new(CREATED | {"name_claim": "sub"})
    changes.disable("sue")
    assert browser.whole("1001").status_code == 403
    assert People(filled).find("1001") is None
    assert refusals(filled) == ["the account sue is disabled"]
    People(filled).add(Person("sue.2", PersonRole.SUPERVISOR, "north"), None)
    changes.bind("sue.2", issuer, "1001")
    assert browser.account(browser.whole("1001"))["name"] == "sue.2"


def test_two_issuers_do_not_share_their_subs(new: New, filled: Store) -> None:
    browser = new()
    AccountChanges(filled, "(test)").bind("sue", "https://idp.example.org", "1001")
    assert browser.whole("1001").status_code == 403


def test_a_bound_person_needs_no_name(new: New, filled: Store, issuer: str) -> None:
    browser = new()
    AccountChanges(filled, "(test)").bind("sue", issuer, "1006")
    assert browser.account(browser.whole("1006"))["name"] == "sue"


@pytest.mark.parametrize("kid", [None, "of an earlier key"])
def test_replaced_keys_are_read_once_more(new: New, kid: str | None) -> None:
    """The provider got other keys since the last sign-in, with or without ids."""
    browser = new()
    path = browser.authenticate(browser.leave(), "1001")
    earlier = RSAKey.generate_key(2048).as_dict(private=False)
    provider: Any = browser.services.identity_provider
    keys = {"keys": [earlier | ({"kid": kid} if kid else {})]}
    provider._app.server_metadata["jwks"] = keys
    assert browser.come_back(path).status_code == 200


def test_keys_that_were_just_read_are_not_read_again(
    new: New, filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = new()
    path = browser.authenticate(browser.leave(), "1001")
    other = {"keys": [RSAKey.generate_key(2048).as_dict(private=False)]}
    provider: Any = browser.services.identity_provider
    read = []

    async def keys(force: bool = False) -> dict[str, Any]:
        kept = provider._app.server_metadata.get("jwks")
        if kept is None or force:
            read.append(force)
            kept = provider._app.server_metadata["jwks"] = dict(other)
        return kept

    monkeypatch.setattr(provider._app, "fetch_jwk_set", keys)
    assert browser.come_back(path).status_code == 403
    assert browser.whole("1001").status_code == 403
    assert read == [False, True]
    assert refusals(filled) == ["invalid code or token (BadSignatureError)"] * 2


def test_groups_may_be_inside_another_claim(new: New) -> None:
    rules = {"access_claim": "realm_access.roles", "speaker_claim": "preferred_username"}
    browser = new(CREATED | rules)
    assert browser.account(browser.whole("1008"))["role"] == "counsellor"


@pytest.mark.parametrize("name", ["realm_access.groups", "preferred_username.roles", "roles"])
def test_a_missing_claim_is_named(new: New, filled: Store, name: str) -> None:
    browser = new(CREATED | {"access_claim": name})
    answer = browser.whole("1008")
    assert answer.status_code == 403
    assert f"The identity provider sends no claim {name}." in answer.text
    assert refusals(filled) == [f"the identity provider sends no claim {name}"]


def test_accounts_are_created_with_the_groups_access_if_that_is_set(
    new: New, filled: Store
) -> None:
    browser = new(CREATED | {"speaker_claim": "preferred_username"})
    me = browser.account(browser.whole("1003"))
    speaker = filled.privacy.pseudonym("newcomer")
    assert (me["name"], me["role"], me["speaker"]) == ("newcomer", "counsellor", speaker)
    assert browser.account(browser.whole("1003"))["name"] == "newcomer"
    assert browser.whole("1004").status_code == 403
    assert People(filled).find("visitor") is None
    assert refusals(filled) == ["none of the person's groups has access"]


def test_role_and_team_follow_the_groups_at_every_sign_in(new: New, filled: Store) -> None:
    People(filled).set_access(Person("sue", PersonRole.ADMIN))
    browser = new({"access": ACCESS})
    me = browser.account(browser.whole("1001"))
    assert (me["role"], me["team"]) == ("supervisor", "north")
    changes = [e.detail for e in audit.latest(filled) if e.person == "(single sign-on)"]
    assert changes == ["sue is supervisor of north by single sign-on"]


def test_programs_and_people_without_a_name_are_refused(
    new: New, filled: Store, issuer: str
) -> None:
    People(filled).add(Person("pump", PersonRole.INGEST), None, f"{issuer} 1005")
    assert new().whole("1005").status_code == 403
    assert new().whole("1006").status_code == 403
    assert refusals(filled) == [
        "the identity provider sends no claim preferred_username",
        "programs send with tokens",
    ]


def test_without_its_provider_sign_in_is_unavailable(new: New) -> None:
    browser = new(oidc_issuer=f"http://127.0.0.1:{free_port()}")
    assert browser.client.get("/sign-in/oidc").status_code == 503


def test_another_issuer_than_the_configured_is_refused(new: New, issuer: str) -> None:
    same_server = issuer.replace("127.0.0.1", "localhost")
    metadata = httpx.get(f"{same_server}/.well-known/openid-configuration").json()
    assert metadata["issuer"] == same_server
    browser = new(oidc_issuer=f"{issuer}/")
    assert browser.client.get("/sign-in/oidc").status_code == 503


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"OIDC_CLIENT_ID": None}, "needs RAPPORT_OIDC_CLIENT_ID"),
        ({"EXTERNAL_URL": None}, "_EXTERNAL_URL"),
        ({"OIDC_ISSUER": "http://idp.example.org"}, "HTTPS"),
    ],
)
def test_incomplete_settings_are_refused(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str | None], words: str
) -> None:
    complete = {
        "OIDC_ISSUER": "https://idp.example.org",
        "OIDC_CLIENT_ID": "rapport",
        "EXTERNAL_URL": CONSOLE,
    }
    for name, value in (complete | changes).items():
        if value is not None:
            monkeypatch.setenv(f"RAPPORT_{name}", value)
    with pytest.raises(ValidationError, match=words):
        Settings()
