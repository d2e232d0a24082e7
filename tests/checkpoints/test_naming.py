"""The name of a model, told from its blocks alone."""

import pytest
from models_for_tests import parse

from owf_fairseq.checkpoints.naming import named_arch
from owf_fairseq.sharing import ARCHS, configuration_of

WIDE = ["--encoder-ffn", "shared", "--decoder-ffn", "none", "--encoder-ffn-embed-dim", "1536"]


@pytest.mark.parametrize("arch", ARCHS)
def test_every_arch_is_itself(arch):
    assert named_arch(parse(arch), arch) == arch


@pytest.mark.parametrize(
    ("arch", "flags", "name"),
    [
        ("owf_tiny", ["--decoder-ffn", "none"], "owf_tiny_no_dec"),
        ("owf_tiny_no_dec", ["--decoder-ffn", "individual"], "owf_tiny"),
        ("owf_tiny_no_dec", ["--encoder-ffn", "sequence-1"], "owf_tiny_shared_enc_no_dec"),
        ("owf_tiny", ["--encoder-ffn", "cycle-6"], "owf_tiny"),
        ("owf_tiny", ["--decoder-ffn", "sandwich"], None),
        ("owf_tiny_no_dec", ["--encoder-self-attn", "shared"], None),
        ("owf_tiny_shared_enc_dec", ["--encoder-ffn-embed-dim", "64", "--decoder-ffn-embed-dim", "64"],
         "owf_tiny_shared_enc_dec"),
        ("owf_tiny", WIDE, "owf_tiny_one_wide_ffn"),
        ("owf_tiny", WIDE[:4], "owf_tiny_shared_enc_no_dec"),
        ("owf_tiny_one_wide_ffn", ["--encoder-ffn-embed-dim", "768"], "owf_tiny_shared_enc_no_dec"),
        ("owf_tiny_one_wide_ffn", ["--encoder-layers", "3", "--encoder-embed-dim", "32"], "owf_tiny_one_wide_ffn"),
        ("owf_tiny", ["--encoder-layers", "2", "--decoder-layers", "3", "--encoder-attention-heads", "4",
                      "--encoder-embed-dim", "32", "--decoder-ffn", "shared"], "owf_tiny_shared_dec"),
        ("transformer", [], None),
    ],
)  # fmt: skip
def test_blocks_name_the_model(arch, flags, name):
    assert named_arch(parse(arch, *flags), arch) == name


def test_the_papers_name():
    assert configuration_of("owf_small_no_dec").paper == "NoDec"
