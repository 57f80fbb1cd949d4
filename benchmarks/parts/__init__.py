"""Parts of the benchmark, each with ``measure`` (options → figures) and ``table`` (→ Markdown)."""
