"""An exported model with a shortlist: what the folder holds and says, what uses it, and that it is verified."""

import json
import re
import shutil

import ctranslate2
import pytest
from fairseq_for_tests import text_sentences

from owf_fairseq import cli
from owf_fairseq.decoding.backends import load_backend
from owf_fairseq.decoding.exported import ExportedModel
from owf_fairseq.decoding.vocabulary_map import VocabularyMap
from owf_fairseq.errors import InputError
from owf_fairseq.export import shortlist as verifying
from owf_fairseq.export.export import export

A = "the lamp opens the door."


@pytest.fixture(scope="module")
def shortlist(copier, tmp_path_factory):
    """Each piece may be copied, but for those of the last words of the sentence A."""
    pieces = {
        piece
        for line in text_sentences(300, 300)
        for piece in load_backend(str(copier)).segmentation().encode(line).split()
    }
    gone = load_backend(str(copier)).segmentation().encode("door").split()
    path = tmp_path_factory.mktemp("shortlist") / "shortlist.txt"
    VocabularyMap(frozenset({".", "▁and"} & pieces), {piece: (piece,) for piece in pieces - set(gone)}).write(path)
    return path


@pytest.fixture(scope="module")
def exported(copier, shortlist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "int8"
    assert (
        cli.main(
            ["export", str(copier), "--quantization", "int8", "--shortlist", str(shortlist), "--output", str(folder)]
        )
        == 0
    )
    return folder


@pytest.fixture
def translate(exported, tmp_path, capsys):
    """Translates a line, and gives status, translation and errors."""

    (tmp_path / "in").write_text(f"{A}\n")

    def run(*flags, model=exported):
        status = cli.main(["translate", str(model), "--cpu", "--input", str(tmp_path / "in"), *map(str, flags)])
        return (status, *capsys.readouterr())

    return run


def test_the_folder_holds_it_and_says_so(exported, shortlist):
    assert (exported / "vmap.txt").read_bytes() == shortlist.read_bytes()
    found = ExportedModel.read(exported).record["shortlist"]
    assert (found["outside"], found["sentences"]) == (0, 8)
    assert found["hypotheses"] > 0
    assert 5 < found["symbols"] < found["vocabulary"]
    text = (exported / "README.md").read_text()
    assert "| vmap.txt | the shortlist" in text
    assert f"{found['symbols']:.0f} of {found['vocabulary']} in the mean" in text
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "use_vmap=True)" in code


def test_float32_is_as_exact_as_without(copier, shortlist, tmp_path):
    found = export(str(copier), tmp_path / "a", shortlist=shortlist).shortlist
    assert found.largest <= found.threshold < 1e-3
    assert found.tokens > 100


def test_a_model_without_one_is_exported_as_before(exported_copier):
    assert not (exported_copier / "vmap.txt").exists()
    assert "shortlist" not in json.loads((exported_copier / "export.json").read_text())
    assert "vmap" not in (exported_copier / "README.md").read_text()


def test_translate_uses_it_unless_told_otherwise(translate, exported_copier, copier):
    status, with_it, _ = translate()
    assert status == 0
    assert "door" not in with_it
    assert translate("--shortlist")[1] == with_it
    assert translate("--no-shortlist")[1] == translate(model=exported_copier)[1] == f"{A}\n"
    status, _, err = translate("--shortlist", model=exported_copier)
    assert status == 2
    assert f"`--shortlist`: {exported_copier} has none: `owf export --shortlist FILE`" in err
    status, _, err = translate("--shortlist", model=copier)
    assert status == 2
    assert "`--shortlist` is for exported models" in err


def test_a_file_is_translated_again_with_other_symbols(translate, tmp_path):
    output = ("--output", tmp_path / "out")
    assert translate(*output)[0] == 0
    assert "made before" in translate(*output)[2]
    assert "(`--shortlist` not given, now False)" in translate(*output, "--no-shortlist")[2]


def test_benchmark_measures_both_in_one_run(exported, tmp_path, capsys):
    fast = "--cpu --runs 1 --warmup 0 --sentences 2 --beam 2 --lengths 3/4".split()
    models = [f"with={exported}", f"without={exported}", "--backend", "ctranslate2"]
    path = tmp_path / "speed.json"
    assert cli.main(["benchmark", *models, "--no-shortlist", "without", *fast, "--json", str(path)]) == 0
    models_of = {model["name"]: model["shortlist"] for model in json.loads(path.read_text())["models"]}
    assert models_of == {"with": True, "without": False}
    assert "ctranslate2, int8_float32, shortlist" in capsys.readouterr().out
    models = ["a=owf_tiny", "b=owf_tiny", "--vocab-size", "60", "--backend", "ctranslate2", "--shortlist", "20"]
    assert cli.main(["benchmark", *models, "--no-shortlist", "b", *fast, "--json", str(path), "--overwrite"]) == 0
    models_of = {model["name"]: model["shortlist"] for model in json.loads(path.read_text())["models"]}
    assert models_of == {"a": True, "b": False}
    capsys.readouterr()
    assert cli.main(["benchmark", "owf_tiny", "--shortlist", "20", "--no-shortlist", "x", *fast]) == 2
    err = capsys.readouterr().err
    assert "`--shortlist` is for archs that CTranslate2 decodes" in err
    assert "`--no-shortlist` x is none of the models that CTranslate2 decodes" in err


def test_a_shortlist_of_other_data_is_refused(copier, tmp_path):
    VocabularyMap(frozenset({"xyz"}), {"▁the": ("abc",), "▁the qqq": ("▁the",)}).write(tmp_path / "other")
    with pytest.raises(InputError) as error:
        export(str(copier), tmp_path / "a", shortlist=tmp_path / "other")
    assert error.value.problems[0].startswith(
        f"`--shortlist` {tmp_path}/other has 1 symbols that are not in the model's source dictionary (qqq)"
    )
    assert "2 symbols that are not in the model's target dictionary (abc, xyz)" in error.value.problems[1]
    with pytest.raises(InputError, match="missing can't be read"):
        export(str(copier), tmp_path / "a", shortlist=tmp_path / "missing")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("fault", ["other symbols", "not used", "not normalised"])
def test_a_search_that_is_not_restricted_likewise_is_refused(fault, copier, shortlist, tmp_path, monkeypatch):
    """The folder has more symbols than are looked up; CTranslate2 has all; what it has is not what we compute."""
    if fault == "other symbols":
        kept = VocabularyMap.candidates
        monkeypatch.setattr(VocabularyMap, "candidates", lambda self, pieces: kept(self, pieces[:1]))
    elif fault == "not used":
        translate = ctranslate2.Translator.translate_batch

        def without(self, *arguments, use_vmap=False, **others):
            return translate(self, *arguments, **others)

        monkeypatch.setattr(ctranslate2.Translator, "translate_batch", without)
    else:
        compute = verifying.log_probabilities
        monkeypatch.setattr(verifying, "log_probabilities", lambda *arguments: compute(*arguments) * 1.01)
    with pytest.raises(InputError, match="with the shortlist, the exported model does not search as it should"):
        export(str(copier), tmp_path / "a", shortlist=shortlist)
    assert not (tmp_path / "a").exists()


def test_a_damaged_shortlist_is_refused(exported, tmp_path):
    shutil.copytree(exported, tmp_path / "copy")
    (tmp_path / "copy/vmap.txt").write_text("no shortlist\n")
    with pytest.raises(InputError, match="vmap.txt, line 1: not SOURCE <tab> TARGET"):
        load_backend(str(tmp_path / "copy"), cpu=True)
    load_backend(str(tmp_path / "copy"), cpu=True, use_shortlist=False)
