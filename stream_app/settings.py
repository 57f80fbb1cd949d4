"""Settings from environment variables ``RAPPORT_*``; ``rapport config`` prints them."""

from datetime import UTC, date, datetime, timedelta
from enum import Enum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from pydantic import (
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from stream_app.contracts.plausible import AHEAD, PlausibleTimes
from stream_app.core.measures.window import REORDER_TURNS, WindowPolicy
from stream_app.core.session.approaches import Approaches, parse_approaches
from stream_app.core.session.consent import OnWithdrawal
from stream_app.core.session.restrictions import Restrictions, parse_restrictions
from stream_app.group_file import GroupFile, SingleSignOn
from stream_app.group_file import load as load_groups
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE, find
from stream_app.inference.devices.provider_choice import Provider
from stream_app.policies import PolicyError, Profile
from stream_app.policies import load as load_policy
from stream_app.secret_files import SecretFiles

DEFAULT_RULES: Final = Path(__file__).with_name("rules.yaml")
DEFAULT_SCORECARDS: Final = Path(__file__).with_name("scorecards.yaml")


class SecurityProtocol(Enum):
    """Security protocols of Kafka connections."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class SaslMechanism(Enum):
    """SASL mechanisms that Faust and aiokafka support."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


class RulesSource(Enum):
    """Where the alert rules in force come from."""

    FILE = "file"
    DATABASE = "database"


class RedactorName(Enum):
    """What finds personal details: ``rules`` alone, or Presidio in addition to them."""

    RULES = "rules"
    PRESIDIO = "presidio"


class LogFormat(Enum):
    """``console`` for people, ``json`` for machines."""

    CONSOLE = "console"
    JSON = "json"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("localhost.example.org")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Settings(BaseSettings):
    """All settings; times in seconds."""

    model_config = SettingsConfigDict(env_prefix="RAPPORT_", extra="ignore", frozen=True)

    kafka_brokers: str = Field("127.0.0.1:9092", description="host:port, separated by commas")
    kafka_security: SecurityProtocol = Field(
        SecurityProtocol.PLAINTEXT, description="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"
    )
    kafka_sasl_mechanism: SaslMechanism = Field(
        SaslMechanism.SCRAM_SHA_512,
        description="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; for SASL_*",
    )
    kafka_username: str | None = Field(None, description="For PLAIN and SCRAM")
    kafka_password: SecretStr | None = Field(None, description="For PLAIN and SCRAM")
    kafka_ca_file: Path | None = Field(
        None, description="Certificate authority of the brokers (PEM); default: the system's"
    )
    kafka_certificate_file: Path | None = Field(
        None, description="Client certificate (PEM), for brokers that demand one"
    )
    kafka_key_file: Path | None = Field(
        None, description="Key of the client certificate; default: in the same file"
    )
    kafka_key_password: SecretStr | None = Field(None, description="If the key is encrypted")
    kafka_oauth_token_url: str | None = Field(
        None, description="Token endpoint, for OAUTHBEARER by client credentials"
    )
    kafka_oauth_client_id: str | None = Field(None, description="For OAUTHBEARER")
    kafka_oauth_client_secret: SecretStr | None = Field(None, description="For OAUTHBEARER")
    kafka_oauth_scope: str | None = Field(None, description="Scope to ask the token endpoint for")
    kafka_group: str = Field("rapport", description="Consumer group of the workers")
    kafka_session_timeout: float = Field(
        30.0,
        ge=1.0,
        description="Seconds without a heartbeat until the group gives a worker's partitions away",
    )
    topic_prefix: str = Field(
        "dialogue",
        pattern=r"^[a-zA-Z0-9._-]+$",
        description="First part of all topics' names: PREFIX.turns",
    )
    topic_partitions: int = Field(
        6,
        ge=0,
        description="Partitions of topics that are missing at start and then created: at most as "
        "many busy workers; 0: none is created",
    )
    topic_replication: int = Field(1, ge=1, description="Replicas of topics that are created")

    database_url: SecretStr = Field(
        SecretStr("sqlite:///rapport.db"), description="sqlite:/// or postgresql://"
    )
    database_password: SecretStr | None = Field(
        None, description="Password of the user in RAPPORT_DATABASE_URL"
    )
    database_read_url: SecretStr | None = Field(
        None,
        description="A replica that analyses, reports and analytics pages read; default: "
        "RAPPORT_DATABASE_URL",
    )
    database_prepare: bool = Field(
        True,
        description="Let PostgreSQL prepare repeated statements; false for a pooler in transaction "
        "mode that is not recognised (PgBouncer is)",
    )

    master_key: SecretStr | None = Field(
        None, description="Master key of stored text; of several, the first encrypts"
    )
    master_key_file: Path | None = Field(
        None, description="File with it; with SQLite by default next to the database"
    )
    pseudonym_key: SecretStr | None = Field(None, description="Key of pseudonyms")
    pseudonym_key_file: Path | None = Field(
        None, description="File with it; with SQLite by default next to the database"
    )

    bundle: Path = Field(
        DEFAULT_BUNDLE,
        description="Model bundle: a shipped one's name, a folder, or a file of `rapport bundle "
        "promote`",
    )
    bundle_digest: str = Field(
        "",
        pattern=r"^([0-9a-f]{64})?$",
        description="Accept only the bundle with this digest (`rapport bundle check`); default: "
        "any",
    )
    bundle_routes: Path | None = Field(
        None, description="File of further bundles and the sessions they score (YAML)"
    )
    provider: Provider = Field(
        Provider.AUTO, description="auto (CUDA if it works, else the processor), cpu or cuda"
    )
    cuda_memory_mb: int | None = Field(
        None, ge=64, description="Maximum MiB of the device for each session; default: all"
    )
    threads: int = Field(1, ge=1, description="Intra-op threads per worker")

    batch_max: int = Field(
        256, ge=1, description="Maximum number of events per batch (one transaction)"
    )
    reorder_wait: float = Field(
        30.0,
        ge=0.0,
        description="Maximum wait for a missing turn, in event time; 0: turns never wait",
    )
    clock_tolerance: float = Field(
        AHEAD.total_seconds(),
        ge=0.0,
        description="Events further ahead of the broker's clock are dead letters",
    )
    idle_timeout: float = Field(
        1800.0, gt=0.0, description="Time without events after which a session is idle"
    )

    rules: Path = Field(DEFAULT_RULES, description="File of alert rules; reloaded when it changes")
    intents: Path | None = Field(
        None,
        description="File of intents, or a shipped set (service, crisis, mi_non_adherent), for "
        "which turns are searched; reloaded when it changes. Default: none",
    )
    scorecards: Path = Field(
        DEFAULT_SCORECARDS, description="File of scorecards for reviews; read when the web starts"
    )
    ask_endpoint: str | None = Field(
        None,
        description="Base URL of a language model with OpenAI's chat completions (https, or this "
        "machine), such as http://127.0.0.1:8000/v1: `rapport reviews ask` sends it the redacted "
        "text of ended sessions whose consent permits it. Default: no text is sent",
    )
    ask_model: str | None = Field(
        None, max_length=100, description="The model's name at RAPPORT_ASK_ENDPOINT"
    )
    ask_key: SecretStr | None = Field(None, description="The key of RAPPORT_ASK_ENDPOINT")
    rules_source: RulesSource = Field(
        RulesSource.FILE,
        description="file, or database: the version adopted in the console, until then the file",
    )

    groups: Path | None = Field(
        None,
        description="File of what holds by team, domain, channel and group of the identity "
        "provider (YAML): approaches, restricted outputs, single sign-on; read at start",
    )

    policy: str | None = Field(
        None,
        min_length=1,
        description="Policy profile: a shipped one's name (eu-workplace, illinois-therapy, "
        "peer-support, research), or a file (YAML). Default: none",
    )
    workers_told: date | None = Field(
        None,
        description="The day on which workers and their representatives were told of Rapport, such "
        "as 2026-03-01; some policies need it",
    )

    require_consent: bool = Field(
        True, description="Score and store only sessions with consent: true"
    )
    on_withdrawal: OnWithdrawal = Field(
        OnWithdrawal.HIDE,
        description="What withdrawn consent does to what is stored: keep, hide or erase",
    )
    redact: bool = Field(True, description="Mask personal details in stored text")
    redactor: RedactorName | Path = Field(
        RedactorName.RULES,
        union_mode="left_to_right",
        description="rules, presidio (an extra; docs/redaction.md), or a file with Presidio's "
        "analyser configuration (YAML)",
    )
    keep_text_days: int = Field(
        30, ge=1, description="Days after which the text of turns is purged"
    )
    topic_days: int = Field(
        7, ge=1, description="Retention of the topics that Rapport creates, in days"
    )
    keep_scores_days: int = Field(
        365, ge=1, description="Days after its last turn after which a session is purged"
    )

    archive: Path | None = Field(
        None, description="Folder of archived months (Parquet), for `rapport db archive`"
    )

    notifications: Path | None = Field(None, description="YAML file of notification targets")
    external_url: str = Field(
        "", description="URL of the console, without a path, for links in notifications"
    )

    self_declared_attributes: Path | None = Field(
        None,
        description="CSV file (speaker_id, attribute) for analyses of pairs and fairness; read, "
        "never stored. Default: these are off",
    )

    marked_days: Path | None = Field(
        None,
        description="CSV file (date, kind, name, team) of trainings and releases, which analytics "
        "pages and reports mark on curves. Default: changes of the model alone are marked",
    )

    web_host: str = Field("127.0.0.1", description="Address of the console and the API")
    web_port: int = Field(
        8080, ge=0, le=65535, description="Port of the console and the API; 0 = any free port"
    )
    web_https: bool = Field(
        False, description="The console is served by HTTPS only; default: as each request says"
    )
    web_idle_hours: float = Field(
        12.0,
        gt=0.0,
        description="Hours without an action of the person until a sign-in expires; after 12 it "
        "does in any case",
    )

    practice: bool = Field(
        True, description="Counsellors can rewrite own turns and see the model's levels move"
    )

    web_proxies: str = Field(
        "127.0.0.1",
        description="Addresses or networks of the proxies whose X-Forwarded headers count",
    )
    web_user_header: str | None = Field(
        None,
        pattern=r"^[A-Za-z][A-Za-z0-9-]*$",
        description="Header in which a proxy of RAPPORT_WEB_PROXIES names the signed-in account",
    )

    oidc_issuer: str | None = Field(
        None, description="OpenID Connect issuer (HTTPS), for single sign-on; default: off"
    )
    oidc_client_id: str | None = Field(None, description="Rapport's client at the provider")
    oidc_client_secret: SecretStr | None = Field(None, description="None for a public client")

    health_host: str = Field("127.0.0.1", description="Address of /healthz, /readyz, /metrics")
    health_port: int | None = Field(None, ge=0, le=65535, description="Default: off")

    log_level: str = Field(
        "INFO",
        pattern=r"^(DEBUG|INFO|WARNING|ERROR)$",
        description="DEBUG, INFO, WARNING or ERROR",
    )
    log_format: LogFormat = Field(
        LogFormat.CONSOLE, description="console for people, json for machines"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  # pydantic-settings passes all by name
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then files of secrets, then the environment."""
        return init_settings, SecretFiles(cls), env_settings

    @field_validator("bundle")
    @classmethod
    def _by_name(cls, given: Path) -> Path:
        return find(given)

    @field_validator("redactor")
    @classmethod
    def _named_or_a_file(cls, given: RedactorName | Path) -> RedactorName | Path:
        if isinstance(given, Path) and not given.is_file():
            raise ValueError(f"{given} is neither rules nor presidio, nor a file")
        return given

    @field_validator("external_url")
    @classmethod
    def _host_of_its_own(cls, given: str) -> str:
        if not given:
            return given
        parts = urlsplit(given)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("RAPPORT_EXTERNAL_URL must begin with https:// or http:// and a host")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(
                "RAPPORT_EXTERNAL_URL must not have a path: the console works only at the root of "
                "a host; give it a host name or a port of its own, such as "
                "https://rapport.example.org"
            )
        return given

    @field_validator("ask_endpoint")
    @classmethod
    def _encrypted_or_here(cls, given: str | None) -> str | None:
        if given is None:
            return given
        parts = urlsplit(given)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("RAPPORT_ASK_ENDPOINT must begin with https:// or http:// and a host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError(
                "RAPPORT_ASK_ENDPOINT must not have a user, a query or a fragment; a key belongs "
                "into RAPPORT_ASK_KEY_FILE"
            )
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise ValueError("RAPPORT_ASK_ENDPOINT is another machine: it must begin with https://")
        return given

    @model_validator(mode="after")
    def _endpoint_with_model(self) -> Self:
        if (self.ask_endpoint is None) != (self.ask_model is None):
            raise ValueError("RAPPORT_ASK_ENDPOINT and RAPPORT_ASK_MODEL need each other")
        return self

    @field_validator("web_proxies")
    @classmethod
    def _networks(cls, given: str) -> str:
        for network in given.split(","):
            ip_network(network.strip())
        return given

    @model_validator(mode="after")
    def _header_from_named_proxies(self) -> Self:
        if self.web_user_header is not None and "web_proxies" not in self.model_fields_set:
            raise ValueError("RAPPORT_WEB_USER_HEADER needs RAPPORT_WEB_PROXIES")
        if self.web_user_header is not None and any(each.prefixlen == 0 for each in self.proxies):
            raise ValueError("RAPPORT_WEB_USER_HEADER needs the addresses of single proxies")
        return self

    @model_validator(mode="after")
    def _complete_single_sign_on(self) -> Self:
        if self.oidc_issuer is None:
            return self
        if self.oidc_client_id is None or not self.external_url:
            raise ValueError("RAPPORT_OIDC_ISSUER needs RAPPORT_OIDC_CLIENT_ID and _EXTERNAL_URL")
        host = urlsplit(self.oidc_issuer).hostname
        if not self.oidc_issuer.startswith("https://") and host not in ("localhost", "127.0.0.1"):
            raise ValueError("RAPPORT_OIDC_ISSUER must be an HTTPS address")
        return self

    @property
    def proxies(self) -> list[IPv4Network | IPv6Network]:
        """The parsed ``web_proxies``."""
        return [ip_network(each.strip()) for each in self.web_proxies.split(",")]

    @field_validator("groups")
    @classmethod
    def _usable_file(cls, given: Path | None) -> Path | None:
        load_groups(given)
        return given

    @property
    def by_group(self) -> GroupFile:
        """The content of the file ``groups``; empty without one."""
        return load_groups(self.groups)

    @property
    def single_sign_on(self) -> SingleSignOn:
        """The identity provider's claims, and the access that its groups give."""
        return self.by_group.single_sign_on

    @model_validator(mode="before")
    @classmethod
    def _as_the_policy_sets(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Settings that are not given have the only value that the policy allows, if it is one."""
        try:
            profile = load_policy(str(given["policy"]))
        except (KeyError, PolicyError):  # none, or refused below
            return given
        return {**profile.values, **given}

    @field_validator("policy")
    @classmethod
    def _known_policy(cls, given: str | None) -> str | None:
        try:
            if given is not None:
                load_policy(given)
        except PolicyError as problem:
            raise ValueError(str(problem)) from None
        return given

    @field_validator("workers_told")
    @classmethod
    def _in_the_past(cls, given: date | None) -> date | None:
        if given is not None and given > (datetime.now(UTC) + timedelta(hours=14)).date():
            raise ValueError(f"{given} is in the future")  # everywhere on Earth
        return given

    @model_validator(mode="after")
    def _as_the_policy_asks(self) -> Self:
        if self.profile is not None:
            refusals = list(self.profile.refusals(self.__dict__))
            if refusals:
                raise ValueError("; ".join(refusals))
        return self

    @property
    def profile(self) -> Profile | None:
        """The policy profile in force."""
        return None if self.policy is None else load_policy(self.policy)

    @property
    def restrictions(self) -> Restrictions:
        """The outputs that the file ``groups`` or, everywhere, the policy restricts."""
        own = parse_restrictions(self.by_group.restricted_outputs)
        return own if self.profile is None else own.and_everywhere(self.profile.restricted)

    def window_of(self, bundle: tuple[int, int]) -> WindowPolicy:
        """The window policy for a bundle that reads ``bundle = (before, after)`` turns."""
        wait = timedelta(seconds=self.reorder_wait)
        turns = REORDER_TURNS if wait else 0
        return WindowPolicy(*bundle, reorder_turns=turns, reorder_wait=wait)

    @property
    def database(self) -> str:
        """The URL of the database with its password: a secret."""
        url = self.database_url.get_secret_value()
        if self.database_password is None:
            return url
        from stream_app.store.database.connection import with_password  # noqa: PLC0415  # SQLAlchemy

        return with_password(url, self.database_password.get_secret_value())

    @property
    def approach_by_group(self) -> Approaches:
        """The default approaches of the file ``groups``."""
        return parse_approaches(self.by_group.approaches)

    @property
    def plausible_times(self) -> PlausibleTimes:
        """The range of accepted event times."""
        return PlausibleTimes(ahead=timedelta(seconds=self.clock_tolerance))

    @property
    def keep_text(self) -> timedelta:
        """How long text is kept."""
        return timedelta(days=self.keep_text_days)

    @property
    def keep_scores(self) -> timedelta:
        """How long sessions are kept."""
        return timedelta(days=self.keep_scores_days)

    @property
    def turns_topic(self) -> str:
        """Topic of incoming events."""
        return f"{self.topic_prefix}.turns"

    @property
    def dead_letter_topic(self) -> str:
        """Topic of dead-lettered events."""
        return f"{self.topic_prefix}.dead-letters"

    @property
    def turn_score_topic(self) -> str:
        """Topic of turn scores."""
        return f"{self.topic_prefix}.turn-scores"

    @property
    def session_score_topic(self) -> str:
        """Topic of session scores."""
        return f"{self.topic_prefix}.session-scores"

    @property
    def alert_topic(self) -> str:
        """Topic of alert transitions."""
        return f"{self.topic_prefix}.alerts"

    @property
    def alert_action_topic(self) -> str:
        """Topic of people's actions on alerts, read by all web processes."""
        return f"{self.topic_prefix}.alert-actions"

    @property
    def intervention_topic(self) -> str:
        """Supervisors' interventions in running sessions."""
        return f"{self.topic_prefix}.interventions"

    @property
    def session_topics(self) -> list[str]:
        """Topics keyed by session whose consumers must learn of an erasure."""
        return [
            self.turn_score_topic,
            self.session_score_topic,
            self.alert_topic,
            self.alert_action_topic,
            self.intervention_topic,
        ]

    @property
    def topics(self) -> list[str]:
        """All topics."""
        return [
            self.turns_topic,
            self.dead_letter_topic,
            *self.session_topics,
        ]

    @property
    def idle_after(self) -> timedelta:
        """The idle timeout as a duration."""
        return timedelta(seconds=self.idle_timeout)
