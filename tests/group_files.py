"""Writes files of groups, which RAPPORT_GROUPS names."""

import hashlib
import json
from pathlib import Path


def written(folder: Path, **sections: object) -> Path:
    """Write a file with these sections; a process reads a file once, so its name has a digest."""
    text = json.dumps(sections)
    file = folder / f"groups-{hashlib.sha256(text.encode()).hexdigest()[:8]}.yaml"
    file.write_text(text, "utf-8")
    return file
