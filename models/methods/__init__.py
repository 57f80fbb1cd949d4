"""Published methods, built again to be measured as ours are."""
