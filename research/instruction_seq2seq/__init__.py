"""Instruction-finetuned encoder-decoders as classifiers (Xu & Jiang 2024, section 4.3)."""

__all__ = ["instructions", "model", "tasks"]
