"""What looks wrong with texts is said in a line that names the file and the lines, and nothing is said of good ones."""

import pytest
from evaluation_for_tests import WMT22, evaluate, needs_wmt22, sentences, spoil, write

SOURCE = sentences(40, seed=9)
REFERENCE = sentences(40)
HYPOTHESIS = spoil(REFERENCE, 0.4, seed=2)


def tokenised(lines):
    return [line.removesuffix(".") + " ." for line in lines]


def some(lines, change, every=4):
    """Every fourth line changed, from the first on."""
    return [change(line) if number % every == 0 else line for number, line in enumerate(lines)]


@pytest.fixture
def warnings_of(tmp_path, monkeypatch, capsys):
    """Runs the command on texts, and returns its warnings; it must score all the same."""
    monkeypatch.chdir(tmp_path)

    def run(hypothesis=HYPOTHESIS, reference=REFERENCE, source=SOURCE, *, files=("hyp.de", "ref.de"), flags=()):
        for name, lines in zip((*files, "src.en"), (hypothesis, reference, source), strict=True):
            write(tmp_path / name, lines)
        printed, errors = evaluate(capsys, files[0], "--ref", files[1], "--src", "src.en", *flags)
        assert "40 segments" in printed
        start = "owf evaluate: warning: "
        lines = errors.splitlines()
        assert all(line.startswith(start) for line in lines)
        return [line.removeprefix(start) for line in lines]

    return run


def test_good_texts(warnings_of):
    assert warnings_of() == []


@pytest.mark.parametrize(
    ("texts", "warning"),
    [
        (
            {"hypothesis": REFERENCE},
            "hyp.de: 100% of the lines are those of the reference ref.de: is a reference given as a hypothesis?",
        ),
        (
            {"files": ("ref.A.de", "hyp.Big.de")},
            "hyp.Big.de is given as the reference, ref.A.de as a hypothesis: are they swapped?",
        ),
        (
            {"reference": some(REFERENCE, lambda line: f"{line} <unk>")},
            "ref.de: unknown words (`<unk>` or `⁇`) in 10 of 40 lines (1, 5, 9, 13, 17, ...): the hypotheses have "
            "hardly any: are the reference and a hypothesis swapped?",
        ),
        (
            {"source": REFERENCE},
            "ref.de: 100% of the lines are those of the source src.en: is that the file to give as the reference, or "
            "was it not translated?",
        ),
        (
            {"hypothesis": [*SOURCE[:12], *HYPOTHESIS[12:]]},
            "hyp.de: 30% of the lines are those of the source src.en: is that the file to give as a hypothesis, or was "
            "it not translated?",
        ),
        (
            {"hypothesis": tokenised(HYPOTHESIS)},
            "hyp.de: a space before a full stop or a comma in 40 of 40 lines (1, 2, 3, 4, 5, ...): detokenise: scores "
            "are defined on plain text",
        ),
        (
            {"hypothesis": some(HYPOTHESIS, lambda line: line.replace(" ", "@@ ", 1), every=39)},
            "hyp.de: marks of subword pieces (`@@ ` or `▁`) in 2 of 40 lines (1, 40): join the pieces: scores are "
            "defined on plain text",
        ),
        (
            {"hypothesis": ["▁" + line.replace(" ", " ▁") for line in HYPOTHESIS]},
            "hyp.de: marks of subword pieces (`@@ ` or `▁`) in 40 of 40 lines (1, 2, 3, 4, 5, ...): join the pieces: "
            "scores are defined on plain text",
        ),
        (
            {"hypothesis": some(HYPOTHESIS, lambda line: line.replace(" ", " &quot; ", 1))},
            "hyp.de: marks of Moses' tokeniser (`@-@`, `&apos;`, `&quot;`) in 10 of 40 lines (1, 5, 9, 13, 17, ...): "
            "detokenise: scores are defined on plain text",
        ),
        (
            {"hypothesis": some(HYPOTHESIS, lambda line: line.replace(" ", " ⁇ ", 1), every=30)},
            "hyp.de: unknown words (`<unk>` or `⁇`) in 2 of 40 lines (1, 31): the system's vocabulary lacks characters "
            "of the text; every metric counts the mark as wrong",
        ),
        (
            {"hypothesis": tokenised(HYPOTHESIS), "reference": tokenised(REFERENCE)},
            "ref.de: a space before a full stop or a comma in 40 of 40 lines (1, 2, 3, 4, 5, ...): a reference must be "
            "plain text",
        ),
        (
            {"reference": ["", *REFERENCE[1:6], " \t", *REFERENCE[7:]]},
            "ref.de: nothing in 2 of 40 lines (1, 7): a hypothesis can only lose there",
        ),
        (
            {"hypothesis": ["", *HYPOTHESIS[1:]]},
            "hyp.de: nothing in 1 of 40 lines (1): they count as wrong",
        ),
    ],
)  # fmt: skip
def test_one_warning(texts, warning, warnings_of):
    assert warnings_of(**texts) == [warning]


