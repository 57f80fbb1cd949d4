"""The documentation site builds without warnings, and its pages load nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stream_app.settings import Settings

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_third_parties(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    commands = (tmp_path / "commands.html").read_text("utf-8")
    routes = (tmp_path / "routes.html").read_text("utf-8")
    settings = (tmp_path / "settings.html").read_text("utf-8")
    assert "rapport reviews sample" in commands
    assert "/sessions/{session_id}/turns" in re.sub(r"<[^>]+>", "", routes)
    assert "null" not in routes.split("<article", 1)[1].split("Status Codes", 1)[0]
    assert settings.count("RAPPORT_") >= len(Settings.model_fields)
    loads = re.compile(r'<(?:script|img|link|iframe)[^>]*?(?:src|href)="(?:https?:)?//([^"/]+)')
    for page in tmp_path.rglob("*.html"):
        assert not loads.findall(page.read_text("utf-8")), page.name


def test_every_setting_is_described() -> None:
    bare = [name for name, field in Settings.model_fields.items() if not field.description]
    assert not bare
