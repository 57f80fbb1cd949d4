"""Checks configuration and connections, and suggests how to fix problems."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiokafka
import sqlalchemy as sa
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from msgspec import Struct
from sqlalchemy.exc import ArgumentError

from stream_app import __version__, bootstrap, extras, setting_names
from stream_app.analytics.views import schema as reporting
from stream_app.bootstrap import notifier_process
from stream_app.core.rules.rules import RuleSet
from stream_app.core.session.restrictions import variables_of
from stream_app.errors import RapportError
from stream_app.inference import intent_files
from stream_app.inference.bundles import bundle as bundles
from stream_app.notifications.rota import LOOK_AHEAD
from stream_app.sealing.sources import readable_by_others
from stream_app.settings import RulesSource, Settings
from stream_app.store.alerts import rule_sources
from stream_app.store.alerts.rule_sources import RuleFile, RuleSource
from stream_app.store.database import clocks
from stream_app.store.database.connection import masked_url
from stream_app.store.keys import pseudonym_key
from stream_app.store.lifecycle import encrypting, erasure_receipts, retention
from stream_app.store.stream import left_states, log_positions, schema
from stream_app.store.stream.log_positions import DeletedUnread, TopicPartition
from stream_app.worker.kafka import codecs
from stream_app.worker.kafka.refusal import explain, quiet_client, started
from stream_app.worker.kafka.topics import client_options

DELETED_DAYS = 7
"""Time for which events are reported that the broker deleted unread."""
ERASURE_HOURS = 1
"""Time in which a worker finishes an erasure."""
GRACE_DAYS = 2
"""Text is purged once a day, and only while a worker runs."""


class Finding(Struct, frozen=True):
    """The result of one check."""

    name: str
    healthy: bool
    detail: str


def run_checks(settings: Settings) -> Iterator[Finding]:
    """Run all checks in order; a failed check does not stop the next ones."""
    yield Finding("version", True, f"rapport {__version__}, Python {sys.version.split()[0]}")
    for name, check in (
        ("settings", _settings),
        ("policy", _policy),
        ("bundle", _bundle),
        ("routes", _routes),
        ("rules", _rules),
        ("provider", _provider),
        ("database", _database),
        ("views", _views),
        ("sessions", _sessions),
        ("broker", _broker),
        ("codecs", _codecs),
        ("log", _log),
        ("notify", _notifications),
        ("keys", _keys),
        ("privacy", _privacy),
        ("kept", _kept),
        ("erasures", _erasures),
    ):
        yield _finding(name, check, settings)


def _finding(name: str, check: Callable[[Settings], str], settings: Settings) -> Finding:
    try:
        return Finding(name, True, check(settings))
    except RapportError as problem:
        return Finding(name, False, str(problem))
    except ModuleNotFoundError as problem:
        missing = extras.explained(problem)
        if missing is None:
            raise
        return Finding(name, False, str(missing))


def _settings(_: Settings) -> str:
    if warnings := setting_names.warnings(os.environ):
        raise RapportError("; ".join(warnings))
    return "every RAPPORT_ variable is a setting"


def _policy(settings: Settings) -> str:
    """The profile in force, what it switches, and which rules it keeps from firing."""
    profile = settings.profile
    if profile is None:
        return "no profile is in force: RAPPORT_POLICY is not set"
    restricted = variables_of(profile.restricted)
    silent = [
        rule.name
        for rule in _loaded_rules(settings)[1].rules
        if any(name.startswith(restricted) for name in rule.when.names)
    ]
    rules = f"; these rules cannot fire: {', '.join(silent)}" if silent else ""
    return f"{profile.name} ({profile.title}): {profile.headline}; {profile.bounds}{rules}"


def _bundle(settings: Settings) -> str:
    bundle = bootstrap.bundle(settings)
    heads = ", ".join(head.name for head in bundle.manifest.heads)
    model = bundle.manifest.empathy
    index = f"index for {', '.join(model.domains)}" if model else "WITHOUT an empathy index"
    pinned = "pinned" if settings.bundle_digest else "not pinned: RAPPORT_BUNDLE_DIGEST is not set"
    return (
        f"{bundle.manifest.bundle_id}, SHA-256 of every file verified; digest {bundle.digest} "
        f"({pinned}); {index}; {heads}"
    )


def _routes(settings: Settings) -> str:
    """Whether all bundles of the routes file can be used."""
    if settings.bundle_routes is None:
        return "one bundle scores all sessions: RAPPORT_BUNDLE_ROUTES is not set"
    core, refused = bootstrap.routed_pipeline(settings, bootstrap.scorer(settings))
    if refused:
        raise RapportError("; ".join(f"{each.name} is refused: {each.problem}" for each in refused))
    routed = core.bundles.routed.items()
    names = ", ".join(f"{name} ({each.environment.bundle_id})" for name, each in routed) or "none"
    return f"{settings.bundle_routes}: {names}; {len(core.bundles.routes.routes)} routes"


def _rules(settings: Settings) -> str:
    source, rules = _loaded_rules(settings)
    names = ", ".join(rule.name for rule in rules.rules) or "none"
    return f"{source}, digest {rules.digest}: {names}"


def _loaded_rules(settings: Settings) -> tuple[str, RuleSet]:
    """The rules in force, and where they come from."""
    heads = bundles.load(settings.bundle).manifest.heads
    known = intent_files.load(settings.intents)
    if settings.rules_source is RulesSource.FILE:
        source: RuleSource = RuleFile(settings.rules)
        return source.read().name, rule_sources.load(source, heads, known)
    store = bootstrap.store(settings)
    try:
        source = bootstrap.rule_source(settings, store)
        return source.read().name, rule_sources.load(source, heads, known)
    finally:
        store.close()


def _provider(settings: Settings) -> str:
    """Which provider computes the nodes of each graph, as ONNX Runtime's profile of a run says."""
    from stream_app.inference.devices.placement import described, nodes_by_provider  # noqa: PLC0415
    from stream_app.inference.scorer import graphs  # noqa: PLC0415  # both need the runtime

    scorer = bootstrap.scorer(settings)
    scorer.encode(["Are you still there?"])
    device = bootstrap.cuda_device(settings)
    placed = "; ".join(
        f"{name}: {described(nodes_by_provider(graph, scorer.providers[name], device))}"
        for name, graph in graphs(scorer.bundle).items()
    )
    return f"{scorer.provider.value} is in use ({settings.provider.value} was requested); {placed}"


