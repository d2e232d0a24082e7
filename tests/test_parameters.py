"""Exact counts (contract 6): every row of the paper, every arch, shared tensors once."""

import functools
import math
from unittest.mock import Mock

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY

from owf_fairseq.errors import InputError
from owf_fairseq.paper import counts
from owf_fairseq.paper import rows as paper
from owf_fairseq.paper.rows import VOCAB_SIZES
from owf_fairseq.parameters import BLOCKS, FlagParser, count_parameters, given_flags, split_archs_and_flags
from owf_fairseq.sharing import ARCHS, SIZES, arch_name

BUILT_ROWS = [row for row in paper.rows() if row.arch in ARCHS]


def test_there_is_something_to_count():
    assert len(BUILT_ROWS) >= 43
    assert {size for size, _ in ARCHS.values()} == set(SIZES)


@pytest.mark.parametrize("row", BUILT_ROWS, ids=lambda row: f"{row.table}-{row.pair}-{row.row}")
def test_every_row_of_the_paper(row):
    count = counts.count_row(row)
    assert abs(count.total / 1e6 - row.params_millions) < 1
    # the paper rounds some percentages, cuts others, and takes some from its rounded millions
    of_millions = round(100 * round(count.total / 1e6) / round(count.individual_total / 1e6))
    derived = {round(count.percent), math.floor(count.percent), of_millions}
    if row.slip is None or row.slip.column != "params_percent":
        assert row.params_percent in derived
    else:
        assert row.params_percent not in derived
        assert round(count.percent) == row.slip.exact


@pytest.mark.parametrize(
    ("arch", "total"),
    [
        ("owf_big", 227_975_168),
        ("owf_big_one_wide_ffn", 227_941_376),
        ("owf_deep_shallow", 236_365_824),
        ("owf_big_shared_enc_no_dec", 135_621_632),
    ],
)
def test_known_totals(arch, total):
    assert count_parameters(arch, VOCAB_SIZES["en-de"]).total == total


def test_blocks_by_hand():
    d, ffn, vocabulary, layers = 64, 128, 1000, 6
    norm = 2 * d
    attention = 4 * (d * d + d) + norm
    feed_forward = 2 * d * ffn + ffn + d + norm
    count = count_parameters("owf_tiny", vocabulary)
    assert list(count.by_block) == list(BLOCKS)
    assert count.by_block == {
        "embeddings": vocabulary * d,
        "encoder self-attention": layers * attention,
        "encoder FFN": layers * feed_forward,
        "decoder self-attention": layers * attention,
        "decoder cross-attention": layers * attention,
        "decoder FFN": layers * feed_forward,
        "other": 0,
    }
    shared = count_parameters("owf_tiny_shared_enc_dec", vocabulary)
    assert shared.by_block == {**count.by_block, "encoder FFN": feed_forward, "decoder FFN": 0}
    own_norms = count_parameters("owf_tiny_shared_enc_no_dec", vocabulary, ["--ffn-layer-norm", "per-layer"])
    assert own_norms.by_block["encoder FFN"] == feed_forward + (layers - 1) * norm
    # attention's layer norms stay with their layers
    attention_shared = count_parameters("owf_tiny_attention_sss", vocabulary)
    for block in ("encoder self-attention", "decoder self-attention", "decoder cross-attention"):
        assert attention_shared.by_block[block] == attention + (layers - 1) * norm


def test_other_parts_of_the_model():
    flags = ["--encoder-normalize-before", "--decoder-normalize-before", "--encoder-learned-pos"]
    flags += ["--layernorm-embedding", "--max-source-positions", "100"]
    plain, count = count_parameters("owf_tiny", 1000), count_parameters("owf_tiny", 1000, flags)
    d = 64
    assert count.by_block["other"] == 2 * 2 * d  # each stack's last layer norm
    # 100 positions, and fairseq's two before the first; a layer norm a stack
    assert count.by_block["embeddings"] - plain.by_block["embeddings"] == (100 + 2) * d + 2 * 2 * d
    assert count.individual_total == count.total


