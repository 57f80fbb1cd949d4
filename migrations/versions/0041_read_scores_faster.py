"""Read packed scores faster: reports read them for every turn.

Replaces ``rapport_json``. Scores as workers write them are read in one call; whatever has another
shape still goes through ``rapport_read``. ``rapport_json(packed, wanted)`` stops at the last of the
wanted members: roll-ups need the first heads of a score alone. No row is rewritten.

Revision: 0041
"""

from alembic import context, op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

SOME_FUNCTION = """
CREATE FUNCTION rapport_json(packed bytea, wanted text[]) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  names CONSTANT text[] := rapport_names();
  outer_tag CONSTANT integer := get_byte(packed, 0);
  tag integer;
  items integer := 1;
  missing integer := cardinality(wanted);
  name text;
  spot integer := 0;
  value text := '';
  before text := '"';
BEGIN
  IF outer_tag IN (5, 6) THEN
    items := get_byte(packed, 1);
    spot := 2;
    value := CASE outer_tag WHEN 5 THEN '{' ELSE '[' END;
  END IF;
  FOR item IN 1 .. items LOOP
    IF outer_tag = 5 THEN
      name := names[get_byte(packed, spot) + 1];
      value := value || before || name || '":';
      EXIT WHEN name IS NULL;
      spot := spot + 1;
    END IF;
    tag := get_byte(packed, spot);
    spot := spot + 1;
    IF outer_tag = 6 AND tag <> 10 THEN
      value := NULL;
    ELSIF outer_tag = 6 THEN
      value := value || before || names[get_byte(packed, spot) + 1] || '"';
      spot := spot + 1;
    ELSIF
      (CASE tag WHEN 11 THEN spot + 3 * get_byte(packed, spot) < length(packed) ELSE false END)
    THEN
      value := value || '{';
      before := '"';
      FOR place IN 1 .. get_byte(packed, spot) LOOP
        value := value || before || names[get_byte(packed, spot + 1) + 1] || '":'
          || ((get_byte(packed, spot + 2) << 8) + get_byte(packed, spot + 3))::double precision
          / 10000;
        before := ',"';
        spot := spot + 3;
      END LOOP;
      value := value || '}';
      spot := spot + 1;
    ELSIF tag = 12 THEN
      value := value || '{"level":' || get_byte(packed, spot) || ',"probabilities":[';
      before := '';
      spot := spot + 2;
      FOR place IN 1 .. get_byte(packed, spot - 1) LOOP
        value := value || before
          || ((get_byte(packed, spot) << 8) + get_byte(packed, spot + 1))::double precision
          / 10000;
        before := ',';
        spot := spot + 2;
      END LOOP;
      value := value || '],"rationale":[';
      before := '[';
      spot := spot + 1;
      FOR place IN 1 .. get_byte(packed, spot - 1) LOOP
        value := value || before || (get_byte(packed, spot) << 8) + get_byte(packed, spot + 1)
          || ',' || (get_byte(packed, spot + 2) << 8) + get_byte(packed, spot + 3) || ']';
        before := ',[';
        spot := spot + 4;
      END LOOP;
      value := value || ']}';
    ELSIF tag = 7 THEN
      value := value || (get_byte(packed, spot) << 8) + get_byte(packed, spot + 1);
      spot := spot + 2;
    ELSE
      value := NULL;
    END IF;
    EXIT WHEN value IS NULL;
    IF name = ANY (wanted) THEN
      missing := missing - 1;
      EXIT WHEN missing = 0;
    END IF;
    before := ',"';
  END LOOP;
  IF value IS NULL THEN
    RETURN (rapport_read(packed, 0)).value::jsonb;
  END IF;
  RETURN (value || CASE outer_tag WHEN 5 THEN '}' WHEN 6 THEN ']' ELSE '' END)::jsonb;
END $$
"""
"""A name that is written out has no place in ``names``: it makes ``value`` null, and is left to
``rapport_read``. Its bytes are not read beyond the end: SQL evaluates a CASE in order, not an AND.
"""

JSON_FUNCTION = """
CREATE FUNCTION rapport_json(packed bytea) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT rapport_json(packed, '{}'::text[]) $$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.get_bind().exec_driver_sql(SOME_FUNCTION)
        _replace(JSON_FUNCTION)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        first = context.script.get_revision("0038").module
        _replace(first.JSON_FUNCTION)
        op.execute("DROP FUNCTION rapport_json(bytea, text[])")


def _replace(function: str) -> None:
    text = function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
    op.get_bind().exec_driver_sql(text)
