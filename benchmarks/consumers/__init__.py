"""Alternative consumers of the same turns, each written as its users would.

Each takes the folder for its commits as an argument and reads its settings from ``RAPPORT_*``. No
other module imports these: they run in their own environments.
"""
