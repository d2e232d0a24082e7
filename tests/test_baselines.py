"""What is compared with what, where several sizes are in one run."""

import pytest

from owf_fairseq.baselines import by_order, by_size, choose, described, individual_models
from owf_fairseq.errors import InputError

ARCHS = {
    "a": "owf_base_no_dec",
    "b": "owf_base",
    "c": "owf_deep_shallow",
    "d": "owf_deep_shallow_one_wide_ffn",
    "seed": "owf_base",
    "e": "owf_big_no_enc",
    "f": None,
}


def test_the_individual_model_of_the_same_size():
    own = {"a": "b", "b": "b", "c": "c", "d": "c", "seed": "b"}
    assert individual_models(ARCHS) == own
    assert by_size(ARCHS) == own | {"e": "b", "f": "b"}  # as the first one
    assert by_size({"f": None, "g": None}) == {"f": "f", "g": "f"}
    assert by_size({}) == {}


def test_the_last_baseline_before():
    assert by_order("abcd", ["c", "b"]) == {"a": "b", "b": "b", "c": "c", "d": "c"}


def test_what_the_flags_say():
    first = choose(ARCHS, [], sizes=False)
    assert set(first.values()) == {"a"}
    assert choose(ARCHS, ["b", "c"], sizes=False)["d"] == "c"
    assert choose(ARCHS, [], sizes=True) == by_size(ARCHS)
    with pytest.raises(InputError, match="`--baseline` x is none of the models: a, b, c"):
        choose(ARCHS, ["a", "x"], sizes=False)


@pytest.mark.parametrize(
    ("compared", "text"),
    [
        ({"a": None}, "a"),
        ({"a": None, "b": "a", "c": "a"}, "a"),
        ({"a": None, "b": "a", "c": "a", "d": None, "e": "d"}, "its baseline (a for b, c; d for e)"),
        ({"a": None, "b": "a", "c": None}, "its baseline (a for b)"),
        ({"a": None, "b": None}, "its baseline (no other model has one)"),
    ],
)
def test_a_sentence_for_notes(compared, text):
    assert described(compared) == text
