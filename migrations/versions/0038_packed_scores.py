"""Pack the scores of turns on PostgreSQL; SQL reads them with ``rapport_json``.

``rapport_json(packed)`` returns JSON, ``rapport_pack(json)`` packs it. The format, and why these
names: ``stream_app/store/database/packed_json.py``. Rewrites ``turn_scores``: stop the workers.

Revision: 0038
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

VIEWS = re.compile(r"^(fact|dim|shown|operations)_[a-z_]+$")
"""The reporting views read these columns; `rapport db views` makes them again."""
TABLES = ("turn_scores", "shadow_scores")
INDEX = "ix_turn_scores_occurred_at"
COLUMNS = ("expressed", "perceived", "client", "abstained")
NAMES = (
    "level probabilities rationale empathy_total no yes none weak strong emotional_reactions "
    "interpretations explorations strategy behaviour question reflection input empathic_intent "
    "talk_type satisfaction distress crisis_language engagement understanding sympathy helpfulness "
    "restatement_or_paraphrasing reflection_of_feelings self_disclosure "
    "affirmation_and_reassurance providing_suggestions information others therapist_input other "
    "closed open simple complex advice options negotiation change neutral sustain acknowledging "
    "agreeing consoling encouraging questioning suggesting sympathizing wishing"
)

NAMES_FUNCTION = f"""
CREATE FUNCTION rapport_names() RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT string_to_array('{NAMES}', ' ') $$
"""

TWO_FUNCTION = """
CREATE FUNCTION rapport_two(raw bytea, spot integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT (get_byte(raw, spot) << 8) + get_byte(raw, spot + 1) $$
"""

NUMBER_FUNCTION = """
CREATE FUNCTION rapport_number(raw bytea, spot integer) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  bits bigint := ('x' || encode(substring(raw FROM spot + 1 FOR 8), 'hex'))::bit(64)::bigint;
  scale integer := ((bits >> 52) & 2047)::integer;
  part double precision := (bits & 4503599627370495)::double precision / 4503599627370496;
BEGIN
  IF scale = 0 THEN
    RETURN 0;
  END IF;
  RETURN CASE WHEN bits < 0 THEN -1 ELSE 1 END
    * (1 + part) * power(2::double precision, scale - 1023);
END $$
"""

READ_FUNCTION = r"""
CREATE FUNCTION rapport_read(raw bytea, INOUT spot integer, OUT value text)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  names CONSTANT text[] := rapport_names();
  tag integer := get_byte(raw, spot);
  n integer;
  many integer;
  separator text := '';
  name text;
  item text;
BEGIN
  spot := spot + 1;
  IF tag IN (5, 8) THEN
    many := get_byte(raw, spot);
    spot := spot + 1;
    value := '{';
    FOR i IN 1 .. many LOOP
      n := get_byte(raw, spot);
      IF n = 255 THEN
        n := get_byte(raw, spot + 1);
        name := to_json(convert_from(substring(raw FROM spot + 3 FOR n), 'UTF8'))::text;
        spot := spot + 2 + n;
      ELSE
        name := '"' || names[n + 1] || '"';
        spot := spot + 1;
      END IF;
      IF tag = 8 THEN
        item := rapport_number(raw, spot);
        spot := spot + 8;
      ELSE
        SELECT r.spot, r.value INTO spot, item FROM rapport_read(raw, spot) AS r;
      END IF;
      value := value || separator || name || ':' || item;
      separator := ',';
    END LOOP;
    value := value || '}';
  ELSIF tag = 9 THEN
    value := '{"level":' || get_byte(raw, spot) || ',"probabilities":[';
    many := get_byte(raw, spot + 1);
    spot := spot + 2;
    FOR i IN 1 .. many LOOP
      value := value || separator || rapport_number(raw, spot);
      separator := ',';
      spot := spot + 8;
    END LOOP;
    many := get_byte(raw, spot);
    spot := spot + 1;
    separator := '';
    value := value || '],"rationale":[';
    FOR i IN 1 .. many LOOP
      value := value || separator || '[' || rapport_two(raw, spot) || ','
        || rapport_two(raw, spot + 2) || ']';
      separator := ',';
      spot := spot + 4;
    END LOOP;
    value := value || ']}';
  ELSIF tag = 6 THEN
    many := get_byte(raw, spot);
    spot := spot + 1;
    value := '[';
    FOR i IN 1 .. many LOOP
      SELECT r.spot, r.value INTO spot, item FROM rapport_read(raw, spot) AS r;
      value := value || separator || item;
      separator := ',';
    END LOOP;
    value := value || ']';
  ELSIF tag = 10 THEN
    value := '"' || names[get_byte(raw, spot) + 1] || '"';
    spot := spot + 1;
  ELSIF tag = 7 THEN
    value := rapport_two(raw, spot)::text;
    spot := spot + 2;
  ELSIF tag = 3 THEN
    n := rapport_two(raw, spot);
    value := to_json(convert_from(substring(raw FROM spot + 3 FOR n), 'UTF8'))::text;
    spot := spot + 2 + n;
  ELSIF tag = 4 THEN
    value := rapport_number(raw, spot)::text;
    spot := spot + 8;
  ELSE
    value := CASE tag WHEN 0 THEN 'null' WHEN 1 THEN 'true' WHEN 2 THEN 'false' END;
  END IF;
END $$
"""

JSON_FUNCTION = """
CREATE FUNCTION rapport_json(packed bytea) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT r.value::jsonb FROM rapport_read(packed, 0) AS r $$
"""

BYTES_FUNCTION = """
CREATE FUNCTION rapport_bytes(number integer, count integer) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT substring(int4send(number) FROM 5 - count) $$
"""

PACK_FUNCTION = r"""
CREATE FUNCTION rapport_pack(value jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  place integer;
  packed bytea := ''::bytea;
  item record;
  numbers boolean;
  raw bytea;
BEGIN
  CASE jsonb_typeof(value)
  WHEN 'null' THEN RETURN '\x00'::bytea;
  WHEN 'boolean' THEN RETURN CASE WHEN value::boolean THEN '\x01' ELSE '\x02' END::bytea;
  WHEN 'string' THEN
    place := array_position(rapport_names(), value #>> '{}');
    IF place IS NOT NULL THEN
      RETURN '\x0a'::bytea || rapport_bytes(place - 1, 1);
    END IF;
    raw := convert_to(value #>> '{}', 'UTF8');
    RETURN '\x03'::bytea || rapport_bytes(length(raw), 2) || raw;
  WHEN 'number' THEN
    IF value::text ~ '^[0-9]+$' AND value::numeric <= 65535 THEN
      RETURN '\x07'::bytea || rapport_bytes(value::integer, 2);
    END IF;
    RETURN '\x04'::bytea || float8send(value::double precision);
  WHEN 'array' THEN
    packed := '\x06'::bytea || rapport_bytes(jsonb_array_length(value), 1);
    FOR item IN SELECT e.value AS part FROM jsonb_array_elements(value) AS e LOOP
      packed := packed || rapport_pack(item.part);
    END LOOP;
    RETURN packed;
  WHEN 'object' THEN
    IF value ?& ARRAY['level', 'probabilities', 'rationale']
      AND (SELECT count(*) FROM jsonb_object_keys(value)) = 3 THEN
      packed := '\x09'::bytea || rapport_bytes((value->>'level')::integer, 1)
        || rapport_bytes(jsonb_array_length(value->'probabilities'), 1);
      FOR item IN
        SELECT e.value::double precision AS p
        FROM jsonb_array_elements(value->'probabilities') AS e
      LOOP
        packed := packed || float8send(item.p);
      END LOOP;
      packed := packed || rapport_bytes(jsonb_array_length(value->'rationale'), 1);
      FOR item IN SELECT e.value AS span FROM jsonb_array_elements(value->'rationale') AS e LOOP
        packed := packed || rapport_bytes((item.span->>0)::integer, 2)
          || rapport_bytes((item.span->>1)::integer, 2);
      END LOOP;
      RETURN packed;
    END IF;
    SELECT
      coalesce(bool_and(jsonb_typeof(e.value) = 'number' AND e.key <> 'empathy_total'), false),
      rapport_bytes(count(*)::integer, 1)
      INTO numbers, packed FROM jsonb_each(value) AS e;
    packed := CASE WHEN numbers THEN '\x08' ELSE '\x05' END::bytea || packed;
    FOR item IN SELECT e.key AS name, e.value AS part FROM jsonb_each(value) AS e LOOP
      place := array_position(rapport_names(), item.name);
      raw := convert_to(item.name, 'UTF8');
      packed := packed || CASE WHEN place IS NULL
        THEN '\xff'::bytea || rapport_bytes(length(raw), 1) || raw
        ELSE rapport_bytes(place - 1, 1) END;
      IF numbers THEN
        packed := packed || float8send(item.part::double precision);
      ELSE
        packed := packed || rapport_pack(item.part);
      END IF;
    END LOOP;
    RETURN packed;
  END CASE;
END $$
"""
FUNCTIONS = (
    NAMES_FUNCTION,
    TWO_FUNCTION,
    NUMBER_FUNCTION,
    READ_FUNCTION,
    JSON_FUNCTION,
    BYTES_FUNCTION,
    PACK_FUNCTION,
)
DROPPED = (
    "rapport_pack(jsonb)",
    "rapport_bytes(integer, integer)",
    "rapport_json(bytea)",
    "rapport_read(bytea, integer)",
    "rapport_number(bytea, integer)",
    "rapport_two(bytea, integer)",
    "rapport_names()",
)


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for function in FUNCTIONS:
        op.get_bind().exec_driver_sql(function)
    _drop_views()
    for table in TABLES:
        _convert(table, "bytea", "rapport_pack")
    _replace_index("brin")


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    _drop_views()
    for table in TABLES:
        _convert(table, "jsonb", "rapport_json")
    _replace_index("btree")
    for function in DROPPED:
        op.execute(f"DROP FUNCTION {function}")


def _replace_index(method: str) -> None:
    """Rows are in the order of their time: a BRIN index finds them, and is not written per row."""
    op.drop_index(INDEX, table_name="turn_scores")
    op.create_index(INDEX, "turn_scores", ["occurred_at"], postgresql_using=method)


def _convert(table: str, kind: str, function: str) -> None:
    parts = (f"ALTER COLUMN {name} TYPE {kind} USING {function}({name})" for name in COLUMNS)
    op.execute(f"ALTER TABLE {table} {', '.join(parts)}")


def _drop_views() -> None:
    for view in filter(VIEWS.match, sa.inspect(op.get_bind()).get_view_names()):
        op.execute(f'DROP VIEW "{view}"')
