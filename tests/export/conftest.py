from tests import training

collect_ignore_glob = training.ignored_files()
