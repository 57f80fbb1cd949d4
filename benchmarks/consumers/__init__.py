"""What else could be run: other consumers of the same turns, each as somebody would write it.

Each is called with the folder for its commits and has the settings in ``RAPPORT_*``. Nothing in
here is imported by anything else: they run in environments of their own.
"""
