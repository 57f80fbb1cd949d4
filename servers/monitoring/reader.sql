-- The login with which Grafana reads the reporting views, and nothing else (docs/analytics.md).
-- psql --set password=… --set role=rapport_reader --file reader.sql
-- After `rapport db upgrade`, which makes the role that it belongs to. It can be repeated, for
-- example with another password.
\set ON_ERROR_STOP on
SELECT 'CREATE ROLE rapport_grafana'
WHERE NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'rapport_grafana') \gexec
ALTER ROLE rapport_grafana LOGIN PASSWORD :'password' CONNECTION LIMIT 8;
ALTER ROLE rapport_grafana SET default_transaction_read_only = on;
ALTER ROLE rapport_grafana SET statement_timeout = '30s';
GRANT :"role" TO rapport_grafana;
