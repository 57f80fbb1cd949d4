"""Commands over rules, intents and the bundle: check, try, suggest, adapt, promote."""

__all__ = [
    "adapt",
    "adapt_vectors",
    "intent_suggestions",
    "intents",
    "rule_backtest",
    "rules",
]
