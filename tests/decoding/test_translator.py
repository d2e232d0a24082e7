"""Batches, and the lines that are put together of several parts; with a backend that only repeats its input."""

import io
import time

import pytest

from owf_fairseq.data.segmentation import NoSegmentation
from owf_fairseq.decoding.search import Hypothesis
from owf_fairseq.decoding.translator import Batching, Translator
from owf_fairseq.errors import InputError
from owf_fairseq.progress import Progress


class Echo:
    """A backend whose second-best translation is in capitals."""

    name = "echo"
    max_source_length = max_target_length = 20
    source_symbols = ()

    def __init__(self):
        self.batches = []

    def search(self, batch, options):
        self.batches.append([len(pieces) for pieces in batch])
        return [
            [
                Hypothesis(tuple(pieces), -1.0, -1.0 * (len(pieces) + 1)),
                Hypothesis(tuple(piece.upper() for piece in pieces), -2.0, -2.0 * (len(pieces) + 1)),
            ]
            for pieces in batch
        ]

    def synchronize(self):
        pass


def translator(target="de", **settings):
    return Translator(Echo(), NoSegmentation("en", target), **settings)


def test_batches_hold_every_sentence_once_and_are_as_full_as_allowed():
    lengths = [3, 9, 1, 4, 4, 2, 9, 30]
    for batching in (Batching(20), Batching(20, 2), Batching(1000), Batching(1000, 1), Batching(1)):
        batches = list(batching.batches(lengths))
        assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
        assert [lengths[n] for batch in batches for n in batch] == sorted(lengths, reverse=True)
        for batch in batches:
            assert len(batch) == 1 or len(batch) * (max(lengths[n] for n in batch) + 1) <= batching.max_tokens
            assert len(batch) <= (batching.max_sentences or len(lengths))
    assert [len(batch) for batch in Batching(20).batches([4] * 10)] == [4, 4, 2]
    assert list(Batching().batches([])) == []


def test_several_searches_at_the_same_time_give_the_same():
    lines = [" ".join("abcdefgh"[: 1 + n % 7]) + f" {n}" for n in range(50)]
    one, three = (translator(batching=Batching(20), searches=searches) for searches in (1, 3))
    assert list(three.translate(lines)) == list(one.translate(lines))
    assert sorted(three.backend.batches) == sorted(one.backend.batches)


def test_an_error_ends_all_searches():
    one = translator(batching=Batching(1), searches=2)

    def search(batch, options, searching=one.backend.search):
        if batch[0] == ["5"]:
            raise KeyboardInterrupt
        time.sleep(0.005)  # all of them would take five seconds: the error is seen long before
        return searching(batch, options)

    one.backend.search = search
    with pytest.raises(KeyboardInterrupt):
        list(one.translate(map(str, range(2000))))
    assert len(one.backend.batches) < 1000  # what waits for its turn is not begun


@pytest.mark.parametrize(("target", "joint"), [("de", " "), ("zh", ""), ("zh_Hans", ""), ("ja", ""), ("ko", " ")])
def test_parts_are_joined_as_the_language_writes(target, joint):
    warnings = []
    one = translator(target, max_source_length=8, warn=warnings.append, name="file")
    long = "a b c d e f g h i j. k l."
    assert [found[0].text for found in one.translate(["x", long, "", "y"])] == [
        "x", "a b c d e f g h" + joint + "i j." + joint + "k l.", "", "y"
    ]  # fmt: skip
    assert warnings == ["file, line 2: 12 pieces, more than 8: translated in 3 parts"]


def test_scores_of_parts_are_those_of_one_sentence():
    one = translator(max_source_length=8)
    (found,) = one.translate(["a b c d e f g h i j"])
    assert [scored.score for scored in found] == [-1.0, -2.0]
    assert found[1].text == "A B C D E F G H I J"


def test_translations_of_a_line_in_parts_are_given_best_first():
    one = translator(max_source_length=8)

    def search(batch, options):
        # the long part's second-best has the better mean: what is last in one part is not last in the line
        scores = {8: [(-0.5, 10), (-0.51, 100)], 2: [(-0.1, 10), (-0.11, 1000)]}
        return [
            [Hypothesis(("x",) * (n - 1), score, score * n) for score, n in scores[len(pieces)]] for pieces in batch
        ]

    one.backend.search = search
    (found,) = one.translate(["a b c d e f g h i j"])
    assert [scored.score for scored in found] == sorted((scored.score for scored in found), reverse=True)
    assert found[0].score == pytest.approx((-0.51 * 100 - 0.11 * 1000) / 1100)


def test_buffers_come_one_after_the_other():
    one = translator(batching=Batching(buffer=2))
    results = one.translate([f"{n}" for n in range(5)])
    assert next(results)[0].text == "0"
    assert one.backend.batches == [[1, 1]]
    assert [found[0].text for found in results] == ["1", "2", "3", "4"]


def test_warnings_name_the_line_of_the_whole_input():
    warnings = []
    one = translator(batching=Batching(buffer=2), long_lines="blank", warn=warnings.append)
    assert [found[0].text for found in one.translate(["a", "b", "c", "d " * 30])] == ["a", "b", "c", ""]
    assert warnings == ["input, line 4: 30 pieces, more than 20: left blank"]


def test_all_problems_of_the_settings_together():
    with pytest.raises(InputError) as caught:
        translator(max_source_length=21, batching=Batching(0, 0, 0))
    assert len(caught.value.problems) == 4


def test_progress_counts_lines_and_tokens():
    stream = io.StringIO()
    lines = ["a b", "", "c " * 30, "d"]
    with Progress("sentences", len(lines), stream, seconds=0) as progress:
        list(translator(batching=Batching(max_sentences=1)).translate(lines, progress))
    assert progress.done == 4
    last = stream.getvalue().splitlines()[-1]
    assert last.startswith("4 of 4 sentences after ")
    assert last.endswith(" tokens/s")
