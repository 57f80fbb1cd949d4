"""One table of all methods: quality, cost on one core, size."""
