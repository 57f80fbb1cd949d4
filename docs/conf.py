"""Configuration of the documentation site; `make docs` builds it."""

import json
import sys
from pathlib import Path

from fastapi import FastAPI

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))

from stream_app import __version__  # noqa: E402
from stream_app.web.api import ROUTERS, document  # noqa: E402

project = "Rapport"
release = version = __version__
extensions = [
    "myst_parser",
    "settings_table",
    "sphinx_copybutton",
    "sphinxcontrib.openapi",
    "sphinxcontrib.typer",
]
exclude_patterns = ["site"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"Rapport {release}"


def without_null(node: object) -> object:
    """An OpenAPI document whose optional parts read as their type; the renderer knows no unions."""
    if isinstance(node, list):
        return [without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    types = [item for item in node.get("anyOf", ()) if item != {"type": "null"}]
    if len(types) == 1:
        node = {**{key: value for key, value in node.items() if key != "anyOf"}, **types[0]}
    return {key: without_null(value) for key, value in node.items()}


api = FastAPI(generate_unique_id_function=lambda route: route.name)
for router in ROUTERS:
    api.include_router(router)
OPENAPI = HERE.parent / "build" / "openapi.json"
OPENAPI.parent.mkdir(exist_ok=True)
OPENAPI.write_text(json.dumps(without_null(document.build(api))))
