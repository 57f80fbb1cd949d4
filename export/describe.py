"""`python -m export.describe FOLDER`: rewrite the heads' descriptions in a manifest.

For new words, dimensions or evidence in `models.labels`; graphs and calibration stay as they are.
"""

from pathlib import Path
from typing import Annotated

import typer

from models.bundle import describe_heads


def main(folder: Annotated[Path, typer.Argument(help="A bundle's folder.")]) -> None:
    """Describe the heads of a bundle as `models.labels` does."""
    try:
        content = describe_heads(folder)
    except ValueError as problem:
        raise SystemExit(f"error: {problem}") from problem
    print(f"{len(content['heads'])} heads of {content['name']} described in {folder}")


if __name__ == "__main__":
    typer.run(main)
