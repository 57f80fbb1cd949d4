"""What redaction finds and what it masks too much: ``python -m benchmarks.redaction``.

``sentences.jsonl`` is the evaluation set; ``gazetteer`` rebuilds the word lists of the service.
"""
