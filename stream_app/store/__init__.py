"""The database: SQLAlchemy tables, idempotent upserts, one transaction per batch.

A room for each subject, lowest first: ``database`` (connection, tables, rows), ``keys`` (session
keys, pseudonyms), ``stream`` (what the worker writes, ``Store``), ``sessions`` (what is read of
sessions and turns), ``accounts`` (people, audit), ``work`` (reviews, ratings, disputes, goals),
``alerts`` (actions, deliveries, rules, interventions) and ``lifecycle`` (retention, erasure,
archive). Functions that return people's data take a ``Scope``, so that no query forgets the access
check. Start at ``stream``.
"""
