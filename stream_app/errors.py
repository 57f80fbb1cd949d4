"""The hierarchy of Rapport's errors.

Errors that several packages raise or handle are defined here, the others in the module in brackets.
A test compares the tree with the classes.

RapportError
├── ContractError        an event violates the wire contract (becomes a dead letter)
├── BundleError          a model bundle is missing, damaged or of another format
├── ExtraMissing         an optional dependency is not installed [extras]
├── ProviderError        the requested execution provider is not in use
├── StoreError           the database rejected the statement; a retry does not help
│   ├── StoreUnavailable the database cannot be reached; retry
│   │   └── RolledBack   a concurrent transaction was in the way; repeat the whole one
│   ├── RowRefused       the database rejects these values; other rows may be accepted
│   │   └── RowExists    it already has a row with this key
│   ├── StaleState       another worker has updated the session since it was read
│   ├── DatabaseWentBack an older database took the place of this one; read the log again
│   └── SealingError     a key is missing, or a value cannot be decrypted
├── ClocksDisagree       clocks of machine, database and broker differ by minutes
├── BrokerUnavailable    no Kafka broker answers
├── BadExpression        a rule's condition is not valid CEL [core.rules.conditions]
├── RuleFileError        the file of alert rules is not valid [core.rules.rule_file]
├── RulesDoNotFit        rules use heads that a bundle lacks [core.rules.rules]
├── RoutesFileError      the file of bundles and routes is not valid [core.rules.routes_file]
├── IntentFileError      the file of intents is not valid [core.rules.intent_file]
├── ScorecardFileError   the file of scorecards is not valid [core.rules.scorecards]
├── PolicyError          a policy profile is missing or not valid [policies.profile]
├── NotReproducible      a stored session cannot be replayed [core.pipeline.recorded_session]
├── EventsLeftOut        the consumer skipped events that exist in the log [worker.agents]
├── LogReplaced          a topic was recreated with records in progress [worker.kafka.consumer]
├── PortInUse            a configured port is in use [health_server]
├── SessionHeld          a session on legal hold cannot be erased [store.lifecycle.holds]
├── PurgeRefused         too many rows would expire at once [store.lifecycle.retention]
├── HoldError            a legal hold cannot be added or removed [store.lifecycle.holds]
├── NoSuchAlert          the alert does not exist, or not for this person [store.alerts.alert_actions]
├── NoSuchMute           the mute does not exist, or not for this person [store.alerts.alert_actions]
├── NotFound             the item does not exist, or not for this person [store.sessions.scored_turns]
├── InvalidJudgement     the turn lacks the head, or the head lacks the value [store.sessions.scored_turns]
├── StateConflict        not possible in the current state of the item [store.sessions.scored_turns]
├── KeyReused            an idempotency key was used for another request [store.stream.ingest_keys]
├── KeyBusy              the first request with this key is in progress [store.stream.ingest_keys]
├── PersonError          an account or token cannot be created or changed [store.accounts.people]
│   └── AccountDisabled  the account exists, but may not be used any more [store.accounts.people]
├── OutsideTeam          a supervisor asked for a team that is not theirs [store.accounts.people]
├── StudyRefused         the study does not exist or has ended, or is not theirs [store.accounts.studies]
├── TooManyViews         no more views can be saved [store.accounts.saved_views]
├── BadCursor            the cursor of a page is not valid [store.database.pages]
├── DeliveryFailed       a notification was not delivered; retry [notifications.notification]
│   ├── DeliveryRejected the target rejected this notification; it may accept others
│   └── DeliveryUnconfirmed the notification may have arrived; no answer came
│   └── EndpointFailed   the language model gives no answer; retry [asking.chat_endpoint]
├── NotSignedIn          nobody is signed in [web.sign_in.auth]
├── PasswordChangeNeeded somebody else chose the password: change it first [web.sign_in.auth]
├── ProviderUnavailable  the identity provider does not answer [web.http.identity_provider]
├── SignInRefused        single sign-on cannot be completed [web.http.identity_provider]
│   └── ClaimMissing     the provider sends no claim that the settings name [web.http.identity_provider]
├── TooManyAttempts      too many wrong passwords [store.accounts.sign_in_throttle]
├── SignInQueueFull      too many people are signing in at once [web.http.sign_in_queue]
├── TooManyClients       too many live streams are open [web.live.live_hub]
├── LogChanged           a topic was recreated while it was read [web.live.topic_reader]
├── TooEarly             feedback was requested for an open session [findings.feedback.composition]
├── PracticeUnavailable  the model of the practice page cannot be used [web.practice_model]
├── TooManyTries         too many attempts at the practice page [web.practice_model]
├── ArchiveError         the archive is missing, incomplete or not this database's [store.lifecycle.archived]
├── BadOutcomeDefinition an outcome's definition is not valid [adaptation.outcome_risks]
├── VectorFileError      a file of judged vectors cannot be used [adaptation.judged_vectors]
├── AttributesError      the file of attributes cannot be used [analytics.questions.attributes]
├── NotEnabled           the question needs self-declared attributes [analytics.questions.attributes]
├── MarkedDaysError      the file of marked days cannot be used [analytics.questions.marked_days]
├── AnalysisRunning      another analysis is being computed [findings.analysis_runs]
├── ImportRefused        a file cannot be imported as it is [importers.imported]
├── AllTeamsOnly         the roll-up is over all teams, this person reads one [findings.exports.rollups]
├── ViewsMissing         the database has no reporting views [findings.exports.rollups]
├── ClientError          a call of the client library failed [client.errors]
│   ├── ServiceUnavailable Rapport gave no answer in all attempts [client.errors]
│   ├── RequestRefused   Rapport refused the request [client.errors]
│   └── EventsNotSent    queued events were refused or lost [client.errors]
├── ExportRefused        the options of an export do not fit together [findings.exports.tables]
├── InputError           a file cannot be read, or not as events [recordings.event_files]
│   └── NoEvents         a file does not contain a valid event [recordings.event_files]
├── NotJsonLines         a file is compressed or in no encoding of JSON [recordings.json_lines]
├── UtteranceFileError   the file of labelled utterances is not valid [recordings.intent_tests]
└── ChildDied            a child process of `rapport up` exited [demo.up]
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


class RolledBack(StoreUnavailable):
    """The database rolled the transaction back because of a concurrent one; repeat it."""


class RowRefused(StoreError):
    """The database or its driver refuses these values; other rows may be accepted."""


class RowExists(RowRefused):
    """The database already has a row with this key."""


class StaleState(StoreError):
    """Another worker has updated a session since its state was read; read it again."""


class DatabaseWentBack(StoreError):
    """The database lacks events that it contained: an older one has taken its place."""

    def __init__(self, missing: int) -> None:
        super().__init__(
            f"the database lacks {missing} events that it contained: an older one was restored, or "
            "a replica that lagged took over; the worker restarts and reads them again"
        )


class SealingError(StoreError):
    """A key is missing or cannot be read, or a stored value cannot be decrypted with it."""


class ClocksDisagree(RapportError):
    """The clocks of this machine, the database and the broker differ by more than minutes."""

    def __init__(self, difference: str) -> None:
        super().__init__(
            f"the clocks disagree: {difference}. Nothing is purged until they agree; check the "
            "time synchronisation (NTP) of all machines"
        )


class BrokerUnavailable(RapportError):
    """No Kafka broker answers at the configured address."""
