"""CTranslate2's search gives what fairseq's does: hypotheses, scores, lengths; for many clients at a time."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fairseq_for_tests import REPOSITORY, text_sentences

from owf_fairseq.decoding.ctranslate2_backend import CTranslate2Backend
from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.decoding.translator import Translator
from owf_fairseq.files.lines import read_lines

WMT22 = REPOSITORY.parent / "shared/data/wmt22-en-de/src.en"


@pytest.fixture(scope="module")
def backends(copier, exported_copier):
    """The same model, decoded by both programs."""
    return FairseqBackend.from_checkpoint(str(copier), cpu=True), CTranslate2Backend(exported_copier, cpu=True)


@pytest.fixture(scope="module")
def sources(backends):
    """Sentences of which some are unlike what the model knows, so that hypotheses differ in length and score."""
    segmentation = backends[0].segmentation()
    lines = [*text_sentences(30, seed=9), "door", "lamp lamp lamp lamp", "the the", "opens. opens. opens.", "xyz ?!"]
    return [segmentation.encode(line).split() for line in lines]


def test_both_say_what_they_are(backends, exported_copier):
    theirs, ours = backends
    assert (ours.name, ours.precision, ours.device_name) == ("ctranslate2", "float32", "CPU")
    assert (ours.max_source_length, ours.max_target_length) == (theirs.max_source_length, theirs.max_target_length)
    assert ours.source_symbols == theirs.source_symbols
    line = "the lamp opens the door."
    assert ours.segmentation().encode(line) == theirs.segmentation().encode(line)
    assert ours.segmentation("none").encode("a b") == "a b"


@pytest.mark.parametrize("lenpen", [0.0, 0.6, 1.0, 2.0])
def test_the_best_hypotheses_are_fairseqs(backends, sources, lenpen):
    options = SearchOptions(lenpen=lenpen, nbest=5)
    theirs, ours = (backend.search(sources, options) for backend in backends)
    for one, other in zip(theirs, ours, strict=True):
        assert other[0].pieces == one[0].pieces
        # CTranslate2 rules out an empty hypothesis before it normalises, and not after
        assert other[0].score == pytest.approx(one[0].score, abs=1e-2)
        assert len(other) == 5
        scores = [hypothesis.score for hypothesis in other]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in other:
            length = len(hypothesis.pieces) + 1
            assert hypothesis.score == pytest.approx(hypothesis.log_probability / length**lenpen, abs=1e-6)


def test_a_batch_is_its_sentences(backends, sources):
    _, ours = backends
    options = SearchOptions(nbest=3, max_len_a=0.9, max_len_b=2)
    together = ours.search(sources, options)
    at_the_cap = set()
    for source, found in zip(sources, together, strict=True):
        (alone,) = ours.search([source], options)
        assert [one.pieces for one in found] == [one.pieces for one in alone]
        assert [one.score for one in found] == pytest.approx([one.score for one in alone], abs=1e-5)
        assert max(len(one.pieces) for one in found) <= options.cap(len(source))
        at_the_cap.add(len(found[0].pieces) == options.cap(len(source)))
    assert at_the_cap == {True, False}


@pytest.mark.parametrize("length", [0, 1, 9])
def test_the_length_can_be_fixed(backends, sources, length):
    options = SearchOptions(max_len_a=0, max_len_b=length, min_len=length, nbest=2)
    found = backends[1].search(sources, options)
    assert {len(one.pieces) for hypotheses in found for one in hypotheses} == {length}
    assert all(math.isfinite(one.score) for hypotheses in found for one in hypotheses)


def test_a_beam_larger_than_the_vocabulary(backends, sources):
    theirs, ours = (backend.search(sources[:2], SearchOptions(beam=500)) for backend in backends)
    assert [one[0].pieces for one in ours] == [one[0].pieces for one in theirs]


def test_padding_is_never_written_and_sources_are_not_cut(backends, sources, monkeypatch):
    given = {}
    translate = backends[1].translator.translate_batch

    class Recorded:
        def translate_batch(self, batch, **options):
            given.update(options)
            return translate(batch, **options)

    monkeypatch.setattr(backends[1], "translator", Recorded())
    backends[1].search(sources[:1], SearchOptions())
    assert given["suppress_sequences"] == [["<pad>"]]
    assert given["max_input_length"] == 0  # by default CTranslate2 cuts longer sources in silence


def in_threads(work, number):
    """What each of so many threads gets that begin together."""
    barrier = threading.Barrier(number)

    def one(n):
        barrier.wait()
        return work(n)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


def test_searches_on_all_cores(exported_copier, monkeypatch):
    monkeypatch.setattr("owf_fairseq.decoding.ctranslate2_backend.cores", lambda: 3)
    one = CTranslate2Backend(exported_copier, cpu=True, searches=0)
    assert (one.searches, one.threads, one.translator.num_translators) == (3, 1, 3)
    other = CTranslate2Backend(exported_copier, cpu=True)
    assert (other.searches, other.threads, other.translator.num_translators) == (1, 0, 1)


def test_many_clients_get_what_one_gets(exported_copier):
    if not WMT22.exists():
        pytest.skip("the WMT22 test set is not there (../shared/data/wmt22-en-de/src.en)")
    lines = read_lines(WMT22)
    backend = CTranslate2Backend(exported_copier, cpu=True, threads=1, searches=2)
    translator = Translator(backend, backend.segmentation(), SearchOptions(beam=2, max_len_a=0.6))

    def translated(some):
        return [(found[0].text, found[0].score) for found in translator.translate(some)]

    expected = translated(lines)
    assert len(expected) == len(lines) == 2037
    assert len({round(score, 5) for _, score in expected}) > 1000  # so that a mixed-up line would be seen
    # four clients, each with a part of the test set, at the same time, while a fifth translates its start
    shares = [lines[n::4] for n in range(4)] + [lines[:100]]
    wanted = [expected[n::4] for n in range(4)] + [expected[:100]]
    for found, own in zip(in_threads(lambda n: translated(shares[n]), 5), wanted, strict=True):
        assert [text for text, _ in found] == [text for text, _ in own]
        assert [score for _, score in found] == pytest.approx([score for _, score in own], abs=1e-5)
