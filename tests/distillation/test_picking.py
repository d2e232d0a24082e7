"""The translation that is nearest to the reference."""

import pytest
from sacrebleu.metrics import BLEU, CHRF

from owf_fairseq.data.work import Workers
from owf_fairseq.distillation.picking import Picker
from owf_fairseq.errors import InputError

REFERENCE = "the lamp opens the big door."
TRANSLATIONS = ["a lamp opens doors", "the lamp opens the door.", "the lamp opens the big door.", "no"]


@pytest.mark.parametrize(
    ("metric", "theirs"), [("chrf", CHRF()), ("bleu", BLEU(effective_order=True))], ids=["chrf", "bleu"]
)
def test_scores_are_sacrebleus(metric, theirs):
    picker = Picker(metric, "en", Workers(1))
    rows = [(TRANSLATIONS, REFERENCE), (TRANSLATIONS[:2], REFERENCE), (["no", "no"], REFERENCE)]
    found = picker.pick(rows)
    assert [one.place for one in found] == [2, 1, 0]
    for picked, (translations, reference) in zip(found, rows, strict=True):
        assert picked.score == theirs.sentence_score(translations[picked.place], [reference]).score
        assert picked.first == theirs.sentence_score(translations[0], [reference]).score


def test_several_processes_pick_the_same():
    rows = [(TRANSLATIONS[n % 2 :], f"{REFERENCE} {n}") for n in range(600)]
    with Workers(2) as workers:
        assert Picker("chrf", "en", workers).pick(rows) == Picker("chrf", "en", Workers(1)).pick(rows)


def test_a_tokenizer_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("owf_fairseq.scoring.metrics._tokenizer_problem", lambda *arguments: "it is not there")
    from owf_fairseq.distillation import picking

    with pytest.raises(InputError, match="it is not there"):
        picking.sentence_metric.__wrapped__("bleu", "ja")