def test_separate_embeddings():
    one = count_parameters("owf_tiny", 1000).by_block["embeddings"]
    assert count_parameters("owf_tiny", 1000, shared_embeddings=False).by_block["embeddings"] == 3 * one
    flags = ["--share-decoder-input-output-embed"]
    assert count_parameters("owf_tiny", 1000, flags, shared_embeddings=False).by_block["embeddings"] == 2 * one


@functools.cache
def total(arch):
    return count_parameters(arch, 10_000).total


@pytest.mark.parametrize("arch", sorted(ARCHS))
def test_every_arch(arch):
    count = count_parameters(arch, 10_000)
    assert count.total == sum(count.by_block.values()) > 0
    individual = arch_name(ARCHS[arch][0], "individual")
    assert count.individual_total == total(individual)
    assert (count.percent == 100) if arch == individual else (count.percent < 100)
    assert (count.matching_ffn_dim is None) == (count.by_block["encoder FFN"] + count.by_block["decoder FFN"] == 0)


@pytest.mark.parametrize("arch", sorted(arch for arch, (size, _) in ARCHS.items() if size in ("tiny", "deep_shallow")))
def test_the_matching_width_matches(arch):
    count = count_parameters(arch, 10_000)
    if count.matching_ffn_dim is None:
        return
    wide, wider = (
        count_parameters(arch, 10_000, {"encoder_ffn_embed_dim": width, "decoder-ffn-embed-dim": width})
        for width in (count.matching_ffn_dim, count.matching_ffn_dim + 1)
    )
    assert abs(wide.total - count.individual_total) <= (wider.total - wide.total) / 2  # to the nearest width
    assert wide.matching_ffn_dim == count.matching_ffn_dim


def test_widths_that_differ_are_matched_by_one():
    count = count_parameters("owf_tiny_shared_enc_shared_dec", 1000, ["--encoder-ffn-embed-dim", "40"])
    assert count.matching_ffn_dim == count_parameters("owf_tiny_shared_enc_shared_dec", 1000).matching_ffn_dim


def test_percent_is_of_the_size_with_the_same_other_flags():
    flags = ["--encoder-ffn-embed-dim", "300", "--encoder-layers", "3"]
    count = count_parameters("owf_tiny_shared_enc_no_dec", 1000, flags)
    assert count.individual_total == count_parameters("owf_tiny", 1000, ["--encoder-layers", "3"]).total
    assert count.percent == pytest.approx(100 * count.total / count.individual_total)


def test_the_users_flags_win():
    count = count_parameters("owf_tiny", 1000, ["--encoder-ffn", "cycle-2", "--encoder-ffn-embed-dim=300"])
    feed_forward = 2 * 64 * 300 + 300 + 64 + 128
    assert count.by_block["encoder FFN"] == 2 * feed_forward


def test_flags_by_name_are_those_of_the_command_line():
    typed = ["--encoder-ffn", "cycle-2", "--share-encoder-decoder-ffn", "--encoder-layers", "4"]
    by_name = {"encoder_ffn": "cycle-2", "share-encoder-decoder-ffn": True, "--encoder-layers": 4}
    assert given_flags("owf_tiny", typed) == given_flags("owf_tiny", by_name)


@pytest.mark.parametrize(
    ("tokens", "archs", "flags"),
    [
        ("owf_small --encoder-ffn cycle-2 owf_tiny owf_small", ["owf_small", "owf_tiny"], ["--encoder-ffn", "cycle-2"]),
        ("--share-encoder-decoder-ffn owf_tiny", ["owf_tiny"], ["--share-encoder-decoder-ffn"]),
        ("owf_tinny --lr 1", [], ["owf_tinny", "--lr", "1"]),
    ],
)
def test_archs_are_told_from_flags(tokens, archs, flags):
    assert split_archs_and_flags(tokens.split()) == (archs, flags)


def test_a_count_tells_what_the_user_gave():
    assert count_parameters("owf_tiny", 1000, ["--encoder-layers", "4"]).flags == {"encoder_layers": 4}


def test_no_weights_are_allocated(monkeypatch):
    devices = set()
    made = torch.nn.Parameter.__new__

    def watch(cls, data=None, requires_grad=True):
        devices.add(data.device.type)
        return made(cls, data, requires_grad)

    monkeypatch.setattr(torch.nn.Parameter, "__new__", watch)
    count_parameters("owf_tiny", 1000)
    assert devices == {"meta"}