def _database(settings: Settings) -> str:
    store = bootstrap.store(settings)
    try:
        store.ping()
        current, newest = schema.revisions(store)
        pooled = store.is_pooled()
    finally:
        store.close()
    if current != newest:
        raise RapportError(
            f"the schema is at {current or 'no revision'}, this release needs {newest}: "
            "run `rapport db upgrade`"
        )
    through = "; through a pooler: statements are not prepared" if pooled else ""
    return f"{masked_url(store.engine.url)}, schema {current}{through}"


def _views(settings: Settings) -> str:
    file = _sqlite_file(settings)
    if file is not None and not file.exists():
        return "there is no database yet"
    store = bootstrap.store(settings)
    try:
        current = reporting.are_current(store, settings.bundle)
    finally:
        store.close()
    if not current:
        raise RapportError(
            "the reporting views are missing, or of another release or bundle: "
            "run `rapport db views`"
        )
    return "the reporting views have the heads of all bundles"


def _sessions(settings: Settings) -> str:
    """Whether the configured bundle continues the sessions that have not ended."""
    file = _sqlite_file(settings)
    if file is not None and not file.exists():
        return "there is no database yet"
    bundle = bundles.load(settings.bundle).manifest.bundle_id
    in_force = bootstrap.bundle_ids(settings)
    store = bootstrap.store(settings)
    try:
        others = store.states.open_by_other_bundles(bundle)
        left = store.states.open_without_their_bundle(bundle, in_force)
        ended = left_states.count(store, in_force)
    finally:
        store.close()
    if ended:
        counts = ", ".join(f"{count} by {name}" for name, count in ended.items())
        return (
            f"{sum(ended.values())} sessions still have open states, scores or alerts of a "
            f"bundle that scores them no longer ({counts}): a running worker ends them within "
            "ten minutes; if they remain, look for `left.failed` in its log"
        )
    if left:
        counts = ", ".join(f"{count} by {name}" for name, count in left.items())
        return (
            f"{sum(left.values())} sessions that have not ended were scored by a bundle that is "
            f"no longer in force ({counts}): their alerts end and their measures begin again"
        )
    if not others:
        return f"{bundle} continues all sessions that have not ended"
    counts = ", ".join(f"{count} by {name}" for name, count in others.items())
    return (
        f"{sum(others.values())} sessions that have not ended were scored by another bundle "
        f"({counts}): with {bundle} they begin with an empty window and index"
    )


def _sqlite_file(settings: Settings) -> Path | None:
    try:
        url = sa.make_url(settings.database)
    except (ArgumentError, ValueError):  # opening the database reports the error
        return None
    in_a_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(str(url.database)) if in_a_file else None


