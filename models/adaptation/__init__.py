"""How many ratings ``rapport adapt`` needs, on simulated platforms with known raters."""
