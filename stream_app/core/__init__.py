"""The pure core: windows, session aggregates, risk and alerts.

No Kafka, SQL, ONNX, clock or random numbers: time comes from the events, scores from a port. The
same log always gives the same state, so the stream equals an offline run.

Four rooms, lowest first: ``measures`` (what is computed of turns and sessions), ``rules`` (alert
rules, intents, routes, scorecards: what people write in files), ``session`` (one session's state
and its dependencies), ``pipeline`` (batches of events). Start at ``pipeline``.
"""
