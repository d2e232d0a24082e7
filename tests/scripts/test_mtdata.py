"""mtdata knows every corpus that the recipes fetch through it, and reads our recipe file. Nothing is fetched."""

import os
import re
import subprocess
import sys

from fairseq_for_tests import REPOSITORY
from scripts_for_tests import lines_of

RECIPES = REPOSITORY / "scripts"

LIST = """
from mtdata.index import Index
print(*(entry.did for entry in Index.get_instance().get_entries()), sep="\\n")
"""


def corpora():
    """The names of all corpora, by dataset."""
    recipe = (RECIPES / "wmt22_en_de/mtdata.recipes.wmt22.yml").read_text()
    romanian = (RECIPES / "wmt16_en_ro/download.sh").read_text()
    rows = lines_of(RECIPES / "multilingual/corpora.tsv")[1:]
    return {
        "wmt22_en_de": re.findall(r"^    - (\S+)$", recipe, re.MULTILINE),
        "wmt16_en_ro": re.search(r"^CORPORA=\((.*)\)$", romanian, re.MULTILINE)[1].split(),
        "multilingual": [row.split("\t")[3] for row in rows],
    }


def test_mtdata_knows_every_corpus(tmp_path):
    # in a process of its own, because mtdata reads where to keep its index when it is imported
    environment = {**os.environ, "MTDATA": str(tmp_path), "MTDATA_RECIPES": str(RECIPES / "wmt22_en_de")}
    done = subprocess.run([sys.executable, "-c", LIST], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    known = set(done.stdout.split())
    found = corpora()
    assert [len(names) for names in found.values()] == [13, 2, 152]
    for dataset, names in found.items():
        assert {*names} <= known, dataset
    listed = [sys.executable, "-m", "mtdata", "list-recipe"]
    done = subprocess.run(listed, env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (ours,) = [line for line in done.stdout.splitlines() if line.startswith("wmt22-deen\t")]
    assert all(name in ours for name in found["wmt22_en_de"])
