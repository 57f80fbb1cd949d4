-- Partitions turns and turn_scores by the month of occurred_at. Tested on PostgreSQL 15.
--
--     psql "$DATABASE" -v ON_ERROR_STOP=1 -f partition_by_month.sql
--
-- Stop the workers for its time; they find the new primary keys when they start. One transaction:
-- it copies the rows, so it takes as long as that, and the space. Afterwards, once a month:
--
--     SELECT rapport_add_months('turns', 3), rapport_add_months('turn_scores', 3);
--
-- and to let go of what is older than a year:
--
--     DROP TABLE turn_scores_2025_01, turns_2025_01;
--
-- Run it as the owner of the tables, and grant again what others were granted: the new tables
-- begin without. Rows of a month without a partition go to the default one. Leave it empty: PostgreSQL refuses a
-- partition for a month that the default one has rows of.

BEGIN;

CREATE OR REPLACE FUNCTION rapport_add_months(parent regclass, ahead integer, since timestamptz DEFAULT now())
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  month timestamptz := date_trunc('month', since AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
  following timestamptz;
  name text;
  made integer := 0;
BEGIN
  WHILE month <= now() + make_interval(months => ahead) LOOP
    following := ((month AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    name := parent::text || to_char(month AT TIME ZONE 'UTC', '_YYYY_MM');
    IF to_regclass(name) IS NULL THEN
      EXECUTE format('CREATE TABLE %I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)', name, parent, month, following);
      made := made + 1;
    END IF;
    month := following;
  END LOOP;
  RETURN made;
END $$;

-- A partitioned table's primary key holds the partition's column. The time of a turn never
-- changes, so the shorter key stays unique.

ALTER TABLE turns RENAME TO turns_whole;
ALTER INDEX pk_turns RENAME TO pk_turns_whole;
ALTER INDEX ix_turns_stored_at RENAME TO ix_turns_whole_stored_at;
CREATE TABLE turns (
  LIKE turns_whole INCLUDING DEFAULTS,
  CONSTRAINT pk_turns PRIMARY KEY (session_id, seq, occurred_at)
) PARTITION BY RANGE (occurred_at);
CREATE TABLE turns_other PARTITION OF turns DEFAULT;
SELECT rapport_add_months('turns', 3, (SELECT coalesce(min(occurred_at), now()) FROM turns_whole));
INSERT INTO turns SELECT * FROM turns_whole;
DROP TABLE turns_whole;
CREATE INDEX ix_turns_stored_at ON turns (stored_at) WHERE text IS NOT NULL;

ALTER TABLE turn_scores RENAME TO turn_scores_whole;
ALTER INDEX pk_turn_scores RENAME TO pk_turn_scores_whole;
ALTER INDEX ix_turn_scores_occurred_at RENAME TO ix_turn_scores_whole_occurred_at;
CREATE TABLE turn_scores (
  LIKE turn_scores_whole INCLUDING DEFAULTS,
  CONSTRAINT pk_turn_scores PRIMARY KEY (session_id, seq, stage, bundle, occurred_at)
) PARTITION BY RANGE (occurred_at);
CREATE INDEX ix_turn_scores_occurred_at ON turn_scores USING brin (occurred_at);
CREATE TABLE turn_scores_other PARTITION OF turn_scores DEFAULT;
SELECT rapport_add_months('turn_scores', 3, (SELECT coalesce(min(occurred_at), now()) FROM turn_scores_whole));
INSERT INTO turn_scores SELECT * FROM turn_scores_whole;
DROP TABLE turn_scores_whole;

COMMIT;
