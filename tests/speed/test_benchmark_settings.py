"""What is decoded in each row: random sentences with targets of one length, or the lines of a text."""

from types import SimpleNamespace

import pytest

from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.errors import InputError
from owf_fairseq.speed.options import BenchmarkOptions
from owf_fairseq.speed.workloads import random_settings, text_settings

WORDS = [f"w{number}" for number in range(30)]


def make_backend(symbols=WORDS, encode=str.upper, max_source_length=5):
    def segmentation(other=None):
        return SimpleNamespace(encode=encode if other is None else str.lower)

    return SimpleNamespace(source_symbols=symbols, segmentation=segmentation, max_source_length=max_source_length)


def test_random_sentences_have_targets_of_one_length():
    options = BenchmarkOptions(lengths=((3, 4), (9, 8)), batch_sizes=(1, 4), sentences=6, beam=3)
    settings = random_settings([make_backend(), make_backend()], options, pytest.fail)
    assert [(setting.lengths, setting.batch_size) for setting in settings] == [
        *(((3, 4), 1), ((3, 4), 4), ((9, 8), 1), ((9, 8), 4)),
    ]
    for setting in settings:
        source, target = setting.lengths
        assert setting.options == SearchOptions(beam=3, max_len_a=0, max_len_b=target, min_len=target)
        assert setting.options.cap(source) == setting.options.cap(100) == target
        first, second = setting.batches
        assert first == second
        assert {len(batch) for batch in first} == {setting.batch_size}
        assert len(first) == (6 if setting.batch_size == 1 else 2)
        assert {len(sentence) for batch in first for sentence in batch} == {source}


def test_different_vocabularies_are_told():
    told = []
    [setting] = random_settings([make_backend(), make_backend(["a", "b"])], BenchmarkOptions(sentences=2), told.append)
    assert len(told) == 1
    assert "different vocabularies" in told[0]
    assert {piece for batch in setting.batches[1] for sentence in batch for piece in sentence} <= {"a", "b"}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text"
    path.write_text("a b c\n\nd\n \ne f\n1 2 3 4 5 6\ng h i j\n", encoding="utf-8")
    return str(path)


def test_text_without_blank_and_long_lines(text):
    told = []
    models = [make_backend(), make_backend(max_source_length=50)]
    settings = text_settings(models, BenchmarkOptions(input=text, batch_sizes=(1, 3), beam=2), told.append)
    assert told == ["3 of 7 lines are blank or too long for a model, and are left out"]
    for setting, sizes in zip(settings, ([1, 1, 1, 1], [3, 1]), strict=True):
        assert setting.lengths is None
        assert setting.options == SearchOptions(beam=2)
        assert setting.batches[0] == setting.batches[1]
        assert [len(batch) for batch in setting.batches[0]] == sizes
        assert [piece for batch in setting.batches[0] for sentence in batch for piece in sentence] == [*"DEFABCGHIJ"]


def test_text_in_another_segmentation(text):
    [setting] = text_settings([make_backend()], BenchmarkOptions(input=text, segmentation="none", sentences=1), str)
    assert setting.batches == [[[["a", "b", "c"]]]]


def test_first_lines_of_the_text(text):
    [setting] = text_settings([make_backend()], BenchmarkOptions(input=text, sentences=3), str)
    assert setting.batches == [[[["D"]], [["A", "B", "C"]]]]


def test_different_pieces_are_told(text):
    told = []
    letters = make_backend(encode=lambda line: " ".join(line.replace(" ", "_")), max_source_length=50)
    text_settings([make_backend(), letters], BenchmarkOptions(input=text), told.append)
    assert "different pieces" in told[1]


def test_text_without_a_line_that_can_be_translated(text):
    with pytest.raises(InputError, match="has no line with 1 to 0 pieces"):
        text_settings([make_backend(max_source_length=0)], BenchmarkOptions(input=text), str)


def test_batches_of_pieces(text):
    """Full, but for what is left over; no batch has more with padding and ends of sentences."""
    options = BenchmarkOptions(input=text, max_tokens=8, beam=1)
    [setting] = text_settings([make_backend(), make_backend(encode=str.lower)], options, lambda text: None)
    assert (setting.batch_size, setting.max_tokens) == (None, 8)
    assert setting.batches == [
        [[["D"]], [["A", "B", "C"], ["E", "F"]], [["G", "H", "I", "J"]]],
        [[["d"]], [["a", "b", "c"], ["e", "f"]], [["g", "h", "i", "j"]]],
    ]
    # where models cut the text differently, the longer pieces count: here of one sentence, five more than the other's
    padded = make_backend(
        encode=lambda line: line + (" x x x x x" if line.startswith("e") else ""), max_source_length=9
    )
    [setting] = text_settings([make_backend(), padded], options, lambda text: None)
    assert [len(batch) for batch in setting.batches[0]] == [2, 1, 1]
    assert [len(batch) for batch in setting.batches[1]] == [2, 1, 1]
    assert len(setting.batches[1][2][0]) == 7
    [random] = random_settings([make_backend()], BenchmarkOptions(lengths=((3, 4),), max_tokens=9, sentences=5), str)
    assert [len(batch) for batch in random.batches[0]] == [2, 2, 2]
    assert (random.batch_size, random.max_tokens, random.words) == (None, 9, None)


def test_words_are_those_of_the_text_that_is_translated(text):
    """Neither of blank lines nor of those that are too long; and whatever the pieces."""
    halves = make_backend(encode=lambda line: " ".join(f"{word}_ _" for word in line.split()), max_source_length=7)
    [setting] = text_settings([halves], BenchmarkOptions(input=text), lambda text: None)
    assert setting.words == 3 + 1 + 2
    assert setting.source_length(0) == 2 * 6 / 3