def _broker(settings: Settings) -> str:
    topics, partitions = asyncio.run(_topics(settings))
    if missing := [name for name in settings.topics if name not in topics]:
        if not settings.topic_partitions:
            raise RapportError(
                f"topics are missing: {', '.join(missing)}. Create them, or set "
                "RAPPORT_TOPIC_PARTITIONS and start a worker"
            )
        return f"{settings.kafka_brokers} answers; the first worker will create the topics"
    return (
        f"{settings.kafka_brokers} answers; all {len(settings.topics)} topics exist, "
        f"{settings.turns_topic} with {partitions} partitions"
    )


async def _topics(settings: Settings) -> tuple[list[str], int]:
    """Names of all topics, and the number of partitions of the turns topic if it exists."""
    client = AIOKafkaAdminClient(**client_options(settings))
    try:
        with quiet_client():
            await client.start()
        topics = list(await client.list_topics())
        if settings.turns_topic not in topics:
            return topics, 0
        [turns] = await client.describe_topics([settings.turns_topic])
        return topics, len(turns["partitions"])
    except KafkaError as problem:
        raise await explain(settings, problem) from problem
    finally:
        await client.close()


def _codecs(_: Settings) -> str:
    """Whether batches can be read in every compression that producers and topics may choose."""
    if unreadable := codecs.unreadable():
        raise RapportError(
            f"batches compressed with {', '.join(unreadable)} cannot be read from the broker: "
            "pip install 'aiokafka[lz4,snappy,zstd]'"
        )
    return f"{', '.join(codecs.CODECS)} can be read"


def _log(settings: Settings) -> str:
    """Check that the database contains all events that the consumer group has committed."""
    file = _sqlite_file(settings)
    if file is not None and not file.exists():
        return "the database does not exist yet"
    committed, starts = asyncio.run(_committed_and_starts(settings))
    store = bootstrap.store(settings)
    try:
        stored = log_positions.stored_offsets(store, settings.kafka_group, [settings.turns_topic])
        deleted = log_positions.deleted_unread(store, settings.kafka_group, list(starts))
        if not stored and log_positions.adopts_broker_offsets(store):
            return "the database has no log positions yet: workers use the group's offsets"
    finally:
        store.close()
    behind = {at: offset - stored.get(at, 0) for at, offset in committed.items()}
    if lacking := {partition: n for (_, partition), n in sorted(behind.items()) if n > 0}:
        raise RapportError(
            f"the database lacks {sum(lacking.values())} events that the group "
            f"{settings.kafka_group} has committed (partitions {', '.join(map(str, lacking))}): "
            "an older database was restored, or it is a different one. Start the workers: they "
            "read these events again, as far as the topic still has them"
        )
    if stored or committed:
        _check_deleted(settings.kafka_group, stored, starts, deleted)
    return f"the database has all events that the group {settings.kafka_group} has committed"


def _check_deleted(
    group: str,
    stored: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    deleted: Mapping[TopicPartition, DeletedUnread],
) -> None:
    """Raise if the broker deleted events unread: lately, or since a worker last ran."""
    since = datetime.now(UTC) - timedelta(days=DELETED_DAYS)
    lost = {at: found.count for at, found in deleted.items() if found.at > since}
    for at, start in starts.items():
        if (missing := start - stored.get(at, 0)) > 0:
            lost[at] = lost.get(at, 0) + missing
    if lost:
        partitions = ", ".join(str(partition) for _, partition in sorted(lost))
        raise RapportError(
            f"{sum(lost.values())} events were deleted by the topic's retention before the group "
            f"{group} had read them (partitions {partitions}): their turns are lost unless the "
            "producers send them again. Give the topic a longer retention.ms, and start the "
            f"workers. This is reported for {DELETED_DAYS} days"
        )


