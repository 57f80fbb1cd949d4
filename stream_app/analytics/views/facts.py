"""The fact views: turns, sessions, alerts, ratings, outcomes; without text and account names."""

from collections.abc import Iterable

from stream_app.analytics.views.columns import Column, Kind, View, plain
from stream_app.analytics.views.dialects import Dialect, literal
from stream_app.analytics.views.heads import Field
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures import miti
from stream_app.core.measures.catalogue import Measure, Use, used
from stream_app.store.database.judgements import JUDGED

_TEXT, _INTEGER, _NUMBER = Kind.TEXT, Kind.INTEGER, Kind.NUMBER
_BOOLEAN, _DATE, _TIME = Kind.BOOLEAN, Kind.DATE, Kind.TIME
_SESSION_ID = ("session_id", _TEXT, "As the events carry it")
_BUNDLE = ("bundle", _TEXT, "Joins `dim_bundle`; compare within one bundle")


def _groups(dialect: Dialect, at: str) -> tuple[Column, ...]:
    """Columns that every fact can be grouped by; ``x`` is the table of sessions."""
    return (
        Column("date", _DATE, dialect.date(at), "UTC; joins `dim_date`"),
        *plain(
            "x",
            ("team", _TEXT, "As the events carry it; joins `dim_team`"),
            ("domain", _TEXT, "counselling, peer-support or customer-service"),
            ("channel", _TEXT, "As the events carry it"),
            ("lang", _TEXT, "BCP 47 tag"),
        ),
    )


def fact_turn(dialect: Dialect, fields: Iterable[Field]) -> View:
    """Turns with their best score."""
    abstained = "s.abstained"
    earlier = (
        "(SELECT p.low_empathy_risk FROM turn_scores AS p WHERE p.session_id = s.session_id "
        "AND p.seq = s.seq AND p.bundle = s.bundle AND p.stage = 'provisional')"
    )
    return View(
        "fact_turn",
        "a scored turn and bundle: the final score, the provisional one where there is no other",
        (
            *plain(
                "s",
                _SESSION_ID,
                ("seq", _INTEGER, "Place in the session, from 0"),
                _BUNDLE,
                ("stage", _TEXT, "final or provisional"),
                ("occurred_at", _TIME, "By the producer's clock"),
            ),
            *_groups(dialect, "s.occurred_at"),
            Column("role", _TEXT, "s.role", "client or counsellor"),
            Column("speaker", _TEXT, "t.speaker", "Pseudonym"),
            Column(
                "counsellor",
                _TEXT,
                "CASE WHEN s.role = 'counsellor' THEN t.speaker END",
                "Pseudonym of a counsellor's turn; joins `dim_counsellor`",
            ),
            Column(
                "characters",
                _INTEGER,
                "t.chars",
                "Characters of the redacted text, also after the text was purged",
            ),
            Column(
                "words",
                _INTEGER,
                "t.words",
                "Words of the turn; null in turns that release 0.1 stored",
            ),
            *plain(
                "s",
                ("late", _BOOLEAN, "Out of order, too late for its place"),
                ("truncated", _BOOLEAN, "Longer than the encoder reads"),
                ("confidence", _NUMBER, "0-1, mean top probability of the heads"),
            ),
            Column(
                "abstained",
                _INTEGER,
                f"coalesce({dialect.length(abstained)}, 0)",
                "How many heads abstained",
            ),
            Column(
                "low_empathy_risk",
                _NUMBER,
                f"coalesce(s.low_empathy_risk, {earlier})",
                "0-1, the session's risk after this counsellor turn",
            ),
            Column(
                "empathy_total",
                _INTEGER,
                "CASE WHEN "
                + " AND ".join(f"NOT {dialect.contains(abstained, m)}" for m in MECHANISMS)
                + " THEN s.empathy_total END",
                "0-6, sum of the mechanisms' levels; null: one of them abstained",
            ),
            Column(
                "intents",
                _TEXT,
                "CAST(s.intents AS text)",
                "JSON object: scores 0-1 of the intents that the turn has, by name",
            ),
            *(field.column for field in fields),
        ),
        "FROM turn_scores AS s\n"
        "LEFT JOIN turns AS t ON t.session_id = s.session_id AND t.seq = s.seq\n"
        "JOIN sessions AS x ON x.session_id = s.session_id AND NOT x.hidden\n"
        "WHERE s.stage = 'final' OR NOT EXISTS (\n"
        "  SELECT 1 FROM turn_scores AS f WHERE f.session_id = s.session_id\n"
        "  AND f.seq = s.seq AND f.bundle = s.bundle AND f.stage = 'final'\n"
        ")",
    )


