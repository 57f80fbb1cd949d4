"""A bundle's folder: manifest, pointer to the one in force, calibration and adaptations."""

__all__ = ["adaptations", "bundle", "bundle_pointer", "calibration", "recalibration"]
