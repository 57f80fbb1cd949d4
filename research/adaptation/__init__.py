"""How much ratings help a bundle: simulated raters, adapters, learning curves."""
