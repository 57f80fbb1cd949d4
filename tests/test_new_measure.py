"""A new measure of a session: six files, this test among them, and it is everywhere.

The steps are those of CONTRIBUTING.md, made in a copy of the source, which another process runs.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parent.parent
NAME: Final = "client_talk_share"
STEPS: Final = {
    "stream_app/core/measures/catalogue.py": (
        '    yield Measure(\n        name="reflection_to_question",',
        f'    yield Measure(\n        name="{NAME}",\n'
        """        title="Client's share of the words",
        unit=SHARE,
        about="the client's share of the words",
        absent=_NO_DENOMINATOR,
        uses=_ROLLED_UP | _COMPARED | {Use.PAGE},
        example=0.56,
    )
""",
    ),
    "stream_app/core/measures/aggregates.py": (
        "            reflection_to_question=_ratio(",
        f"            {NAME}=_ratio(self.client.words, words),\n",
    ),
    "stream_app/contracts/scores.py": (
        "\n\nclass SessionScore(\n",
        f"    {NAME}: Annotated[\n"
        '        Probability | None, Meta(description="Client\'s share of the words")\n'
        "    ] = None\n",
    ),
    "stream_app/store/sessions/sessions.py": (
        "    reflection_to_question: float | None\n",
        f"    {NAME}: float | None\n",
    ),
}
"""The place and the text of each insertion, by file."""
MIGRATION: Final = f'''
import sqlalchemy as sa
from alembic import op

revision = "new"
down_revision = "{{down}}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("session_scores", sa.Column("{NAME}", sa.Double(), nullable=True))
    op.add_column("rollup_sessions", sa.Column("{NAME}", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("rollup_sessions", "{NAME}")
    op.drop_column("session_scores", "{NAME}")
'''
MOST_FILES: Final = 6


def copied_with_the_measure(folder: Path) -> int:
    """Make the steps in a copy of the source; return how many files they touch."""
    for name in ("stream_app", "migrations"):
        left_out = shutil.ignore_patterns("__pycache__", "*.onnx")
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    for model in (ROOT / "stream_app" / "bundles").rglob("*.onnx"):
        (folder / model.relative_to(ROOT)).symlink_to(model)
    for name, (before, new) in STEPS.items():
        file = folder / name
        text = file.read_text("utf-8")
        assert text.count(before) == 1, name
        file.write_text(text.replace(before, new + before), "utf-8")
    versions = folder / "migrations" / "versions"
    newest = max(versions.glob("[0-9]*.py")).name[:4]
    (versions / "new.py").write_text(MIGRATION.format(down=newest), "utf-8")
    migration_and_test = 2
    return len(STEPS) + migration_and_test


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The values of the measure in the copy, by place."""
    folder = tmp_path_factory.mktemp("source")
    assert copied_with_the_measure(folder) <= MOST_FILES
    shown = subprocess.run(
        [sys.executable, "-m", "tests.new_measure", NAME, str(tmp_path_factory.mktemp("run"))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert shown.returncode == 0, shown.stderr[-3000:]
    result: dict[str, Any] = json.loads(shown.stdout.splitlines()[-1])
    assert Path(result["source"]).is_relative_to(folder.resolve())
    return result


def test_it_is_in_score_and_table(found: dict[str, Any]) -> None:
    assert 0.0 < found["score"] < 1.0
    assert found["row"] == pytest.approx(found["score"])
    assert found["message"] == pytest.approx(found["score"])


def test_it_is_a_variable_of_rules(found: dict[str, Any]) -> None:
    assert found["alert"][NAME] > 0.0
    assert found["reason"].startswith("client's share of the words 0.")


def test_it_is_in_exports_views_and_api(found: dict[str, Any]) -> None:
    for place in ("exported", "viewed", "answered"):
        assert found[place] == pytest.approx(found["score"]), place
    assert f"`{NAME}` | number | 0-1, the client's share of the words" in found["openapi"]


def test_it_is_rolled_up_and_has_a_chart(found: dict[str, Any]) -> None:
    assert found["rolled"] == round(found["score"] * 10_000)
    assert found["chart_unit"] == "share (0-1)"
    assert "Client's share of the words" in found["analytics"]


def test_the_analyses_have_it(found: dict[str, Any]) -> None:
    assert found["frame"] == pytest.approx(found["score"])
    assert found["simulated"]
    assert {"over-time", "pairs", "service-levels"} <= set(found["questions"])


def test_it_can_fill_a_scorecard(found: dict[str, Any]) -> None:
    assert found["filled"] == {"room": 1}


def test_the_session_page_shows_it(found: dict[str, Any]) -> None:
    assert f"Client's share of the words</dt><dd><b>{100 * found['score']:.0f} %" in found["page"]


def test_the_tables_of_the_docs_have_it(found: dict[str, Any]) -> None:
    meaning = "the client's share of the words"
    assert f"| `{NAME}` | number | 0-1, {meaning} |" in found["docs_views"]
    assert f"| `{NAME}` | double | 0-1 | {meaning} |" in found["docs_rules"]
    assert f"| `{NAME}` | 0-1, {meaning} |" in found["docs_scorecards"]
