"""Pack probabilities, which are whole ten-thousandths, in two bytes instead of eight.

Replaces the functions of 0038. The new ones read what is stored already, so no row is rewritten.
The format: ``stream_app/store/database/packed_json.py``. ``downgrade`` repacks all rows, of which
the functions of 0038 could not read the newest.

Revision: 0039
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

TABLES = ("turn_scores", "shadow_scores")
COLUMNS = ("expressed", "perceived", "client", "abstained")

SHARE_FUNCTION = """
CREATE FUNCTION rapport_is_share(value jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE WHEN jsonb_typeof(value) = 'number'
  THEN value::numeric BETWEEN 0 AND 1 AND value::numeric * 10000 = trunc(value::numeric * 10000)
  ELSE false END
$$
"""

PACK_NUMBER_FUNCTION = """
CREATE FUNCTION rapport_pack_number(value jsonb, short boolean) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE WHEN short THEN rapport_bytes((value::numeric * 10000)::integer, 2)
  ELSE float8send(value::double precision) END
$$
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
  IF tag IN (5, 8, 11) THEN
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
      ELSIF tag = 11 THEN
        item := (rapport_two(raw, spot) / 10000.0)::double precision;
        spot := spot + 2;
      ELSE
        SELECT r.spot, r.value INTO spot, item FROM rapport_read(raw, spot) AS r;
      END IF;
      value := value || separator || name || ':' || item;
      separator := ',';
    END LOOP;
    value := value || '}';
  ELSIF tag IN (9, 12) THEN
    value := '{"level":' || get_byte(raw, spot) || ',"probabilities":[';
    many := get_byte(raw, spot + 1);
    spot := spot + 2;
    FOR i IN 1 .. many LOOP
      IF tag = 9 THEN
        item := rapport_number(raw, spot);
        spot := spot + 8;
      ELSE
        item := (rapport_two(raw, spot) / 10000.0)::double precision;
        spot := spot + 2;
      END IF;
      value := value || separator || item;
      separator := ',';
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

PACK_FUNCTION = r"""
CREATE FUNCTION rapport_pack(value jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  place integer;
  packed bytea := ''::bytea;
  item record;
  numbers boolean;
  short boolean;
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
      SELECT bool_and(rapport_is_share(e.value)) IS NOT FALSE INTO short
        FROM jsonb_array_elements(value->'probabilities') AS e;
      packed := CASE WHEN short THEN '\x0c' ELSE '\x09' END::bytea
        || rapport_bytes((value->>'level')::integer, 1)
        || rapport_bytes(jsonb_array_length(value->'probabilities'), 1);
      FOR item IN
        SELECT e.value AS p FROM jsonb_array_elements(value->'probabilities') AS e
      LOOP
        packed := packed || rapport_pack_number(item.p, short);
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
      coalesce(bool_and(rapport_is_share(e.value)), false),
      rapport_bytes(count(*)::integer, 1)
      INTO numbers, short, packed FROM jsonb_each(value) AS e;
    packed := CASE WHEN NOT numbers THEN '\x05' WHEN short THEN '\x0b' ELSE '\x08' END::bytea
      || packed;
    FOR item IN SELECT e.key AS name, e.value AS part FROM jsonb_each(value) AS e LOOP
      place := array_position(rapport_names(), item.name);
      raw := convert_to(item.name, 'UTF8');
      packed := packed || CASE WHEN place IS NULL
        THEN '\xff'::bytea || rapport_bytes(length(raw), 1) || raw
        ELSE rapport_bytes(place - 1, 1) END;
      IF numbers THEN
        packed := packed || rapport_pack_number(item.part, short);
      ELSE
        packed := packed || rapport_pack(item.part);
      END IF;
    END LOOP;
    RETURN packed;
  END CASE;
END $$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for function in (SHARE_FUNCTION, PACK_NUMBER_FUNCTION, READ_FUNCTION, PACK_FUNCTION):
        _replace(function)


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    before = context.script.get_revision(down_revision).module
    _replace(before.PACK_FUNCTION)
    for name in TABLES:
        table = sa.table(name, *map(sa.column, COLUMNS))
        repacked = {
            each: sa.func.rapport_pack(sa.func.rapport_json(table.c[each])) for each in COLUMNS
        }
        op.execute(table.update().values(repacked))
    _replace(before.READ_FUNCTION)
    op.execute("DROP FUNCTION rapport_pack_number(jsonb, boolean)")
    op.execute("DROP FUNCTION rapport_is_share(jsonb)")


def _replace(function: str) -> None:
    text = function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
    op.get_bind().exec_driver_sql(text)
