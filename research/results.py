"""Result files of the methods: research/results/NAME.json."""

from __future__ import annotations

import json
from pathlib import Path

from models.pages.document import write_json
from research.method import RESULTS, Content


def read(name: str, folder: Path = RESULTS) -> Content:
    """A method's result file; empty if the method has not been run."""
    path = folder / f"{name}.json"
    content: Content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return content


def write(name: str, content: Content, folder: Path = RESULTS) -> Path:
    """Write a method's result file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    write_json(path, content)
    return path
