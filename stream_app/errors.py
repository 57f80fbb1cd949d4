"""The hierarchy of Rapport's errors.

Errors that several packages raise or handle are defined here, the others in the module in brackets.
A test compares the tree with the classes.

RapportError
├── ContractError        an event violates the wire contract (becomes a dead letter)
├── BundleError          a model bundle is missing, damaged or of another format
├── ProviderError        the requested execution provider is not in use
├── StoreError           the database refused the operation; a retry does not help
│   ├── StoreUnavailable the database cannot be reached; retry
│   ├── RowRefused       the database refuses these values; other rows may be accepted
│   └── StaleState       another worker has updated the session since it was read
├── BrokerUnavailable    no Kafka broker answers
├── BadExpression        a rule's condition is not valid CEL [core.conditions]
├── RuleFileError        the file of alert rules is not valid [core.rule_file]
├── EventsLeftOut        the consumer skipped events that exist in the log [worker.agents]
├── LogReplaced          a topic was recreated with records in progress [worker.consumer]
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
├── NotSignedIn          nobody is signed in [web.auth]
├── TooManyAttempts      too many wrong passwords [store.attempts]
├── SignInQueueFull      too many people are signing in at once [web.sign_in_queue]
├── TooManyClients       too many live streams are open [web.live_hub]
├── LogChanged           a topic was recreated while it was read [web.topic_reader]
├── TooEarly             feedback was requested for an open session [web.feedback.composition]
├── InputError           a file cannot be read, or not as events [commands.event_files]
└── ChildDied            a child process of `rapport up` exited [commands.up]
"""


class RapportError(Exception):
    """Base class of all errors that Rapport raises; the message is meant for users."""


class ContractError(RapportError):
    """An event violates the wire contract, or cannot be processed.

    ``code`` is a short machine-readable reason (a label of metrics and dead letters); ``detail``
    describes the problem and never quotes dialogue.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class BundleError(RapportError):
    """A model bundle is missing, damaged or of another format."""


class ProviderError(RapportError):
    """The requested execution provider is not in use."""


class StoreError(RapportError):
    """The database refused the operation; a retry does not help."""


class StoreUnavailable(StoreError):
    """The database is currently unreachable; the operation can be retried."""


class RowRefused(StoreError):
    """The database or its driver refuses these values; other rows may be accepted."""


class StaleState(StoreError):
    """Another worker has updated a session since its state was read; read it again."""


class BrokerUnavailable(RapportError):
    """No Kafka broker answers at the configured address."""
