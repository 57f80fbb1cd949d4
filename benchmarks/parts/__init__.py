"""What is measured. Each part has ``measure`` (options → figures) and ``table`` (→ Markdown)."""
