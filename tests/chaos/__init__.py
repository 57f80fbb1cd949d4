"""Random but reproducible faults against the real service; the invariant is checked afterwards."""
