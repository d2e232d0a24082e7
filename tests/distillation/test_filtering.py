"""What a student does not learn from."""

import pytest

from owf_fairseq.distillation.filtering import REASONS, Filter


@pytest.mark.parametrize(
    ("source", "translation", "reference", "lengths", "reason"),
    [
        ("the door", "die Tür", "die Tür", (2, 2), None),
        ("the door", "", "die Tür", (2, 0), "empty"),
        (" \u200b", "die Tür", "die Tür", (0, 2), "empty"),
        ("the door", "the door", "die Tür", (2, 2), "copied"),
        ("The  door", "the Door", None, (2, 2), "copied"),
        ("Berlin", "Berlin", "Berlin", (1, 1), None),  # what the reference copies may be copied
        ("OK", "In Ordnung", None, (1, 8), None),
        ("OK", "In Ordnung, in Ordnung", None, (1, 9), "length"),
        ("a b c", "a", None, (20, 5), None),
        ("a b c", "a", None, (21, 5), "length"),
    ],
)
def test_reasons(source, translation, reference, lengths, reason):
    assert Filter(max_ratio=3).reason(source, translation, reference, lengths) == reason
    assert reason is None or reason in REASONS


def test_copies_can_be_kept():
    assert Filter(keep_copies=True).reason("a", "a", None, (1, 1)) is None


def test_the_ratio():
    assert Filter(max_ratio=1).problems() == []
    assert Filter(max_ratio=0.5).problems() == ["`--max-ratio` must be at least 1, but is 0.5"]
