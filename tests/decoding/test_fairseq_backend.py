"""The search: every sentence's own length cap, hypotheses and scores, devices."""

import math
import random

import pytest
import torch
from models_for_tests import TINY_ARCHS

from owf_fairseq.decoding.fairseq_backend import FairseqBackend, choose_device
from owf_fairseq.decoding.search import SearchOptions
from owf_fairseq.errors import InputError
from owf_fairseq.sharing import ARCHS

ONE_STACK = sorted(arch for arch in ARCHS if ARCHS[arch][0] == "decoder_only_tiny")


def sources(backend, number=12):
    generator = random.Random(1)
    return [generator.choices(backend.source_symbols, k=generator.randint(1, 14)) for _ in range(number)]


@pytest.mark.parametrize("arch", [*TINY_ARCHS, *ONE_STACK])
def test_a_batch_gives_what_its_sentences_give_alone(arch):
    backend = FairseqBackend.from_arch(arch, 60, cpu=True)
    batch = sources(backend, 6)
    options = SearchOptions(beam=3, nbest=3, max_len_a=0.5, max_len_b=1)
    together = backend.search(batch, options)
    for source, found in zip(batch, together, strict=True):
        (alone,) = backend.search([source], options)
        assert [one.pieces for one in found] == [one.pieces for one in alone]
        assert [one.score for one in found] == pytest.approx([one.score for one in alone], abs=1e-4)
        assert max(len(one.pieces) for one in found) <= options.cap(len(source))
    # random weights would write on for ever: so each cap was reached
    assert {len(found[0].pieces) for found in together} == {options.cap(len(source)) for source in batch}


def test_a_sentence_that_may_have_no_piece_beside_one_that_may():
    backend = FairseqBackend.from_arch("owf_tiny", 60, cpu=True)
    options = SearchOptions(nbest=5, max_len_a=0.4, max_len_b=0, min_len=0)
    batch = [["w1"], ["w2"] * 9]
    (none,), (alone,), together = (
        *(backend.search([source], options) for source in batch),
        backend.search(batch, options),
    )
    assert [len(one.pieces) for one in none] == [len(one.pieces) for one in together[0]] == [0]
    assert [one.pieces for one in together[1]] == [one.pieces for one in alone]


@pytest.mark.parametrize("arch", ["owf_tiny", "owf_decoder_only_tiny"])
def test_sentences_some_of_whose_hypotheses_end_before_the_cap(arch):
    backend = FairseqBackend.from_arch(arch, 60, cpu=True)
    (model,), eos = backend.models, backend.target.eos()
    normalized = model.get_normalized_probs

    def more_likely_to_end(*args, **kwargs):
        log_probs = normalized(*args, **kwargs)
        log_probs[..., eos] += 2.5
        return log_probs.log_softmax(-1)

    model.get_normalized_probs = more_likely_to_end
    options = SearchOptions(nbest=5, max_len_a=0.5, max_len_b=2)
    batch = sources(backend, 30)
    lengths = set()
    for source, found in zip(batch, backend.search(batch, options), strict=True):
        (alone,) = backend.search([source], options)
        assert [one.pieces for one in found] == [one.pieces for one in alone]
        lengths |= {options.cap(len(source)) - len(one.pieces) for one in found}
    assert 0 in lengths
    assert len(lengths) > 1


def test_scores_are_the_log_probabilities_of_the_training_forward():
    backend = FairseqBackend.from_arch("owf_tiny_one_wide_ffn", 60, cpu=True)
    (source,) = sources(backend, 1)
    (found,) = backend.search([source], SearchOptions(nbest=5, lenpen=0.6, max_len_b=0))
    assert len(found) == 5
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    # packed matrices serve decoding only
    (model,), dictionary = (
        FairseqBackend.from_arch("owf_tiny_one_wide_ffn", 60, cpu=True, packed=False).models,
        backend.source,
    )
    for one in found:
        numbers = [dictionary.index(piece) for piece in one.pieces]
        tokens = torch.tensor([[*(dictionary.index(piece) for piece in source), dictionary.eos()]])
        with torch.no_grad():
            output = model(tokens, torch.tensor([tokens.size(1)]), torch.tensor([[dictionary.eos(), *numbers]]))
            log_probs = model.get_normalized_probs(output, log_probs=True)[0]
        expected = [log_probs[step, n].item() for step, n in enumerate([*numbers, dictionary.eos()])]
        assert one.log_probability == pytest.approx(sum(expected), abs=1e-4)
        assert one.score == pytest.approx(sum(expected) / len(expected) ** 0.6, abs=1e-4)


def test_both_kinds_of_model_decode_together():
    both = FairseqBackend.from_arch("owf_tiny", 60, cpu=True)
    both.models += FairseqBackend.from_arch("owf_decoder_only_tiny", 60, cpu=True).models
    batch = sources(both, 5)
    options = SearchOptions(max_len_a=0.5, max_len_b=3)
    for source, (found, *_) in zip(batch, both.search(batch, options), strict=True):
        ((alone, *_),) = both.search([source], options)
        assert found.pieces == alone.pieces
        assert found.score == pytest.approx(alone.score, abs=1e-4)


def test_the_length_can_be_fixed():
    backend = FairseqBackend.from_arch("owf_tiny", 60, cpu=True)
    for length in (0, 1, 9):
        options = SearchOptions(max_len_a=0, max_len_b=length, min_len=length)
        assert {len(found[0].pieces) for found in backend.search(sources(backend), options)} == {length}


def test_no_translation_is_longer_than_the_model_writes():
    backend = FairseqBackend.from_arch("owf_tiny", 60, ["--max-target-positions", "12"], cpu=True)
    assert backend.max_target_length == 11
    (found,) = backend.search([["w1"] * 10], SearchOptions(max_len_a=5, min_len=50))
    assert len(found[0].pieces) == 11


def test_a_piece_that_is_not_in_the_dictionary_is_unknown():
    backend = FairseqBackend.from_arch("owf_tiny", 60, cpu=True)
    (one,), (other,) = backend.search([["w1", "nowhere"], ["w1", "<unk>"]], SearchOptions())
    assert one.pieces == other.pieces
    assert math.isclose(one.score, other.score, abs_tol=1e-6)


def test_weights_are_random_but_the_same_each_time():
    before = torch.random.get_rng_state()
    one, other, third = (FairseqBackend.from_arch("owf_tiny", 60, cpu=True, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    weights = [next(backend.models[0].parameters()) for backend in (one, other, third)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_wrong_archs_and_devices():
    with pytest.raises(InputError, match="did you mean owf_tiny_one_wide_ffn"):
        FairseqBackend.from_arch("owf_tiny_one_wide")
    with pytest.raises(InputError, match=r"`--fp16` needs a GPU, but `--cpu` is given"):
        choose_device(cpu=True, fp16=True)
    assert choose_device(cpu=True, fp16=False) == torch.device("cpu")
