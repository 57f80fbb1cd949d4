from tests import training

collect_ignore_glob = training.ignored_files()
if training.is_available():
    from tests.exported_once import _graphs_exported_once  # noqa: F401  # a fixture
    from tests.few_resamples import _few_resamples, all_resamples  # noqa: F401  # fixtures
    from tests.one_thread import _one_thread  # noqa: F401  # a fixture
