from tests import training

collect_ignore_glob = training.left_out()
