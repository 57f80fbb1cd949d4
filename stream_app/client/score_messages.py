"""Reads the messages of the score topics, for programs that consume them from Kafka.

>>> from stream_app.client.score_messages import ScoreReader
>>> reader = ScoreReader(lambda bundle: {"heads": []})
>>> reader.read(
...     b'{"type":"session_score","v":2,"session_id":"s-1","bundle":"b","turns":3,'
...     b'"measures":[1250]}'
... ).low_empathy_risk
0.125
"""

from stream_app.contracts.compact import ScoreReader
from stream_app.contracts.scores import Alert, SessionScore, TurnScore

__all__ = ["Alert", "ScoreReader", "SessionScore", "TurnScore"]