@pytest.mark.parametrize(
    ("arch", "flags", "said"),
    [
        ("owf_tinny", [], ["'owf_tinny'", "owf_tiny", "owf params --list"]),
        ("owf_tiny", ["--encoder-fnn", "cycle-2"], ["`--encoder-fnn`", "did you mean", "`--encoder-ffn`"]),
        ("owf_tiny", {"encoder_fnn": "cycle-2", "lr": 1}, ["`--encoder-fnn`", "`--encoder-ffn`", "`--lr`"]),
        ("owf_tiny", ["--encoder-layers", "many"], ["`--encoder-layers`", "many"]),
        ("owf_tiny", ["--encoder-ffn", "cycle-7", "--decoder-ffn", "cicle"], ["`--encoder-ffn`", "`--decoder-ffn`"]),
        ("owf_tiny", ["--decoder-embed-dim", "32"], ["owf_tiny cannot be built", "`--separate-embeddings`"]),
        ("owf_tiny", ["--encoder-fnn", "cycle-2", "shred"], ["`--encoder-fnn`", "no arch 'shred'"]),
        ("owf_tiny", ["--encoder-attention-heads", "7"], ["`--encoder-attention-heads`", "7 and 64"]),
        ("owf_tiny", ["--encoder-attention-heads", "0"], ["`--encoder-attention-heads` must be at least 1"]),
        ("owf_tiny", ["--decoder-ffn-embed-dim", "-5"], ["`--decoder-ffn-embed-dim` must be at least 1", "-5"]),
        ("owf_tiny", ["--adaptive-softmax-cutoff", "x"], ["`--adaptive-softmax-cutoff`: invalid value: 'x'"]),
        # what fairseq trips over
        ("owf_tiny", ["--encoder-layers-to-keep", "0,2"], ["owf_tiny cannot be built", "fairseq fails with"]),
        ("owf_tiny", ["--encoder-learned-pos", "--max-source-positions", "-9"], ["from 1 to 1,048,576", "-9"]),
        ("owf_tiny", ["--encoder-layers", "1000000000"], ["`--encoder-layers` must be at most 1,000"]),
        ("owf_tiny", {"encoder_layers": "many"}, ["`--encoder-layers` must be a whole number", "many"]),
    ],
)
def test_bad_input(arch, flags, said):
    with pytest.raises(InputError) as error:
        count_parameters(arch, 1000, flags)
    for text in said:
        assert text in str(error.value)
    assert all(problem == " ".join(problem.split()) for problem in error.value.problems)  # a line each


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (RuntimeError("two\n  lines"), "fairseq fails with RuntimeError: two lines"),
        (ZeroDivisionError(), "fairseq fails with ZeroDivisionError"),
        (AssertionError(), "fairseq fails with AssertionError"),
        (ValueError("widths differ"), "widths differ"),
    ],
)
def test_a_build_that_fails_is_one_sentence(failure, said, monkeypatch):
    monkeypatch.setattr(ARCH_MODEL_REGISTRY["owf_tiny"], "build_model", Mock(side_effect=failure))
    with pytest.raises(InputError) as error:
        count_parameters("owf_tiny", 1000)
    assert error.value.problems == [f"owf_tiny cannot be built with these flags: {said}"]


def test_a_module_that_is_missing_is_not_the_flags_fault(monkeypatch):
    monkeypatch.setattr(ARCH_MODEL_REGISTRY["owf_tiny"], "build_model", Mock(side_effect=ImportError("no module")))
    with pytest.raises(ImportError, match="no module"):
        count_parameters("owf_tiny", 1000)


def test_bad_vocabulary():
    with pytest.raises(InputError, match="`--vocab-size` must be at least 4.*but is 3"):
        count_parameters("owf_tiny", 3)


def test_the_parser_is_that_of_the_model():
    options = FlagParser("owf_tiny").option_strings()
    assert {"--encoder-ffn", "--encoder-ffn-embed-dim", "--activation-fn"} <= set(options)
