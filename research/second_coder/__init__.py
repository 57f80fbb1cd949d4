"""A language model as second coder: codebooks as prompts to an OpenAI-compatible endpoint."""

__all__ = ["codebook", "items"]
