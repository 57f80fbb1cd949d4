"""First section of the evaluation: people's judgements that no model was trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from models.reader.evaluation.page import WRITTEN, table

FILES = ("mpnet", "mpnet-left-out", "baselines", "ceilings", "blend")
SAME_LABEL = ("eaf_people: emotional reaction", "eaf_people: interpretation")
"""Labels with a ceiling in the figures' unit: one person's label against another's, as AUROC."""
HEAD = """\
Figures of the [reader](answers.md), from 0 to 1: rank correlations for scales, AUROC for yes and
no. *Corpus left out*: nothing of that corpus was in training. *Held out*: a fifth of it in turn,
trained with the rest. The baselines are tf-idf of the words and the answer's length, trained on the
same folds. The base size is shown, because it has all folds; six layers are shipped, and are
[compared with it](answers.md#six-layers-or-twelve)."""
CEILING = """\
People agree with each other less than such figures suggest: of two people who label the same
client's turn, one's label detects the other's with an AUROC of {emotional:.2f} (emotional
opportunity) and {interpretation:.2f} (interpretation). The figures above are on the turns on which
both agree, and are not a share of that ceiling. For the other corpora one label is published, so
there is no ceiling to compute ([datasheets](datasheets/index.md))."""
BEHAVIOUR = "### Written contrast, a voice held out"
SESSIONS = """\
### Sessions of known quality

Plainly good sessions of held-out voices lie above plainly bad ones with an AUROC of {plain:.2f}
({n} sessions), and chats follow their client's rating with a rank correlation of {chats:.2f}
({rated} chats). Readers that had not seen them were weighed as the shipped index weighs its own
(`python -m models.reader.blend`). [What the index does in
each sample session](low-empathy.md#the-sample-sessions-read) is compared with a reading of it."""


def outside(folder: Path) -> str | None:
    """The section as Markdown; None if a file of `docs/evaluation/reader` is missing."""
    paths = [folder / "reader" / f"{name}.json" for name in FILES]
    if not all(path.is_file() for path in paths):
        return None
    held, left_out, baselines, ceilings, blend = (
        json.loads(path.read_text(encoding="utf-8")) for path in paths
    )
    words: dict[str, Any] = baselines["all folds"]
    freely = [name for name in held if name.startswith(WRITTEN)]
    people = sorted((name for name in held if name not in freely), key=lambda n: n not in left_out)
    emotional, interpretation = (ceilings["agreement"][name]["auroc"] for name in SAME_LABEL)
    shipped = {
        name: blend[name]["shares"]["0.7"]["answers minus lapses"]
        for name in ("plain sessions", "iEval")
    }
    return "\n\n".join(
        [
            HEAD,
            table({"corpus left out": left_out, "held out": held}, words, people),
            CEILING.format(emotional=emotional, interpretation=interpretation),
            BEHAVIOUR,
            table({"held out": held}, words, freely),
            SESSIONS.format(
                plain=shipped["plain sessions"],
                n=blend["plain sessions"]["n"],
                chats=shipped["iEval"],
                rated=blend["iEval"]["n"],
            ),
        ]
    )
