"""mtdata knows every corpus that the recipes fetch through it. Nothing is fetched."""

import os
import subprocess
import sys

from fairseq_for_tests import REPOSITORY
from scripts_for_tests import lines_of

RECIPES = REPOSITORY / "scripts"

LIST = """
import os
from pathlib import Path

from owf_fairseq.data.corpora import prefetch

assert prefetch([], Path(os.environ["MTDATA"])) == {}
from mtdata.index import Index
print(*(entry.did for entry in Index.get_instance().get_entries()), sep="\\n")
"""


def corpora():
    """The names of all corpora, by dataset."""

    def listed(dataset):
        return [row.split("\t")[0] for row in lines_of(RECIPES / dataset / "corpora.tsv")[1:]]

    rows = lines_of(RECIPES / "multilingual/corpora.tsv")[1:]
    names = {dataset: listed(dataset) for dataset in ("wmt22_en_de", "wmt16_en_ro")}
    return {**names, "multilingual": [row.split("\t")[3] for row in rows]}


def test_mtdata_knows_every_corpus(tmp_path):
    # in a process of its own, because mtdata reads where to keep its index when it is imported
    environment = {**os.environ, "MTDATA": str(tmp_path / "run/cache")}
    done = subprocess.run([sys.executable, "-c", LIST], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    known = set(done.stdout.split())
    found = corpora()
    assert [len(names) for names in found.values()] == [13, 2, 152]
    for dataset, names in found.items():
        assert {*names} <= known, dataset
