"""Files that people write: alert rules and their variables, intents, routes, scorecards."""

__all__ = [
    "alert_reasons",
    "alerts",
    "intent_file",
    "intent_variables",
    "languages",
    "proposals",
    "routes_file",
    "routing",
    "rule_file",
    "rules",
    "scorecards",
    "variable_words",
    "variables",
    "yaml_file",
]
