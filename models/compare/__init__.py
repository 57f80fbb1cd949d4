"""One table of all methods on the same folds: quality, parameters, speed and memory."""
