from tests import training

collect_ignore_glob = training.ignored_files()
if training.is_available():
    from tests.exported_once import _graphs_exported_once  # noqa: F401  # a fixture