def fact_session(dialect: Dialect, outcomes: Iterable[str]) -> View:
    """Sessions as a bundle scored them."""
    risks = tuple(
        Column(
            f"outcome_risk_{name}",
            _NUMBER,
            dialect.number("s.outcome_risks", name),
            "0-1, predicted; null where the domain has no such model",
        )
        for name in outcomes
    )
    return View(
        "fact_session",
        "a session and bundle",
        (
            *plain(
                "s",
                _SESSION_ID,
                _BUNDLE,
                ("status", _TEXT, "open, idle or closed"),
                ("started_at", _TIME, "Time of the first turn"),
            ),
            *_groups(dialect, "s.started_at"),
            Column("last_activity_at", _TIME, "s.last_activity_at", "Time of the last turn"),
            Column("ended_at", _TIME, "x.ended_at", "Time of the session's end"),
            Column(
                "duration_seconds",
                _NUMBER,
                dialect.seconds("s.started_at", "s.last_activity_at"),
                "Seconds from the first turn to the last",
            ),
            Column(
                "counsellor",
                _TEXT,
                _busiest("counsellor"),
                "Pseudonym; of several, the one with the most turns; joins `dim_counsellor`",
            ),
            Column("counsellors", _INTEGER, _how_many("counsellor"), "How many counsellors spoke"),
            Column(
                "client",
                _TEXT,
                _busiest("client"),
                "Pseudonym; of several, the one with the most turns",
            ),
            Column("clients", _INTEGER, _how_many("client"), "How many clients spoke"),
            *plain(
                "s",
                ("turns", _INTEGER, "Turns that were scored"),
                ("counsellor_turns", _INTEGER, "Of them the counsellor's"),
                ("late_turns", _INTEGER, "Turns that came too late"),
                ("withheld_turns", _INTEGER, "Not scored: no consent"),
                ("unscored_turns", _INTEGER, "Not scored: no bundle for their language"),
            ),
            Column(
                "first_answer_seconds",
                _NUMBER,
                _answer(dialect),
                "Seconds from the client's first turn to the counsellor's next one",
            ),
            Column(
                "first_read_at",
                _TIME,
                "(SELECT min(u.at) FROM audit AS u JOIN audit_subjects AS a "
                "ON a.subject = u.subject WHERE a.kind = 'session' AND a.value = s.session_id "
                "AND u.action = 'read transcript')",
                "When somebody first opened the transcript; null: nobody has",
            ),
            *(
                Column(each.name, _NUMBER, of_session(dialect, each), each.meaning)
                for each in used(Use.TABLE)
            ),
            Column(
                "missed_opportunities",
                _INTEGER,
                dialect.length("s.missed_opportunities"),
                "Opportunities without an empathic answer, at most 50",
            ),
            Column(
                "miti_volleys",
                _INTEGER,
                dialect.number("s.miti", "volleys"),
                "Volleys counted; null unless motivational interviewing",
            ),
            *(
                Column(
                    f"miti_{name}",
                    _NUMBER,
                    dialect.number("s.miti", "measures", name, "value"),
                    "By expected counts ([miti.md](miti.md))",
                )
                for name in miti.THRESHOLDS
            ),
            *risks,
        ),
        "FROM session_scores AS s\n"
        "JOIN sessions AS x ON x.session_id = s.session_id AND NOT x.hidden",
    )


def fact_alert(dialect: Dialect) -> View:
    """Episodes of alerts."""

    def reached(state: str) -> str:
        return f"CASE WHEN a.state = '{state}' THEN a.occurred_at END"

    def action(chosen: str, condition: str) -> str:
        return (
            f"(SELECT {chosen} FROM alert_actions AS c WHERE c.episode_id = e.episode_id "
            f"AND {condition})"
        )

    judged = f"c.reason IN ({', '.join(map(literal, JUDGED))})"
    last = (
        f"(SELECT c.reason FROM alert_actions AS c WHERE c.episode_id = e.episode_id AND {judged} "
        "ORDER BY c.at DESC, c.action_id DESC LIMIT 1)"
    )
    acknowledged = action("min(c.at)", "c.kind = 'acknowledge'")
    return View(
        "fact_alert",
        "an alert: one episode of a rule in a session",
        (
            *plain(
                "e",
                ("episode_id", _TEXT, "The alert"),
                _SESSION_ID,
                ("bundle", _TEXT, "Joins `dim_bundle`"),
                ("rule", _TEXT, "As the file of rules names it"),
                ("severity", _TEXT, "info, warning or critical"),
                ("began_at", _TIME, "Time of the first transition"),
            ),
            *_groups(dialect, "e.began_at"),
            *plain(
                "e",
                ("fired_at", _TIME, "Time of firing; null: it never fired"),
                ("resolved_at", _TIME, "Time of its end by the rule"),
                ("value", _NUMBER, "What the rule compared when it fired"),
                ("threshold", _NUMBER, "What it was compared with"),
            ),
            Column(
                "acknowledged_at",
                _TIME,
                acknowledged,
                "First acknowledgement, by the service's clock",
            ),
            Column(
                "acknowledge_seconds",
                _NUMBER,
                dialect.seconds("e.fired_at", acknowledged),
                "Seconds from firing (event time) to the acknowledgement (service's clock)",
            ),
            Column(
                "judgement",
                _TEXT,
                last,
                "The last of justified, justified-handled, false-alarm; null: not judged",
            ),
            Column(
                "justified",
                _BOOLEAN,
                f"{last} <> 'false-alarm'",
                "Whether the last judgement was for the alert",
            ),
        ),
        "FROM (\n"
        "  SELECT a.episode_id, min(a.session_id) AS session_id, min(a.bundle) AS bundle,\n"
        "    min(a.rule) AS rule, min(a.severity) AS severity, min(a.occurred_at) AS began_at,\n"
        f"    min({reached('firing')}) AS fired_at, max({reached('resolved')}) AS resolved_at,\n"
        "    max(CASE WHEN a.state = 'firing' THEN a.value END) AS value,\n"
        "    max(CASE WHEN a.state = 'firing' THEN a.threshold END) AS threshold\n"
        "  FROM alerts AS a GROUP BY a.episode_id\n"
        ") AS e\nJOIN sessions AS x ON x.session_id = e.session_id AND NOT x.hidden",
    )


