"""Contracts 4 and 5: step by step = at once; padding, neighbours and later words change nothing. Every tiny arch."""

import pytest
import torch
from models_for_tests import PAD, TINY_ARCHS, make_batch, make_model, step_by_step

NORMS = {"post-norm": [], "pre-norm": ["--encoder-normalize-before", "--decoder-normalize-before"]}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_incremental_equals_full_with_beam_reordering(arch, norm):
    """Beams swap places at every step, across sentences of the same length, as in beam search."""
    model = make_model(arch, *NORMS[norm]).eval()
    beam, batch = 2, make_batch([5, 3], [6, 6])
    tokens = batch["prev_output_tokens"].repeat_interleave(beam, 0)
    tokens[1, 3:] = torch.tensor([9, 8, 7])  # the two beams of a sentence part
    orders = [torch.tensor(order) for order in ([1, 0, 2, 3], [0, 0, 3, 2], [1, 0, 2, 2])]
    with torch.no_grad():
        state = {}
        for step, (found, expected) in enumerate(step_by_step(model, batch, tokens, orders, state)):
            scale = expected.abs().max()
            assert (found - expected).abs().max() < 1e-4 * scale, f"step {step}"
    # the source's keys are computed once and kept, and every layer has its own
    caches = [layer.encoder_attn._get_input_buffer(state)["prev_key"] for layer in model.decoder.layers]
    assert {cache.shape[2] for cache in caches} == {batch["src_tokens"].shape[1]}
    assert len({cache.data_ptr() for cache in caches}) == len(caches)


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_padding_and_neighbours_change_nothing(arch):
    model = make_model(arch).eval()
    lengths = [(7, 4), (3, 6), (5, 2)]
    batch = make_batch([s for s, _ in lengths], [t for _, t in lengths])
    with torch.no_grad():
        together = model(**batch)[0]
        for row, (source, target) in enumerate(lengths):
            alone = model(
                batch["src_tokens"][row : row + 1, -source:],
                batch["src_lengths"][row : row + 1],
                batch["prev_output_tokens"][row : row + 1, :target],
            )[0][0]
            assert torch.allclose(together[row, :target], alone, rtol=1e-4, atol=1e-4 * alone.abs().max().item())
        right = torch.full_like(batch["src_tokens"], PAD)
        for row, (source, _) in enumerate(lengths):
            right[row, :source] = batch["src_tokens"][row, -source:]
        moved = model(right, batch["src_lengths"], batch["prev_output_tokens"])[0]
        assert torch.allclose(moved, together, rtol=1e-4, atol=1e-4 * together.abs().max().item())


@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_decoder_is_causal_and_sees_the_source(arch):
    model = make_model(arch).eval()
    batch = make_batch([5], [6])
    with torch.no_grad():
        before = model(**batch)[0][0]
        for position in range(1, 6):
            changed = {**batch, "prev_output_tokens": batch["prev_output_tokens"].clone()}
            changed["prev_output_tokens"][0, position] = (changed["prev_output_tokens"][0, position] + 7) % 30 + 4
            after = model(**changed)[0][0]
            assert torch.equal(after[:position], before[:position])
            assert not torch.allclose(after[position:], before[position:])
        changed = {**batch, "src_tokens": batch["src_tokens"].clone()}
        changed["src_tokens"][0, 0] = (changed["src_tokens"][0, 0] + 7) % 30 + 4
        difference = (model(**changed)[0][0] - before).abs().amax(-1)
        assert (difference > 1e-6).all()
