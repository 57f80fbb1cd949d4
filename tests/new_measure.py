"""Prints as JSON where a measure of sessions shows up; ``test_new_measure`` runs it on a copy."""

import csv
import io
import json
import sys
from pathlib import Path

import sqlalchemy as sa

import stream_app
from stream_app import bootstrap
from stream_app.analytics.questions import frames, questions, shown_curves
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import reference
from stream_app.analytics.views.dialects import DIALECTS
from stream_app.analytics.views.views import all_views
from stream_app.cli import rule_tables
from stream_app.contracts import scores
from stream_app.core.measures import catalogue
from stream_app.core.rules import scorecards
from stream_app.demo import simulator
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import Settings
from stream_app.store.database.tables import rollup_sessions, session_scores
from stream_app.store.sessions import sessions
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.work.reviews import measures_of
from tests.store.batches import end, received, turn
from tests.web.in_process import InProcessWeb
from tests.web.people.client import without_line_breaks

RULES = """
version: 1
rules:
  - name: new
    summary: "client's share of the words {NAME}"
    severity: info
    when: NAME >= 0.0
"""
SCORECARD = """
version: 1
scorecards:
  - name: listening
    title: Listening
    criteria:
      - name: room
        question: Did the client have room to speak?
        scale: ["no", "yes"]
        from: {measure: NAME, steps: [0.01]}
"""


def main(name: str, folder: Path) -> None:
    (folder / "rules.yaml").write_text(RULES.replace("NAME", name), "utf-8")
    web = InProcessWeb(folder)
    settings = Settings().model_copy(
        update={
            "bundle": bundles.find("nano"),
            "rules": folder / "rules.yaml",
            "database_url": web.settings.database_url,
        }
    )
    scorer = bootstrap.scorer(settings)
    store = bootstrap.prepared_store(settings, scorer)
    log = [turn(seq, text=f"I am so sorry, what happened at {seq}?") for seq in range(6)]
    result = bootstrap.pipeline(settings, scorer).process(received([*log, end()]), {})
    store.commit(result)
    list(rollups.update(store))
    [score] = result.session_scores
    alert = next(each for each in result.alerts if each.rule == "new" and each.values)
    with store.reading() as connection:
        row = connection.execute(sa.select(session_scores.c[name])).scalar_one()
        rolled = connection.execute(sa.select(rollup_sessions.c[name])).scalar_one()
        viewed = connection.exec_driver_sql(f"SELECT {name} FROM fact_session").scalar_one()
    frame = frames.read(store).sessions
    card = sessions.one(store, ALL_SESSIONS, "s")
    assert card is not None
    cards = scorecards.parse(SCORECARD.replace("NAME", name).encode(), "cards.yaml")
    store.close()
    web.start()
    with web.client("sue") as sue:
        exported = sue.get("/exports/sessions?format=csv").raise_for_status().content
        answered = sue.get("/sessions/s").raise_for_status().json()
    headers = {"Authorization": f"Bearer {web.tokens['sue']}"}
    with web.anonymous_client(headers=headers) as sue:
        page = without_line_breaks(sue.get("/sessions/s").raise_for_status().text)
        analytics = sue.get("/analytics").raise_for_status().text
    openapi = web.anonymous_client().get("/api/v1/openapi.json").json()
    web.stop()
    message = json.loads(scores.encode(score))
    found = {
        "source": stream_app.__file__,
        "score": getattr(score, name),
        "message": message[name],
        "row": row,
        "alert": alert.values,
        "reason": alert.reason,
        "exported": float(next(csv.DictReader(io.StringIO(exported.decode("utf-8-sig"))))[name]),
        "viewed": viewed,
        "answered": answered[name],
        "openapi": "\n".join(_descriptions(openapi)),
        "rolled": rolled,
        "chart_unit": shown_curves.MEASURES[name],
        "analytics": analytics.replace("&#39;", "'"),
        "frame": frame[name].item(),
        "simulated": name in simulator.simulate(simulator.World()).frames.sessions,
        "questions": [key for key, each in questions.QUESTIONS.items() if name in each.measures],
        "filled": cards["listening"].fill(measures_of(card)),
        "page": page.replace("&#39;", "'"),
        "docs_views": reference.shown(all_views(DIALECTS["postgresql"], {})),
        "docs_rules": rule_tables.variables(),
        "docs_scorecards": catalogue.table(catalogue.Use.SCORECARDS),
    }
    print(json.dumps(found))


def _descriptions(part: object) -> list[str]:
    if isinstance(part, dict):
        own = [part["description"]] if isinstance(part.get("description"), str) else []
        return own + [text for each in part.values() for text in _descriptions(each)]
    return [text for each in part for text in _descriptions(each)] if isinstance(part, list) else []


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