def fact_rating(dialect: Dialect) -> View:
    """People's ratings of heads."""
    return View(
        "fact_rating",
        "a person's rating of a head on a turn or session",
        (
            *plain(
                "r",
                ("rating_id", _TEXT, "The rating"),
                _SESSION_ID,
                ("seq", _INTEGER, "The turn; null: the whole session"),
                ("head", _TEXT, "A head, or `rating` of a session"),
                ("value", _INTEGER, "Place of the label, from 0; `rating` of a session: 1-5"),
            ),
            Column("rated_at", _TIME, "r.at", "By the service's clock"),
            *_groups(dialect, "r.at"),
            Column(
                "blind",
                _BOOLEAN,
                "r.sample_id IS NOT NULL",
                "In a calibration sample, without seeing the model's score",
            ),
            Column("sample", _TEXT, "r.sample_id", "The calibration sample"),
            Column("rater", _INTEGER, "p.number", "The same number for the same person"),
            Column(
                "counsellor",
                _TEXT,
                "CASE WHEN t.role = 'counsellor' THEN t.speaker END",
                "Pseudonym of a rated counsellor's turn; joins `dim_counsellor`",
            ),
        ),
        "FROM ratings AS r\n"
        "JOIN sessions AS x ON x.session_id = r.session_id AND NOT x.hidden\n"
        "LEFT JOIN turns AS t ON t.session_id = r.session_id AND t.seq = r.seq\n"
        "LEFT JOIN (SELECT name, row_number() OVER (ORDER BY created_at, name) AS number "
        "FROM people) AS p ON p.name = r.person",
    )


def fact_outcome(dialect: Dialect) -> View:
    """Listeners' own judgements."""
    return View(
        "fact_outcome",
        "a like, reply, follow or rating by the other side",
        (
            *plain(
                "o",
                ("outcome_id", _TEXT, "As the event carries it, or made from it"),
                _SESSION_ID,
                ("seq", _INTEGER, "The turn; null: the whole session"),
                ("kind", _TEXT, "like, reply, follow or rating"),
                ("value", _NUMBER, "As the event carries it"),
                ("occurred_at", _TIME, "By the producer's clock"),
            ),
            *_groups(dialect, "o.occurred_at"),
        ),
        "FROM outcomes AS o\nJOIN sessions AS x ON x.session_id = o.session_id AND NOT x.hidden",
    )


def of_session(dialect: Dialect, measure: Measure) -> str:
    """A measure in a row of session scores ``s``."""
    if not measure.part:
        return f"s.{measure.name}"
    return dialect.mechanism("s.mechanisms", measure.mechanism, measure.part)


def _busiest(role: str) -> str:
    return (
        "(SELECT w.speaker FROM turns AS w "
        f"WHERE w.session_id = s.session_id AND w.role = '{role}' "
        "GROUP BY w.speaker ORDER BY count(*) DESC, w.speaker DESC LIMIT 1)"
    )


def _how_many(role: str) -> str:
    return (
        "(SELECT count(*) FROM session_speakers AS w "
        f"WHERE w.session_id = s.session_id AND w.role = '{role}')"
    )


def _answer(dialect: Dialect) -> str:
    asked = (
        "(SELECT q.seq FROM turns AS q WHERE q.session_id = s.session_id AND q.role = 'client' "
        "ORDER BY q.seq LIMIT 1)"
    )
    waited = dialect.seconds("c.occurred_at", "a.occurred_at")
    return (
        f"(SELECT {waited} FROM turns AS c JOIN turns AS a ON a.session_id = c.session_id "
        "AND a.seq > c.seq AND a.role = 'counsellor' "
        f"WHERE c.session_id = s.session_id AND c.seq = {asked} ORDER BY a.seq LIMIT 1)"
    )
