"""Errors that Rapport raises on purpose.

Errors that several packages raise or handle are defined here; the others beside the code that
raises them, in the module in brackets. A test compares the tree with the classes.

RapportError
├── ContractError        an event breaks the wire contract (becomes a dead letter)
├── BundleError          a model bundle is missing, damaged or of another format
├── ProviderError        the requested execution provider is not in use
├── StoreError           the database refused the work; a retry does not help
│   ├── StoreUnavailable the database cannot be reached; retry
│   ├── RowRefused       the database takes no row with these values; others may pass
│   └── StaleState       another worker has updated the session since it was read
├── BrokerUnavailable    no Kafka broker answers
├── BadExpression        a rule's condition is not valid CEL [core.conditions]
├── RuleFileError        the file of alert rules is not valid [core.rule_file]
├── EventsLeftOut        the consumer skipped events that are in the log [worker.agents]
├── LogReplaced          the topic was recreated while its records were in hand [worker.consumer]
├── PortInUse            the port of the health probes is in use [health_server]
├── NoSuchAlert          the alert does not exist, or not for this person [store.alert_actions]
├── NoSuchMute           the mute does not exist, or not for this person [store.alert_actions]
├── NotThere             the session or turn does not exist, or not for this person [store.judged]
├── DoesNotFit           the judgement does not fit what it is about [store.judged]
├── NotNow               the judgement is no longer, or not yet, possible [store.judged]
├── PersonError          an account or token cannot be made or changed [store.people]
├── BadCursor            the cursor of a page is not valid [store.reading.pages]
├── NotTaken             a notification target did not accept a message [notifications.notification]
│   ├── Refused          the target refused this message; others may pass
│   └── Unanswered       the message may have arrived; no answer came
├── SignInNeeded         nobody is signed in [web.auth]
├── TooManyAttempts      too many wrong passwords [store.attempts]
├── TooBusy              the queue for checking passwords is full [web.sign_ins]
├── TooManyClients       too many live connections [web.live]
├── LogChanged           a topic was recreated while it was read [web.topics]
├── TooEarly             feedback was requested for an open session [web.feedback.composition]
├── InputError           an input file cannot be read [commands.event_files]
└── ChildDied            a process of `rapport up` ended [commands.up]
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
    """The database, or its driver, takes no row with these values; others may pass."""


class StaleState(StoreError):
    """Another worker has updated a session since its state was read; read it again."""


class BrokerUnavailable(RapportError):
    """No Kafka broker answers at the configured address."""
