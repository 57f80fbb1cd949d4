"""The pure core: windows, session aggregates, risk and alerts.

No Kafka, SQL, ONNX, clock or random numbers: time comes from the events, scores from a port. The
same log always gives the same state, so the stream and an offline run agree.
"""
