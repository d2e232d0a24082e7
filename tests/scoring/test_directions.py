"""`owf evaluate --directions`: each direction as if alone, all together, and every file that is missing or too much."""

import itertools
import json

import pytest
from evaluation_for_tests import evaluate, sentences, spoil, write
from sacrebleu.metrics import BLEU, CHRF

from owf_fairseq.scoring.direction_files import find_files

LANGUAGES = ("de", "en", "th")
DIRECTIONS = [f"{source}-{target}" for source, target in itertools.permutations(LANGUAGES, 2)]
LINES = 60


def reference(language):
    return sentences(LINES, seed=sum(map(ord, language)))


def hypotheses(system, direction):
    """`wide` is better than `base` in all directions but th-de, and in en-de it is the same."""
    share = {"base": 0.5, "wide": 0.5 if direction == "en-de" else 0.7 if direction == "th-de" else 0.2}[system]
    return spoil(reference(direction.split("-")[1]), share, seed=DIRECTIONS.index(direction))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two systems, and one reference for each target language."""
    monkeypatch.chdir(tmp_path)
    for name in ("base", "wide", "refs"):
        (tmp_path / name).mkdir()
    for language in LANGUAGES:
        write(tmp_path / "refs" / f"devtest.{language}", reference(language))
    for system, direction in itertools.product(("base", "wide"), DIRECTIONS):
        write(tmp_path / system / f"{direction}.hyp", hypotheses(system, direction))
    return tmp_path


def run(capsys, *arguments, status=0):
    return evaluate(capsys, "--directions", *arguments, status=status)


def test_scores_of_each_direction_and_of_all_together(folders, capsys):
    printed, warnings = run(
        capsys, "wide", "--ref", "refs", "--baseline", "base", "--samples", "100", "--json", "scores.json"
    )
    assert "base/en-de.hyp and wide/en-de.hyp have the same lines" in warnings
    found = json.loads((folders / "scores.json").read_text())
    assert found["kind"] == "evaluation"
    assert list(found["directions"]) == sorted(DIRECTIONS)
    base, wide = found["systems"]
    assert (base["name"], wide["name"], wide["folder"]) == ("base", "wide", "wide")
    alone = {}
    for direction in DIRECTIONS:
        # sacreBLEU's tokenizer for each target language: Thai is taken by character
        metric = BLEU(tokenize="char" if direction.endswith("th") else "13a")
        alone[direction] = metric.corpus_score(hypotheses("wide", direction), [reference(direction.split("-")[1])])
        assert wide["directions"][direction]["scores"]["bleu"]["score"] == alone[direction].score
        assert wide["directions"][direction]["file"] == f"wide/{direction}.hyp"
    # all together: the counts of all directions, added
    counts, totals = (
        [sum(numbers) for numbers in zip(*(getattr(score, key) for score in alone.values()), strict=True)]
        for key in ("counts", "totals")
    )
    lengths = [sum(getattr(score, key) for score in alone.values()) for key in ("sys_len", "ref_len")]
    together = BLEU.compute_bleu(counts, totals, *lengths, smooth_method="exp").score
    assert wide["scores"]["bleu"]["score"] == pytest.approx(together, abs=1e-9)
    everything = [
        [line for direction in sorted(DIRECTIONS) for line in make(direction)]
        for make in (
            lambda direction: hypotheses("wide", direction),
            lambda direction: reference(direction.split("-")[1]),
        )
    ]
    chrf = CHRF().corpus_score(everything[0], [everything[1]]).score
    assert wide["scores"]["chrf"]["score"] == pytest.approx(chrf, abs=1e-9)
    assert wide["scores"]["bleu"]["significant"] is True
    assert wide["significant_directions"]["bleu"] == {"better": 4, "worse": 1, "of": 6}
    assert base["significant_directions"]["bleu"] is None
    assert "|tok:13a,char|" in found["metrics"]["bleu"]["signature"]
    lines = printed.splitlines()
    assert lines[0].split() == "direction segments BLEU base BLEU wide chrF base chrF wide".split()
    cells = {line[:18].strip(): line[18:].split() for line in lines[2:10]}
    assert [name for name, cell in cells.items() if cell.count("†") == 2] == [
        *(direction for direction in sorted(DIRECTIONS) if direction != "en-de"), "all together",
    ]  # fmt: skip
    assert cells["all together"][0] == "360"
    mean = sum(score.score for score in alone.values()) / len(alone)
    assert cells["mean of directions"][1] == f"{mean:.1f}"
    assert "wide: BLEU differs significantly in 5 of 6 directions (4 better, 1 worse), and on all together" in printed


def rename(folders, names):
    """Moves files; a name with a `*` stands for every direction."""
    for old, new in names:
        for direction in DIRECTIONS if "*" in old else [""]:
            source, target = direction.split("-") if direction else ("", "")
            path = folders / new.replace("*", direction).replace("SRC", source).replace("TGT", target)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes((folders / old.replace("*", direction).replace("TGT", target)).read_bytes())


@pytest.mark.parametrize(
    ("copies", "system"),
    [
        ([("base/*.hyp", "out/ref.*"), ("base/*.hyp", "out/*.hyp")], "out"),  # all in one folder
        ([("base/*.hyp", "out/ref.*"), ("base/*.hyp", "out/*.TGT"), ("wide/*.hyp", "out/*.SRC")], "out"),
        ([("base/*.hyp", "out/*.txt")], "base"),
        ([("base/*.hyp", "out/test.*.TGT"), ("wide/*.hyp", "out/test.*.SRC")], "base"),
        ([("base/*.hyp", "out/*.ref"), ("wide/*.hyp", "out/*.src")], "base"),
    ],
)
def test_layouts(copies, system, folders, capsys):
    """The references are what the system `base` put out, so that it has all the points."""
    rename(folders, copies)
    printed, _ = run(capsys, system, "--ref", "out")
    (line,) = (line for line in printed.splitlines() if line.startswith("all together "))
    assert line.split() == ["all", "together", "360", "100.0", "100.0"]


@pytest.mark.parametrize(
    ("copies", "name"),
    [
        ([("base/*.hyp", "sources/*.src"), ("base/*.hyp", "sources/*.ref")], "{direction}.src"),
        ([("base/*.hyp", "sources/test.*.SRC"), ("base/*.hyp", "sources/test.*.TGT")], "test.{direction}.{source}"),
        ([(f"refs/devtest.{language}", f"sources/{language}.txt") for language in LANGUAGES], "{source}.txt"),
    ],
)
def test_layouts_of_sources(copies, name, folders):
    rename(folders, copies)
    found = find_files({"base": "base"}, ["refs"], "sources")
    assert sorted(found) == sorted(DIRECTIONS)
    for direction, (files, references, source) in found.items():
        languages = dict(zip(("source", "target"), direction.split("-"), strict=True))
        assert files == {"base": f"base/{direction}.hyp"}
        assert references == [f"refs/devtest.{languages['target']}"]
        assert source == f"sources/{name.format(direction=direction, **languages)}"


def test_everything_that_is_missing_at_once(folders, capsys):
    (folders / "base" / "de-en.hyp").unlink()
    (folders / "wide" / "de-th.hyp").unlink()
    (folders / "wide" / "en-th.hyp").unlink()
    (folders / "refs" / "devtest.de").unlink()
    write(folders / "wide" / "th-en.2.hyp", sentences(LINES))
    printed, errors = run(capsys, "base", "wide", "--ref", "refs", "--metrics", "bleu", "rouge", status=2)
    assert printed == ""
    assert sorted(error.removeprefix("owf evaluate: error: ") for error in errors.splitlines()) == [
        "`--metrics` must be of bleu, chrf, spbleu, comet, but is 'rouge' (hypotheses go before the flags, or after "
        "`--`)",
        "th-en: the system wide (wide) must have one file, but has wide/th-en.2.hyp and wide/th-en.hyp",
        "the reference (refs) lacks 2 of 6 directions: en-de, th-de",
        "the system base (base) lacks 1 of 6 directions: de-en",
        "the system wide (wide) lacks 2 of 6 directions: de-th, en-th",
    ]


def test_json_replaces_no_text(folders, capsys):
    for file in ("base/de-en.hyp", "wide/de-en.hyp", "refs/devtest.en"):
        flags = ["--ref", "refs", "--baseline", "wide", "--json", file, "--overwrite"]
        _, errors = run(capsys, "base", *flags, status=2)
        assert errors == f"owf evaluate: error: `--json` {file} is the input {file}: name another file\n"
    for _ in range(2):  # what it has made in a system's folder is none of the texts
        run(capsys, "base", "--ref", "refs", "--json", "base/scores.json")


def test_references_that_no_system_has(folders, capsys):
    rename(folders, [("refs/devtest.de", "refs/fr-de.ref")])
    _, errors = run(capsys, "base", "--ref", "refs", status=2)
    assert "the system base (base) lacks 1 of 7 directions: fr-de" in errors


def test_hypotheses_are_not_taken_for_references(folders, capsys):
    _, errors = run(capsys, "base", "--ref", "base", status=2)
    assert "the reference (base) lacks 6 of 6 directions" in errors


def test_a_tokenizer_that_one_direction_lacks(folders, capsys, monkeypatch):
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    rename(folders, [("base/de-en.hyp", "base/de-ja.hyp"), ("refs/devtest.en", "refs/devtest.ja")])
    printed, errors = run(capsys, "base", "--ref", "refs", status=2)
    assert printed == ""
    assert errors.startswith("owf evaluate: error: BLEU for the language ja needs sacreBLEU's tokenizer ja-mecab")


def test_lengths_of_all_directions(folders, capsys):
    write(folders / "base" / "de-en.hyp", sentences(LINES - 1))
    write(folders / "base" / "de-th.hyp", [])
    _, errors = run(capsys, "base", "--ref", "refs", status=2)
    assert "base/de-en.hyp has 59 lines, but refs/devtest.en has 60" in errors
    assert "base/de-th.hyp is empty" in errors


def test_what_is_no_folder_of_directions(folders, capsys):
    _, errors = run(capsys, "base/de-en.hyp", "nowhere", "--ref", "refs", status=2)
    assert "base/de-en.hyp can't be read as a folder: Not a directory" in errors
    assert "nowhere can't be read as a folder: No such file or directory" in errors
    _, errors = run(capsys, "refs", "--ref", "refs", status=2)
    assert "refs: no file's name has a direction in it, as `en-de.hyp` has" in errors
    _, errors = run(capsys, "base", "--ref", "refs", "--baseline", "wid", status=2)
    assert errors == "owf evaluate: error: `--baseline` wid is neither a folder nor one of the systems: base\n"
    _, errors = run(capsys, "base", "--ref", "refs", "--target-lang", "de", status=2)
    assert "`--target-lang` does not go with `--directions`: each direction has its own" in errors
