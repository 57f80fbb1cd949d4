"""Evaluates the shipped intents on utterances labelled for this project."""
