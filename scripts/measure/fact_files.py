"""Facts as files: docs/facts/<machine>/<experiment>.json, written by `render`.

    facts    what `facts` of the experiment gives of the record, of it what pages use
    figure   {language: caption and alternative text}, filled with the facts
    design   {language: what design_text describes}, where the experiment has a DESIGN

The site reads these and imports no experiment; a digit that changes is a line of a
diff.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from scripts.measure import design_text, figures
from scripts.measure.experiment_words import LANGUAGES
from scripts.measure.records import ROOT, Record, load_experiment

FOLDER = ROOT / "docs" / "facts"


def path(experiment: str, machine: str) -> Path:
    return FOLDER / machine / f"{experiment}.json"


def text(record: Record, facts: dict[str, str], used: Iterable[str]) -> str:
    """What the file of this record holds, of its ``facts`` those that are ``used``.

    A used name that the experiment does not give is left out: the page that names it
    fails.
    """
    module = load_experiment(record.experiment)
    held = {
        "facts": {name: str(facts[name]) for name in sorted(used) if name in facts},
        "figure": {
            language: figures.fill(
                {part: module.WORDS[language][part] for part in ("caption", "alt")},
                facts,
            )
            for language in LANGUAGES
        },
    }
    if hasattr(module, "DESIGN"):
        held["design"] = {
            language: design_text.described(record, language, facts)
            for language in LANGUAGES
        }
    return json.dumps(held, ensure_ascii=False, indent=1) + "\n"
