"""Layouts of every family and size: that their counts and speeds are those of the flags that are printed for them."""

import random
from functools import cache

import pytest

from owf_fairseq.cost_model.cost import Workload, shape_of_flags
from owf_fairseq.cost_model.device_profiles import PROFILES
from owf_fairseq.cost_model.paper_speed import shape_of_row
from owf_fairseq.explore.counts import WIDEST, count, count_by_block, solve
from owf_fairseq.explore.families import FAMILIES, templates
from owf_fairseq.explore.front import Question, find_matches, individual_count
from owf_fairseq.explore.layouts import individual_layout, layout_of_row
from owf_fairseq.flags import LARGEST_SIZES
from owf_fairseq.paper.rows import rows
from owf_fairseq.parameters import BLOCKS, count_parameters
from owf_fairseq.sharing import SIZES
from owf_fairseq.speed.benchmark_models import arch_flags

VOCAB = 5_000
SAMPLED = 3
"""Layouts of each family and size: each is built twice, on the meta device."""


@cache
def sample(size, family, number=SAMPLED):
    """Layouts of a family, with widths for other budgets than the individual model's too, and odd ones."""
    draw = random.Random(f"{size} {family}")
    budget = individual_count(size, VOCAB)
    known = {one.layout.key for one in templates(size, ["paper"])}
    own = [one for one in templates(size, [family]) if family == "paper" or one.layout.key not in known]
    found = []
    for template in draw.sample(own, min(number, len(own))):
        layout = solve(template, budget * draw.uniform(0.9, 1.6), VOCAB, draw.choice((1, 7, 64)))
        found += [layout] if layout is not None else []
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", SIZES)
def test_counts_and_shapes_are_those_of_the_flags(size, family):
    layouts = sample(size, family)
    workload = Workload(3, 4, 17, 19)
    for layout in layouts:
        counted = count_parameters(layout.arch, VOCAB, layout.flags())
        assert {**dict.fromkeys(BLOCKS, 0), **count_by_block(layout, VOCAB)} == counted.by_block, layout.flags()
        assert count(layout, VOCAB) == counted.total
        shape = shape_of_flags(arch_flags(layout.arch, layout.flags()), VOCAB)
        assert layout.shape(VOCAB) == shape, layout.flags()
        for profile in PROFILES.values():
            assert profile.tokens_per_s(layout.shape(VOCAB), workload) == profile.tokens_per_s(shape, workload)


def test_the_sample_has_layouts_of_every_family_with_every_flag():
    layouts = [layout for size in SIZES for family in FAMILIES for layout in sample(size, family)]
    assert len(layouts) >= 100
    flags = {name for layout in layouts for name in layout.settings()}
    assert flags >= {"encoder-ffn", "decoder-ffn", "encoder-ffn-widths", "ffn-per-layer", "decoder-cross-attn"}
    assert any(word.startswith("--encoder-ffn=-") for layout in layouts for word in layout.flags())


def test_the_individual_model():
    for size in SIZES:
        assert individual_layout(size).flags() == []
        assert individual_count(size, VOCAB) == count_parameters(f"owf_{size}", VOCAB).total


def test_the_papers_rows():
    models = {layout_of_row(row).key: row for row in rows()}
    assert len(models) >= 30
    for row in models.values():
        layout = layout_of_row(row)
        assert count(layout, row.vocab_size) / 1e6 == pytest.approx(row.params_millions, abs=1)
        assert layout.shape(row.vocab_size) == shape_of_row(row)


@pytest.mark.parametrize("configuration", ["shared_enc_dec", "one_wide_ffn", "attention_iis", "cycle_rev_2"])
def test_a_layout_of_the_paper_is_the_named_arch(configuration):
    [row, *_] = [row for row in rows() if row.arch == f"owf_big_{configuration}"] or [
        row for row in rows() if (row.size, row.shared_ffn_dim) == ("big", 49152)
    ]
    layout, by_name = layout_of_row(row), count_parameters(f"owf_big_{configuration}", VOCAB)
    assert count_parameters(layout.arch, VOCAB, layout.flags()).by_block == by_name.by_block
    assert count_by_block(layout, VOCAB) == {name: n for name, n in by_name.by_block.items() if name != "other"}


@pytest.mark.parametrize("size", ["big", "deep_shallow", "decoder_only"])
def test_widths_are_the_nearest_to_the_budget(size):
    """Each is off by half of a multiple, at most."""
    budget, multiple = individual_count(size, VOCAB), 64
    d = SIZES[size].embed_dim
    for template in templates(size, ["stacks"]):
        layout = solve(template, budget, VOCAB, multiple)
        if layout is None or not template.solved:
            continue
        blocks = sum(len(layout.widths(stack)) for stack in template.solved)
        blocks -= layout.share_encoder_decoder_ffn  # the one FFN of both
        widths = [width for stack in template.solved for width in layout.widths(stack)]
        assert all(width % multiple == 0 for width in widths)
        if min(widths) > multiple:  # not where a smaller width would be nearer, but there is none
            assert abs(count(layout, VOCAB) - budget) <= blocks * (2 * d + 1) * multiple / 2, layout.flags()


def test_one_wide_ffn_is_found_by_solving():
    """Not only because the paper's rows are always looked at."""
    [template] = [
        one
        for one in templates("big", ["stacks"])
        if (one.layout.encoder_ffn, one.layout.decoder_ffn, one.solved) == ("shared", "none", ("encoder",))
    ]
    found = solve(template, individual_count("big", 50_408), 50_408, 64)
    assert found.flags() == ["--encoder-ffn", "shared", "--encoder-ffn-embed-dim", "49152", "--decoder-ffn", "none"]


def test_a_budget_that_has_no_room_for_ffns_and_one_that_is_too_wide():
    [template] = [
        one
        for one in templates("tiny", ["middle"])
        if (one.layout.encoder_ffn, one.layout.decoder_ffn) == ("middle-1", "none")
    ]
    fixed = count(solve(template, 1e8, VOCAB, 1), VOCAB) - 1e8
    assert abs(fixed) < 129
    assert solve(template, 1_000, VOCAB, 1) is None
    assert LARGEST_SIZES["ffn_embed_dim"] == WIDEST
    assert solve(template, WIDEST * 129 * 1.1, VOCAB, 1) is None


def test_every_layout_is_listed_once():
    matches = find_matches(Question("small", VOCAB, individual_count("small", VOCAB), 0.2, tuple(FAMILIES), 8))
    keys = [match.layout.key for match in matches]
    assert len(set(keys)) == len(keys) >= 200
    models = [tuple(sorted(match.layout.settings().items())) for match in matches]
    assert len(set(models)) == len(models)
