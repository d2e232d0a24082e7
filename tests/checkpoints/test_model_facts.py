"""What tables and JSON say of a model is told in one place."""

import pytest
from models_for_tests import parse

from owf_fairseq.checkpoints.model_facts import ModelFacts, facts_of_flags

SHARED = "--share-all-embeddings"
LAYERS = {"encoder": 6, "decoder": 6}


def facts(*archs_with_flags):
    made = [(parse(arch, SHARED, *flags), arch) for arch, *flags in archs_with_flags]
    return facts_of_flags(made, 1000)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            ("owf_tiny", "--decoder-ffn", "none"),
            ("owf_tiny_no_dec", "NoDec", (SHARED,), 1000, LAYERS, {"encoder": 128, "decoder": None}),
        ),
        (
            ("owf_tiny_one_wide_ffn", "--encoder-layers", "3"),
            (
                "owf_tiny_one_wide_ffn",
                "One Wide FFN",
                ("--encoder-layers 3", SHARED),
                *(1000, {"encoder": 3, "decoder": 6}, {"encoder": 9 * 128, "decoder": None}),
            ),
        ),
        (
            ("owf_decoder_only_tiny",),
            (
                "owf_decoder_only_tiny",
                "Transformer",
                (),
                *(1000, {"encoder": 0, "decoder": 6}, {"encoder": None, "decoder": 128}),
            ),
        ),
    ],
)
def test_the_facts_of_one_model(given, expected):
    found = facts(given)
    assert found == ModelFacts(found.arch, found.configuration, found.flags, *expected[3:])
    assert (found.arch, found.configuration, tuple(sorted(found.flags))) == expected[:3]


def test_an_ensemble_of_unlike_models_has_no_configuration():
    unlike = facts(("owf_tiny",), ("owf_tiny", "--decoder-ffn", "none"))
    assert (unlike.arch, unlike.configuration, unlike.as_json()["parameters"]) == ("owf_tiny", None, 1000)
    alike = facts(("owf_tiny_no_dec",), ("owf_tiny", "--decoder-ffn", "none"))
    assert (alike.arch, alike.configuration) == ("owf_tiny_no_dec", "NoDec")
