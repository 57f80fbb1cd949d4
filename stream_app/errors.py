"""Errors that Rapport raises on purpose.

RapportError
├── ContractError        an event breaks the wire contract (becomes a dead letter)
├── BundleError          a model bundle is missing, damaged or of another format
├── ProviderError        the execution provider that was asked for is not in use
├── StoreError           the database answered with something that a retry will not heal
│   ├── StoreUnavailable the database cannot be reached; retry
│   └── RowRefused       the database takes no row with these values
└── BrokerUnavailable    no Kafka broker answers
"""


class RapportError(Exception):
    """Base of every error that Rapport raises on purpose; its text is written for people."""


class ContractError(RapportError):
    """An event breaks the wire contract.

    ``code`` is a short machine-readable reason (it labels metrics and dead letters); the text
    says what was wrong and never quotes the dialogue.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class BundleError(RapportError):
    """A model bundle is missing, damaged or of another format."""


class ProviderError(RapportError):
    """The execution provider that was asked for is not the one in use."""


class StoreError(RapportError):
    """The database refused the work and a retry will not heal it."""


class StoreUnavailable(StoreError):
    """The database cannot be reached at the moment; the work can be retried."""


class RowRefused(StoreError):
    """The database, or its driver, takes no row with these values; others it may take."""


class BrokerUnavailable(RapportError):
    """No Kafka broker answers at the configured address."""
