"""How large the union of two vocabularies is, as `owf prepare` would make it."""

import json

from prepare_for_tests import write_corpus
from scripts_for_tests import load_script

from owf_fairseq.data.prepare import prepare


def test_the_rows_are_those_of_the_data(tmp_path, capsys):
    prefixes = write_corpus(tmp_path)
    made = prepare(prefixes, "en-de", tmp_path / "data", vocab_size=40, separate_vocabularies=True)
    texts = ["--source", f"{prefixes['train']}.en", "--target", f"{prefixes['train']}.de"]
    script = load_script("measure/vocabulary_union.py")
    assert script.main([*texts, "--sizes", "40", "5000", "--json", str(tmp_path / "union.json")]) == 0
    assert "need 50,408 rows" in capsys.readouterr().out
    data = json.loads((tmp_path / "union.json").read_text())
    assert data["made_by"].startswith("python scripts/measure/vocabulary_union.py --source ")
    small, large = data["rows"]
    assert small["rows"] == str(made.vocabulary)
    pieces = [int(small[f"{side} pieces"]) for side in ("source", "target")]
    assert 0 <= made.vocabulary - 4 - (sum(pieces) - int(small["in both"])) < 8
    assert large["rows / asked for"] == "-"  # the text has not so many pieces
    assert script.main(["--source", "nowhere", *texts[2:]]) == 2
