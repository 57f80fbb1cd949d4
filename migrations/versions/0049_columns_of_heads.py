"""The probabilities of the shipped heads become columns of the scores of turns.

Eight bytes each where JSONB takes thirty with names, and plain SQL averages them. JSON keeps heads
that have no columns; spans of rationales have a column of their own. Whole states of sessions take
two kilobytes: on PostgreSQL a page of 60 % has two of them, one of 50 % has one.

Rewrites ``turn_scores``: stop the workers, and allow space for a copy of the table.

Revision: 0049
"""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""The reporting views read the columns; `rapport db views` makes them again."""
MECHANISMS = ("emotional_reactions", "interpretations", "explorations")
LEVELS = ("none", "weak", "strong")
PERCEIVED = ("engagement", "understanding", "sympathy", "helpfulness")
YES = ("no", "yes")
EXPRESSED = {
    "strategy": (
        "question",
        "restatement_or_paraphrasing",
        "reflection_of_feelings",
        "self_disclosure",
        "affirmation_and_reassurance",
        "providing_suggestions",
        "information",
        "others",
    ),
    "behaviour": ("question", "reflection", "therapist_input", "other"),
    "question": ("none", "closed", "open"),
    "reflection": ("none", "simple", "complex"),
    "input": ("none", "information", "advice", "options", "negotiation"),
    "empathic_intent": (
        "acknowledging",
        "agreeing",
        "consoling",
        "encouraging",
        "questioning",
        "suggesting",
        "sympathizing",
        "wishing",
        "neutral",
    ),
    "answer": YES,
    "lapse": YES,
}
CLIENT = {
    "talk_type": ("change", "neutral", "sustain"),
    "satisfaction": YES,
    "opportunity": YES,
    "distress": YES,
    "crisis_language": YES,
}
COLUMNS = (
    *PERCEIVED,
    *(f"{head}_{level}" for head in MECHANISMS for level in LEVELS),
    *(f"{head}_{label}" for head, labels in EXPRESSED.items() for label in labels),
    *(f"{head}_{label}" for head, labels in CLIENT.items() for label in labels),
)


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("turn_scores", sa.Column(name, sa.Double()))
    spans = sa.JSON().with_variant(JSONB(), "postgresql")
    op.add_column("turn_scores", sa.Column("rationales", spans))
    values = {name: _number("perceived", name) for name in PERCEIVED}
    for head in MECHANISMS:
        for place, level in enumerate(LEVELS):
            values[f"{head}_{level}"] = _number("expressed", head, "probabilities", place)
    for part, heads in (("expressed", EXPRESSED), ("client", CLIENT)):
        for head, labels in heads.items():
            for label in labels:
                values[f"{head}_{label}"] = _number(part, head, label)
    given = ", ".join(f"{name} = {value}" for name, value in values.items())
    op.execute(f"UPDATE turn_scores SET {given}")  # noqa: S608  # names of ours
    if _server():
        op.execute("ALTER TABLE session_states SET (fillfactor = 60)")


def downgrade() -> None:
    if _server():
        op.execute("ALTER TABLE session_states SET (fillfactor = 50)")
    for view in filter(VIEWS.match, sa.inspect(op.get_bind()).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
    known = {**dict.fromkeys(MECHANISMS, LEVELS), **EXPRESSED}
    expressed = {head: _head(head, labels) for head, labels in known.items()}
    whole = {
        "expressed": _object({**expressed, "empathy_total": "empathy_total"}),
        "perceived": _object({name: _plain(name) for name in PERCEIVED}),
        "client": _object({head: _head(head, labels) for head, labels in CLIENT.items()}),
    }
    given = ", ".join(f"{part} = {_merged(value, part)}" for part, value in whole.items())
    op.execute(f"UPDATE turn_scores SET {given}")  # noqa: S608  # names of ours
    with op.batch_alter_table("turn_scores") as batch:
        for name in (*COLUMNS, "rationales"):
            batch.drop_column(name)


def _server() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _number(part: str, *path: str | int) -> str:
    """A number inside a JSON column; null if it is not there."""
    steps = [str(step) if isinstance(step, int) else f"'{step}'" for step in path]
    if _server():
        *way, last = steps
        return f"({''.join(f'{each}->' for each in (part, *way))}>{last})::double precision"
    inside = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"json_extract({part}, '${inside}')"


def _plain(column: str) -> str:
    if _server():
        return column
    return f"json(CASE WHEN {column} IS NOT NULL THEN printf('%!.17g', {column}) END)"


def _object(members: dict[str, str]) -> str:
    listed = ", ".join(f"'{name}', {value}" for name, value in members.items())
    return f"jsonb_build_object({listed})" if _server() else f"json_object({listed})"


def _head(head: str, labels: tuple[str, ...]) -> str:
    """A head as JSON; null if its columns are."""
    columns = [f"{head}_{label}" for label in labels]
    if head in MECHANISMS:
        listed = ", ".join(map(_plain, columns))
        if _server():
            array = f"jsonb_build_array({listed})"
            spans = f"coalesce(rationales->'{head}', '[]'::jsonb)"
        else:
            array = f"json_array({listed})"
            spans = f"json(coalesce(json_extract(rationales, '$.{head}'), '[]'))"
        members = {"level": head, "probabilities": array, "rationale": spans}
    else:
        members = {label: _plain(name) for label, name in zip(labels, columns, strict=True)}
    value = f"CASE WHEN coalesce({', '.join(columns)}) IS NOT NULL THEN {_object(members)} END"
    return value if _server() else f"json({value})"


def _merged(whole: str, rest: str) -> str:
    if _server():
        return f"jsonb_strip_nulls({whole}) || {rest}"
    return f"json_patch(json_patch('{{}}', {whole}), {rest})"
