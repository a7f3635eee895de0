"""What building both languages costs, beside plain MkDocs on the same pages.

CPU time of one process, which other work on the machine changes little.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.site.conftest import Project

# Ours and plain MkDocs in turn, each once to warm up and then RUNS times.
COMPARE = r"""
import json, logging, pathlib, re, shutil, tempfile, time, yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config
from scripts.site import atlas
from scripts.site.pages.expand import WRITTEN
from scripts.site.questions import mock
logging.disable(logging.WARNING)
RUNS = 3

def ours():
    run("mkdocs.yml")

def plain():
    for language in ("zh", "en"):
        run(f"plain/{language}/mkdocs.yml")

def run(file):
    with tempfile.TemporaryDirectory() as site:
        config = load_config(file, site_dir=site)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)

MAKERS = WRITTEN | {"mock": mock, "atlas": atlas}
LIST = re.compile(rf"\[\[ ({'|'.join(MAKERS)})\.(\w+) \]\]")

def expanded(language):
    return lambda found: MAKERS[found[1]].make(found[2], language)

class Loader(yaml.SafeLoader):
    pass
Loader.add_multi_constructor("!ENV", lambda *_: None)
base = yaml.load(pathlib.Path("docs/base.yml").read_text(), Loader)
for key in ("repo_url", "hooks"):
    base.pop(key)
base["plugins"].pop("macros"), base["plugins"].pop("offline")
labs = {"include": ["labs/*.ipynb"], "ignore": ["*.md"]}
base["plugins"]["mkdocs-jupyter"] = labs | {"execute": False}
base["theme"].pop("custom_dir")
base["theme"].pop("favicon"), base["theme"].pop("logo")
for language in ("zh", "en"):
    folder = pathlib.Path("plain", language)
    shutil.copytree(f"docs/{language}/pages", folder / "pages")
    for page in (folder / "pages").rglob("*.md"):  # the same text in both builds
        page.write_text(LIST.sub(expanded(language), page.read_text()))
    shutil.copytree(f"docs/figures/{language}/labs", folder / "pages/labs")
    own = yaml.load(pathlib.Path(f"docs/{language}/mkdocs.yml").read_text(), Loader)
    theme = base["theme"] | {"language": language}
    config = base | {"site_name": "plain", "theme": theme, "nav": own["nav"]}
    config["plugins"]["mkdocs-jupyter"]["cache_dir"] = f".cache/plain/{language}"
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config, allow_unicode=True))

for number in range(RUNS + 1):
    for builder in (ours, plain):
        start = time.process_time()
        builder()
        if number:
            print(json.dumps([builder.__name__, time.process_time() - start]))
"""
NAMES = {"ours": "both languages built", "plain": "plain MkDocs, the same pages"}


def seconds() -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        done = Project(Path(folder)).run("-c", COMPARE, seconds=1200)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    for text in done.stdout.splitlines():
        name, used = json.loads(text)
        yield f"{NAMES[name]}, CPU", used