async def _committed_and_starts(
    settings: Settings,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The group's offsets, and the log's starts, by partition.

    The offsets are requested by partition, as the embedded broker does not list them.
    """
    client = AIOKafkaAdminClient(**client_options(settings))
    try:
        with quiet_client():
            await client.start()
        [topic] = await client.describe_topics([settings.turns_topic])
        places = [
            aiokafka.TopicPartition(settings.turns_topic, item["partition"])
            for item in topic["partitions"]
        ]
        found = await client.list_consumer_group_offsets(settings.kafka_group, partitions=places)
        committed = {tuple(place): at.offset for place, at in found.items() if at.offset > 0}
        consumer = AIOKafkaConsumer(**client_options(settings), isolation_level="read_committed")
        async with started(consumer, settings):
            starts = await consumer.beginning_offsets(places)
        return committed, {tuple(place): offset for place, offset in starts.items()}
    except KafkaError as problem:
        raise RapportError(
            f"the group's offsets cannot be read ({type(problem).__name__})"
        ) from problem
    finally:
        await client.close()


def _notifications(settings: Settings) -> str:
    plan = notifier_process.notification_plan(settings)
    targets, rotas = plan.targets, plan.escalation.rotas.values()
    if not targets:
        return "no notifications are sent: RAPPORT_NOTIFICATIONS is not set"
    if not settings.external_url:
        raise RapportError(
            "RAPPORT_EXTERNAL_URL is not set: notifications cannot link to the console"
        )
    names = ", ".join(
        f"{target.name} ({target.kind}{f', of {target.supervisor}' if target.supervisor else ''})"
        for target in targets
    )
    now = datetime.now(UTC)
    if incomplete := [r.name for r in rotas if r.gaps(now, now + LOOK_AHEAD)]:
        raise RapportError(
            f"nobody is on call at times in {', '.join(incomplete)}: `rapport notify check`"
        )
    return f"{names}; `rapport notify test` checks whether they are reachable"


def _privacy(settings: Settings) -> str:
    consent = "required" if settings.require_consent else "NOT required"
    by = getattr(settings.redactor, "value", settings.redactor)
    redaction = f"on (by {by})" if settings.redact else "OFF"
    return f"consent is {consent}, redaction of stored text is {redaction}"


def _keys(settings: Settings) -> str:
    """Whether the keys are there, fit this database, and are out of others' sight."""
    file = _sqlite_file(settings)
    if file is not None and not file.exists():
        return "there is no database yet"
    store = bootstrap.store(settings)
    try:
        master, pseudonym = store.secrets.master.source, store.secrets.pseudonym
        if master.is_missing or pseudonym.is_missing:
            store.keys.check(create=False)
            pseudonym_key.check(store, pseudonym)
            return "the first worker will create them next to the database"
        ids, used = store.secrets.master.ids, store.keys.counts()
        plain = encrypting.oldest_are_plain(store)
        pseudonym_key.check(store, pseudonym)
    finally:
        store.close()
    if missing := sorted(used.keys() - set(ids)):
        raise RapportError(
            f"the master keys {', '.join(missing)} are missing: the text of "
            f"{sum(used[key] for key in missing)} sessions cannot be read. Add them to "
            "RAPPORT_MASTER_KEY_FILE, behind the first key"
        )
    files = [master.file, pseudonym.file, file]
    if exposed := [str(each) for each in files if each and readable_by_others(each)]:
        raise RapportError(f"others may read {', '.join(exposed)}: chmod 600")
    if plain:
        raise RapportError(
            "text that an earlier release stored is not encrypted: run `rapport keys encrypt`"
        )
    old = sum(count for key, count in used.items() if key != ids[0])
    words = f"master key {ids[0]} encrypts the keys of {used.get(ids[0], 0)} sessions"
    if old:
        return f"{words}, older master keys those of {old}: `rapport keys rotate`"
    return f"{words}; {len(ids) - 1} older master keys are unused"


def _kept(settings: Settings) -> str:
    retention_times = (
        f"text is kept {settings.keep_text_days} days, scores {settings.keep_scores_days}"
    )
    file = _sqlite_file(settings)
    if file is not None and not file.exists():
        return retention_times
    store = bootstrap.store(settings)
    try:
        oldest = retention.oldest_text_stored_at(store)
        newest = retention.newest_text_stored_at(store)
        planned = retention.due(store, settings.keep_text, settings.keep_scores, datetime.now(UTC))
        if planned is not None:
            planned.check(store)
        now = store.clock()
    finally:
        store.close()
    if oldest is None or newest is None:
        return f"{retention_times}; no text is stored"
    if newest > now + clocks.TOLERANCE:
        raise RapportError(
            f"text is dated {newest:%Y-%m-%d %H:%M} UTC, in the future: it was stored while a "
            "clock was wrong, and is kept that much longer"
        )
    days = (now - oldest).days
    if days > settings.keep_text_days + GRACE_DAYS:
        raise RapportError(
            f"{retention_times}, but the oldest text is {days} days old: a worker purges text "
            "daily; check that one is running, and its log for `outdated.failed`"
        )
    return f"{retention_times}; the oldest text is {days} days old"


def _erasures(settings: Settings) -> str:
    """Whether dead letters and archived rows of erased sessions are removed, too."""
    file = _sqlite_file(settings)
    if file is not None and not file.exists():
        return "there is no database yet"
    store = bootstrap.store(settings)
    try:
        oldest = erasure_receipts.oldest_unfinished(store)
    finally:
        store.close()
    if oldest is not None and datetime.now(UTC) - oldest > timedelta(hours=ERASURE_HOURS):
        raise RapportError(
            f"an erasure of {oldest:%Y-%m-%d %H:%M} UTC is not finished: check that a worker runs, "
            "and its log for `erasures.failed` and `erasure.unfinished` (RAPPORT_ARCHIVE)"
        )
    return "all are finished" if oldest is None else "a worker is about to finish one"
