"""`owf shortlist`: what is in the file, what is reported, and that it goes on where it was interrupted."""

import json

import pytest
from prepare_for_tests import write_corpus

from owf_fairseq import cli
from owf_fairseq.decoding.vocabulary_map import VocabularyMap
from owf_fairseq.shortlist import shortlist as made_by
from owf_fairseq.shortlist.selection import ShortlistOptions, is_sign
from owf_fairseq.shortlist.sentences import Vocabulary


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Data whose target is the source in capitals, of other sentences; once whole and once in shards."""
    folder = tmp_path_factory.mktemp("corpus")
    prefixes = write_corpus(folder)
    lines = (folder / "train.en").read_text().splitlines()
    numbers = [f"{line} {n % 7} !" for n, line in enumerate(lines)]
    (folder / "train.en").write_text("".join(f"{line}\n" for line in numbers))
    (folder / "train.de").write_text("".join(f"{line.upper()}\n" for line in numbers))
    common = ["--train", prefixes["train"], "--valid", prefixes["valid"], "--langs", "en-de", "--vocab-size", "90"]
    assert cli.main(["prepare", *common, "--output", str(folder / "data")]) == 0
    assert cli.main(["prepare", *common, "--shards", "2", "--output", str(folder / "shards")]) == 0
    return folder


@pytest.fixture
def owf(capsys):
    """Runs the command; gives status, output and what it said."""

    def run(*arguments):
        status = cli.main(["shortlist", *map(str, arguments)])
        return (status, *capsys.readouterr())

    return run


def encoded(prepared, split, lang):
    return [line.split() for line in (prepared / f"data/encoded/{split}.{lang}").read_text().split("\n")[:-1]]


def test_the_file_and_the_report(owf, prepared, tmp_path):
    path, report = tmp_path / "shortlist.txt", tmp_path / "shortlist.json"
    arguments = (prepared / "data", "--output", path, "--json", report, "--best", 3, "--frequent", 4)
    status, out, _ = owf(*arguments)
    assert status == 0
    found, data = VocabularyMap.read(path), json.loads(report.read_text())
    written = [piece for line in encoded(prepared, "train", "de") for piece in line]
    often = sorted(set(written), key=lambda piece: -written.count(piece))[:2]
    assert set(often) <= found.always
    assert {str(n) for n in range(7)} <= {Vocabulary.bare(piece) for piece in found.always if is_sign(piece)}
    assert found.targets()
    assert set(found.targets()) <= {*written, "<unk>", "<s>", "</s>"}
    assert all(len(set(targets) - Vocabulary.spellings(source)) <= 3 for source, targets in found.by_source.items())
    pairs = list(zip(encoded(prepared, "valid", "en"), encoded(prepared, "valid", "de"), strict=True))
    covered = [piece in found.candidates(source) for source, target in pairs for piece in target]
    assert (data["kind"], data["source"], data["target"]) == ("shortlist", "en", "de")
    assert (data["pairs"], data["skipped"], data["options"]["best"]) == (120, 0, 3)
    assert (data["coverage"]["covered"], data["coverage"]["tokens"]) == (sum(covered), len(covered))
    sizes = [len(found.candidates(source)) for source, _ in pairs]
    assert data["coverage"]["symbols"] == pytest.approx(sum(sizes) / len(sizes))
    assert f"{sum(covered) / len(covered):.2%} of {len(covered):,} reference tokens" in out
    status, out, err = owf(*arguments)
    assert (status, out) == (0, "")
    assert "made before with the same settings and inputs" in err
    status, _, err = owf(*arguments[:-1], 5)
    assert status == 2
    assert "was made with other settings (`--frequent` 4, now 5)" in err


def test_translations_of_a_word_are_found(owf, prepared, tmp_path):
    status, _, _ = owf(prepared / "data", "--output", tmp_path / "a", "--best", 20, "--frequent", 1)
    assert status == 0
    found = VocabularyMap.read(tmp_path / "a")
    pairs = zip(encoded(prepared, "train", "en"), encoded(prepared, "train", "de"), strict=True)
    hits = [set(target) <= found.candidates(source) for source, target in pairs]
    assert sum(hits) > 0.9 * len(hits)


def test_shards_and_the_other_direction(owf, prepared, tmp_path):
    assert owf(prepared / "shards", "--output", tmp_path / "a", "--json", tmp_path / "a.json")[0] == 0
    data = json.loads((tmp_path / "a.json").read_text())
    assert (data["pairs"], data["coverage"]["sentences"]) == (120, 12)
    assert data["options"] == vars(ShortlistOptions())  # the command's defaults are the library's
    status, _, _ = owf(prepared / "data", "--output", tmp_path / "b", "--json", tmp_path / "b.json", "--langs", "de-en")
    assert status == 0
    data = json.loads((tmp_path / "b.json").read_text())
    assert (data["source"], data["target"]) == ("de", "en")


def test_an_interruption(owf, prepared, tmp_path, monkeypatch):
    """What is aligned is not aligned again, and the result is the same; so is the memory's bound, a chunk."""
    sizes = []

    def count(source, target, languages, counting=made_by.count_links):
        sizes.append(len(source))
        if len(sizes) == 3:
            raise KeyboardInterrupt
        return counting(source, target, languages)

    monkeypatch.setattr(made_by, "count_links", count)
    monkeypatch.setattr(made_by, "ALIGNED_TOGETHER", 40)
    arguments = (prepared / "data", "--output", tmp_path / "a", "--pairs", 100)
    assert owf(*arguments)[0] == 130
    assert not (tmp_path / "a").exists()
    status, out, err = owf(*arguments)
    assert status == 0
    assert "going on where a run was interrupted" in err
    assert sizes == [40, 40, 20, 20]
    assert "100 pairs aligned" in out
    assert not list(tmp_path.glob(".*.partial"))


def test_all_problems_are_told_together(owf, prepared, tmp_path, monkeypatch):
    monkeypatch.setattr(made_by, "check_aligner", lambda: made_by.collect([], lambda: None))
    (tmp_path / "empty").mkdir()
    status, _, err = owf(tmp_path / "empty", "--output", tmp_path / "empty", "--best", 0, "--pairs", -1)
    assert status == 2
    assert f"{tmp_path}/empty holds no binary data" in err
    assert "`--output` " in err
    assert "`--best` must be at least 1, but is 0" in err
    assert "`--pairs` must be at least 1, but is -1" in err
    status, _, err = owf(prepared / "data", "--output", tmp_path / "a", "--langs", "en-fr")
    assert status == 2
    assert f"`--langs` en-fr: {prepared}/data has en-de" in err


def test_without_the_aligner(owf, prepared, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    status, _, err = owf(prepared / "data", "--output", tmp_path / "a")
    assert status == 2
    assert "the aligner eflomal is not installed: pip install '.[shortlist]'" in err
