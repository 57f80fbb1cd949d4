"""Authorization code flow with PKCE at an OpenID Connect provider, by Authlib."""

import warnings
from typing import Any, Final

import httpx
import structlog
from authlib.common.errors import AuthlibBaseError
from authlib.deprecate import AuthlibDeprecationWarning
from joserfc.errors import ClaimError, JoseError
from msgspec import Struct

from stream_app.errors import RapportError
from stream_app.settings import Settings

METADATA: Final = "/.well-known/openid-configuration"
TIMEOUT: Final = 10.0
SIGNATURES: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Never ``none``, and no shared secrets."""
Claims = dict[str, Any]
log = structlog.get_logger(__name__)


class ProviderUnavailable(RapportError):
    """The identity provider does not answer as it should."""


class SignInRefused(RapportError):
    """The sign-in cannot be completed; the message is for the audit trail."""


class ClaimMissing(SignInRefused):
    """The provider does not send a claim that the settings name; the person may know that."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the identity provider sends no claim {name}")


class Attempt(Struct, frozen=True):
    """What the browser keeps between leaving for the provider and coming back."""

    state: str
    nonce: str
    verifier: str
    to: str


class IdentityProvider:
    """The provider of ``settings.oidc_issuer``."""

    def __init__(self, settings: Settings) -> None:
        self.issuer = settings.oidc_issuer or ""
        self._client_id = settings.oidc_client_id or ""
        self._callback = f"{settings.external_url.rstrip('/')}/sign-in/oidc/callback"
        secret, asked = settings.oidc_client_secret, settings.single_sign_on
        self._app: Any = _client_class()(
            None,
            "rapport",
            client_id=self._client_id,
            client_secret=secret.get_secret_value() if secret else None,
            server_metadata_url=f"{self.issuer.rstrip('/')}{METADATA}",
            client_kwargs={
                "scope": asked.scope,
                "code_challenge_method": "S256",
                "timeout": TIMEOUT,
                "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
            },
        )
        self._wanted = [asked.name_claim]
        if asked.speaker_claim is not None:
            self._wanted.append(asked.speaker_claim)
        if asked.access:
            self._wanted.append(asked.access_claim)

    async def begin(self, to: str) -> tuple[str, Attempt]:
        """The provider's address to send the browser to, and what the browser keeps.

        Raises:
            ProviderUnavailable: the provider does not answer.
        """
        await self._load()
        made = await self._app.create_authorization_url(self._callback)
        return made["url"], Attempt(made["state"], made["nonce"], made["code_verifier"], to)

    async def finish(self, attempt: Attempt, code: str) -> Claims:
        """The claims of the person, after exchanging the code and checking the ID token.

        Raises:
            ProviderUnavailable: the provider does not answer.
            SignInRefused: the code or the token is not valid.
        """
        await self._load()
        try:
            token = await self._app.fetch_access_token(
                self._callback, code=code, code_verifier=attempt.verifier
            )
            claims = await self._verified(token, attempt.nonce)
            if claims is None:
                raise SignInRefused("the provider sent no ID token")
            return await self._complete(dict(claims), token)
        except (AuthlibBaseError, JoseError, ValueError) as problem:
            raise SignInRefused(f"invalid code or token ({type(problem).__name__})") from None
        except httpx.HTTPError as problem:
            raise self._unavailable(problem) from None

    async def _verified(self, token: dict[str, Any], nonce: str) -> Any:
        """The claims of the ID token, None without one.

        A provider may replace its keys at any time, and may leave out their ids: keys that were
        read for an earlier sign-in are read again, once, before a token is refused.
        """
        expected = {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self._client_id},
        }
        kept = self._app.server_metadata.get("jwks")
        try:
            return await self._app.parse_id_token(token, nonce, expected)
        except ClaimError:
            raise
        except (JoseError, ValueError):
            if kept is None or self._app.server_metadata.get("jwks") is not kept:
                raise
        await self._app.fetch_jwk_set(force=True)
        return await self._app.parse_id_token(token, nonce, expected)

    async def _load(self) -> None:
        """Read the provider's metadata, once."""
        try:
            metadata = await self._app.load_server_metadata()
        except (httpx.HTTPError, ValueError) as problem:
            raise self._unavailable(problem) from None
        if metadata.get("issuer") != self.issuer:
            metadata.clear()
            raise self._unavailable(ValueError("another issuer"))
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        metadata["id_token_signing_alg_values_supported"] = sorted(SIGNATURES & set(offered))

    async def _complete(self, claims: Claims, token: dict[str, Any]) -> Claims:
        """Add claims that the provider leaves out of the ID token to keep it short."""
        complete = all(claim_at(claims, path) is not None for path in self._wanted)
        if complete or "userinfo_endpoint" not in self._app.server_metadata:
            return claims
        more = await self._app.userinfo(token=token)
        if more.get("sub") != claims["sub"]:
            raise SignInRefused("the user information is about somebody else")
        return _joined(claims, more)

    def _unavailable(self, problem: Exception) -> ProviderUnavailable:
        log.warning("sign_in.provider_unavailable", problem=type(problem).__name__)
        return ProviderUnavailable("the identity provider is unavailable; try again in a minute")


def claim_at(claims: Claims, path: str) -> Any:
    """The claim of this name, else the one inside others that the dots lead to; None without it.

    >>> claim_at({"realm_access": {"roles": ["leads"]}}, "realm_access.roles")
    ['leads']
    >>> claim_at({"https://example.org/groups": ["leads"]}, "https://example.org/groups")
    ['leads']
    """
    if claims.get(path) is not None:
        return claims[path]
    for at, letter in enumerate(path):
        inner = claims.get(path[:at]) if letter == "." else None
        if isinstance(inner, dict) and (found := claim_at(inner, path[at + 1 :])) is not None:
            return found
    return None


def _joined(claims: Claims, more: Claims) -> Claims:
    """Both, inside objects too; ``claims`` count where both have a value."""
    inner = {
        name: _joined(value, more[name])
        for name, value in claims.items()
        if isinstance(value, dict) and isinstance(more.get(name), dict)
    }
    return {**more, **claims, **inner}


def _client_class() -> Any:
    """Authlib's client; it warns that it prefers a later httpx, which the service does not use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AuthlibDeprecationWarning)
        from authlib.integrations.starlette_client import (  # noqa: PLC0415  # for single sign-on
            StarletteOAuth2App,
        )
    return StarletteOAuth2App
