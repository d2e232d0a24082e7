"""Every encoder-decoder arch and pattern computes in CTranslate2 what it computes in fairseq, and is stored once."""

import os

import pytest
from exports_for_tests import difference
from models_for_tests import TINY_ARCHS, make_model, make_task

from owf_fairseq.decoding.fairseq_backend import FairseqBackend
from owf_fairseq.export.ctranslate2_spec import ModelConverter

PRE_NORM = ("--encoder-normalize-before", "--decoder-normalize-before")
FLAGS = {
    "learned positions": ("--encoder-learned-pos", "--decoder-learned-pos"),
    "embeddings that are not scaled": ("--no-scale-embedding",),
    "layer norm of embeddings": ("--layernorm-embedding",),
    "three matrices of embeddings": (),
    "two widths": ("--encoder-embed-dim", "32", "--decoder-embed-dim", "64"),
    "stacks of different depth": ("--encoder-layers", "3", "--decoder-layers", "1", *PRE_NORM),
    "few positions": ("--max-source-positions", "12", "--max-target-positions", "14"),
    "a layer norm for each layer": ("--encoder-ffn", "shared", "--ffn-layer-norm", "per-layer"),
    "sandwich": ("--encoder-ffn", "sandwich", "--decoder-ffn", "none"),
    **{activation: ("--activation-fn", activation) for activation in ("gelu", "gelu_accurate", "gelu_fast", "tanh")},
}


def test_there_are_archs():
    assert len(TINY_ARCHS) > 20


@pytest.mark.parametrize("norm", [(), PRE_NORM], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("arch", TINY_ARCHS)
def test_every_arch_gives_the_same_log_probabilities(arch, norm, tmp_path):
    assert difference(make_model(arch, "--share-all-embeddings", *norm), tmp_path / "exported") < 1e-4


@pytest.mark.parametrize("what", FLAGS)
def test_what_else_a_model_may_have(what, tmp_path):
    assert difference(make_model("owf_tiny", *FLAGS[what]), tmp_path / "exported") < 1e-4


@pytest.mark.parametrize(
    ("arch", "flags"),
    [
        *((f"owf_tiny{name}", []) for name in ("", "_one_wide_ffn", "_cycle_rev_3", "_attention_sss")),
        ("owf_tiny_one_wide_ffn", ["--ffn-per-layer", "norm,bias"]),
        ("owf_tiny_shared_enc", ["--decoder-ffn", "0,-,0,1,1,-", "--decoder-ffn-widths", "200,300"]),
    ],
)
def test_shared_blocks_are_stored_once(arch, flags, tmp_path):
    dims = ["--encoder-embed-dim", "64", "--decoder-embed-dim", "64"]
    model = make_model(arch, "--share-all-embeddings", *dims, *flags)
    dictionary = make_task().source_dictionary
    parameters = sum(weight.numel() for weight in model.parameters())
    ModelConverter(model.eval(), dictionary, dictionary).convert(str(tmp_path / "exported"))
    positions = 4 * 64 * 1024
    # names of variables, and the FFN of width 8 that stands for a dropped one; a second block would be 65,000
    overhead = 24_000
    size = os.path.getsize(tmp_path / "exported/model.bin")
    assert 4 * parameters + positions < size < 4 * parameters + positions + overhead


@pytest.mark.parametrize(("quantization", "size_of_a_value"), [("float32", 4), ("float16", 2), ("int8", 1)])
def test_a_wide_model_takes_as_many_bytes_as_it_has_parameters(quantization, size_of_a_value, tmp_path):
    flags = ("--encoder-embed-dim", "256", "--decoder-embed-dim", "256", "--encoder-ffn-embed-dim", "40000")
    flags += ("--max-source-positions", "64", "--max-target-positions", "64")
    backend = FairseqBackend.from_arch("owf_tiny_one_wide_ffn", 8000, flags, cpu=True, packed=False)
    converter = ModelConverter(backend.models[0], backend.source, backend.target, half_positions=quantization == "int8")
    converter.convert(str(tmp_path / "exported"), quantization=quantization)
    size = os.path.getsize(tmp_path / "exported/model.bin")
    assert size < 1.02 * size_of_a_value * backend.parameters[0]
