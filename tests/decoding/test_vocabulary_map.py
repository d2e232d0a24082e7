"""A shortlist's file: written, read, refused, and what CTranslate2 makes of it."""

import math

import pytest
import torch
from fairseq import models
from models_for_tests import make_task, parse

from owf_fairseq.decoding.ctranslate2_backend import CTranslate2Backend
from owf_fairseq.decoding.forced import log_probabilities, numbers, of_tokens
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.decoding.vocabulary_map import VOCABULARY_MAP, VocabularyMap
from owf_fairseq.errors import InputError
from owf_fairseq.export.export import write_model

SHORTLIST = VocabularyMap(
    frozenset({"w1", "w2", "w3"}),
    {"w4": ("w10", "w11"), "w5": ("w12",), "w4 w5": ("w20", "w21"), "w4 w5 w6": ("w30",), "</s>": ("w31",)},
)


def test_what_is_written_is_read(tmp_path):
    SHORTLIST.write(tmp_path / "map")
    found = VocabularyMap.read(tmp_path / "map")
    assert found.by_source == SHORTLIST.by_source
    assert found.always == SHORTLIST.always | {"<unk>", "<s>", "</s>"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("\ta b\nc d\n", "line 2: not SOURCE <tab> TARGET"),
        ("\ta b\nc\td\te\n", "line 2: not SOURCE <tab> TARGET"),
        ("a\tb\n\tc\na\td\n", "line 3: there is a line before for 'a'"),
        ("\tb\n\tc\n", "line 2: there is a line before for 'any translation'"),
        ("a\tb\n", "has no line of what any translation may have"),
        ("", "has no line of what any translation may have"),
    ],
)
def test_what_is_no_shortlist(content, problem, tmp_path):
    (tmp_path / "map").write_text(content)
    with pytest.raises(InputError, match=problem):
        VocabularyMap.read(tmp_path / "map")


def random_model():
    """Always the same one; layer norms are not quite ones and zeros, so that it ends some of its sentences."""
    torch.manual_seed(3)
    model = models.build_model(parse("owf_tiny_no_dec", "--share-all-embeddings"), make_task(100))
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            torch.nn.init.normal_(weight, 1.0 if "norm" in name and name.endswith("weight") else 0.0, 0.01)
    return model.eval()


@pytest.fixture(scope="module")
def model():
    """The model and its dictionary."""
    return random_model(), make_task(100).source_dictionary


@pytest.fixture(scope="module")
def backend(model, tmp_path_factory):
    """The model in a folder with the shortlist."""
    folder = tmp_path_factory.mktemp("exported")
    flags = {"model": {"arch": "owf_tiny_no_dec"}}
    write_model(random_model(), (model[1], model[1]), folder, "float32", flags, ("a", "b"))  # it changes the weights
    SHORTLIST.write(folder / VOCABULARY_MAP)
    return CTranslate2Backend(folder, cpu=True, threads=1)


SOURCES = [["w4", "w5", "w6"], ["w5", "w4"], ["w4"], ["w8", "w7"], ["w4", "w4", "w5"], ["zzz", "w5"]]
OPTIONS = SearchOptions(beam=5, nbest=5, min_len=0, lenpen=0)  # short ones win, and end


@pytest.mark.parametrize("source", SOURCES, ids=" ".join)
def test_ctranslate2_allows_what_is_looked_up(source, backend):
    """The first symbol of a translation can be each of them, and no other."""
    allowed = backend.shortlist.candidates(source)
    results = backend.translator.translate_batch(
        [source], beam_size=len(allowed), num_hypotheses=len(allowed), max_decoding_length=1, return_end_token=True,
        min_decoding_length=0, use_vmap=True,
    )  # fmt: skip
    assert {pieces[0] for pieces in results[0].hypotheses} == allowed


@pytest.mark.parametrize("source", SOURCES[:5], ids=" ".join)
def test_probabilities_are_normalised_over_the_shortlist(source, backend, model):
    outside = torch.ones(100, dtype=torch.bool)
    outside[[model[1].index(symbol) for symbol in backend.shortlist.candidates(source)]] = False
    (found,) = backend.search([source], OPTIONS)
    ended = [one for one in found if len(one.pieces) < OPTIONS.cap(len(source))]
    assert ended
    for one in ended:
        pair = numbers(model[1], source), numbers(model[1], one.pieces)
        restricted = log_probabilities(model[0], *pair).masked_fill(outside, -torch.inf).log_softmax(-1)
        assert one.log_probability == pytest.approx(of_tokens(restricted, pair[1]).sum().item(), abs=1e-4)


def test_the_sentences_of_a_batch_share_their_symbols(backend):
    found = backend.search([["w4"], ["w8"]], SearchOptions(beam=5, nbest=5, max_len_a=0, max_len_b=6, min_len=6))
    both = backend.shortlist.candidates(["w4"]) | backend.shortlist.candidates(["w8"])
    assert {piece for hypotheses in found for one in hypotheses for piece in one.pieces} <= both


def test_a_beam_wider_than_the_shortlist(backend):
    """CTranslate2 would fill it up with copies of impossible hypotheses."""
    (found,) = backend.search([["w8"]], SearchOptions(beam=20, nbest=20, min_len=0))
    assert len(found) == 5
    assert all(math.isfinite(one.score) and one.score > -1e3 for one in found)


def test_without_the_shortlist(backend):
    (with_it,), (without,) = (one.search([["w8"]], OPTIONS) for one in (backend, backend.without_shortlist()))
    allowed = backend.shortlist.candidates(["w8"])
    assert all(set(one.pieces) <= allowed for one in with_it)
    assert not all(set(one.pieces) <= allowed for one in without)
    other = CTranslate2Backend(backend.exported.folder, cpu=True, threads=1, use_shortlist=False)
    assert [one.pieces for one in other.search([["w8"]], OPTIONS)[0]] == [one.pieces for one in without]
