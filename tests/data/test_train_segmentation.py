"""What a segmentation is learnt from: long lines too; ordinary text gives the model that it always gave."""

import hashlib
import random

import pytest

from owf_fairseq.data.train_segmentation import Learning, TrainingText, learn_segmentation, usable_parts
from owf_fairseq.errors import InputError

WORDS = "the a house tree river old new red runs sees makes under over quickly never always bread stone light".split()
CHINESE = [chr(0x4E00 + number) for number in range(300)]


def english(lines, words=8):
    chance = random.Random(1)
    return [" ".join(chance.choices(WORDS, k=words)) for _ in range(lines)]


def pieces(folder, lines, vocab_size=500):
    made = learn_segmentation(folder, TrainingText("en", "zh", (iter(lines),)), Learning(vocab_size=vocab_size))
    return set(made.symbols([], None))


def test_long_lines_are_used(tmp_path):
    chance = random.Random(2)
    long = ["".join(chance.choices(CHINESE, k=2000)) for _ in range(7)]  # of 6,000 bytes each
    assert sum(character in CHINESE for character in pieces(tmp_path, english(300) + long)) == 300


def test_long_lines_alone_are_text(tmp_path):
    assert pieces(tmp_path, [" ".join(english(500))]) > {"\u2581house"}


def test_lines_with_sentencepieces_own_sign_are_used(tmp_path):
    assert {"x", "y"} <= pieces(tmp_path, [*english(20), "xxx \u2585 yyy"])


@pytest.mark.parametrize(
    "line",
    [
        "word " * 5000 + "end",
        "\u4e00" * 10_000,
        "a" + "\U0001f600" * 5000,
        "x" * 4192,
        "x" * 4193,
        "a b" * 1048 + "\u00e9" * 9000 + " c",
        "short",
        "",
        "\u2585 a" * 5000,
    ],
)
def test_parts_lose_nothing_and_are_short_enough(line):
    parts = list(usable_parts(line))
    assert all(len(part.encode()) <= 4192 for part in parts)
    kept = line.replace("\u2585", "")
    assert "".join(parts).replace(" ", "") == kept.replace(" ", "")
    if kept == line and len(line.encode()) <= 4192:
        assert parts == [line]
    if "word" in line:
        assert set(" ".join(parts).split()) == {"word", "end"}  # words stay whole
        assert len(parts) < 8


def test_ordinary_text_gives_the_same_model_as_ever(tmp_path):
    pieces(tmp_path, english(300))
    known = hashlib.sha256((tmp_path / "sentencepiece.model").read_bytes()).hexdigest()
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(english(300)), model_writer=model, model_type="unigram", vocab_size=500,
        character_coverage=0.9999, hard_vocab_limit=False, normalization_rule_name="identity", num_threads=4,
        unk_id=0, bos_id=1, eos_id=2, pad_id=3, minloglevel=2,
    )  # fmt: skip
    assert known == hashlib.sha256(model.getvalue()).hexdigest()


def test_advice_where_no_vocabulary_can_be_made(tmp_path):
    with pytest.raises(InputError, match="`--vocab-size` must be at least 26 for this text, but is 10"):
        pieces(tmp_path, english(300), vocab_size=10)
    pieces(tmp_path, english(300), vocab_size=26)  # and that is true
    for blank in ([], ["", ""]):
        with pytest.raises(InputError, match="there is no text to learn the segmentation from"):
            pieces(tmp_path, blank)