OTHER = [line.translate(str.maketrans("aeioust", "yäöümpq")) for line in SOURCE]
"""In another language than the made-up sentences; no two texts share more than what any two languages do."""


def test_swapped_source_and_reference(warnings_of):
    hypothesis = spoil(REFERENCE, 0.4, seed=2)
    assert warnings_of(hypothesis, REFERENCE, OTHER) == []
    (warning,) = warnings_of(hypothesis, OTHER, REFERENCE)
    assert warning.startswith("hyp.de: much closer to the source src.en (chrF ")
    assert warning.endswith("it looks as if `--src` and `--ref` are swapped, or nothing was translated")
    # an untranslated text is told of once
    (warning,) = warnings_of(OTHER, REFERENCE, OTHER)
    assert "much closer to the source" in warning


def test_languages_that_share_much_text(warnings_of):
    """A system that leaves much as it is, between languages such as Norwegian's two."""
    source = spoil(REFERENCE, 0.5, seed=3)
    assert warnings_of(spoil(source, 0.3, seed=4), REFERENCE, source) == []


def test_one_system_of_two_that_does_not_translate(tmp_path, monkeypatch, capsys):
    """Were the files swapped, it would be all of them."""
    monkeypatch.chdir(tmp_path)
    texts = {"src.en": OTHER, "ref.de": REFERENCE, "good.de": HYPOTHESIS, "bad.de": [line + " x" for line in OTHER]}
    for name, lines in texts.items():
        write(tmp_path / name, lines)
    assert evaluate(capsys, "good.de", "bad.de", "--ref", "ref.de", "--src", "src.en")[1] == ""


@needs_wmt22
def test_real_texts_that_are_swapped(capsys, monkeypatch):
    monkeypatch.chdir(WMT22)
    flags = ["--ref", "src.en", "--src", "ref.A.de", "--metrics", "chrf"]
    _, errors = evaluate(capsys, "hyp.OpenNMT.de", "hyp.PROMT.de", *flags)
    assert errors == (
        "owf evaluate: warning: hyp.OpenNMT.de, hyp.PROMT.de: much closer to the source ref.A.de (chrF 63) than to "
        "src.en (24): it looks as if `--src` and `--ref` are swapped, or nothing was translated\n"
    )


def test_marks_that_the_references_have_too(warnings_of):
    escaped = some(REFERENCE, lambda line: line.replace(" ", " &quot; ", 1), every=39)
    assert not any(
        warning.startswith("hyp.de")
        for warning in warnings_of(some(HYPOTHESIS, lambda line: line + "&quot;", every=39), escaped)
    )


def test_numbers_and_names_are_no_copies_of_the_source(warnings_of):
    numbers = [f"{number} %" for number in range(30)]
    assert warnings_of([*numbers, *HYPOTHESIS[30:]], [*numbers[:1], *REFERENCE[1:]], [*numbers, *SOURCE[30:]]) == []


def test_text_without_spaces_wants_its_language(warnings_of):
    chinese = [line.replace(" ", "") for line in spoil(["他 在 红 房子 里 看 书 。"] * 40, 0, seed=1)]
    hypothesis = [line.replace("书", "报") for line in chinese]
    (warning,) = warnings_of(hypothesis, chinese)
    assert warning == (
        "ref.de looks like text without spaces between words, which BLEU's tokenizer 13a takes for long words: name "
        "the language, as in `--target-lang zh`"
    )
    assert warnings_of(hypothesis, chinese, flags=("--target-lang", "zh")) == []
    assert warnings_of(hypothesis, chinese, flags=("--metrics", "chrf")) == []
