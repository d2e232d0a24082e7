"""Which tokenizer BLEU takes, and spBLEU's model: there, damaged, or not to be had."""

import json
import socket

import pytest
from evaluation_for_tests import evaluate, sentences, spoil, write
from sacrebleu.metrics import BLEU

from owf_fairseq.scoring.metrics import bleu_tokenizer

MODEL = "sacrebleu_tokenizer_spm.model"


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        (None, "13a"), ("de", "13a"), ("deu_Latn", "13a"), ("zh", "zh"), ("zh-Hans", "zh"), ("zh_CN", "zh"),
        ("zho_simpl", "zh"), ("ZH", "zh"), ("ja", "ja-mecab"), ("jpn_Jpan", "ja-mecab"), ("ko", "ko-mecab"),
        ("kor", "ko-mecab"), ("th", "char"), ("khm", "char"),
    ],
)  # fmt: skip
def test_tokenizer_of_a_language(language, tokenizer):
    assert bleu_tokenizer(language) == tokenizer


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A reference and a hypothesis; sacreBLEU's folder is empty, and no name of a server is known."""

    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", str(tmp_path / "sacrebleu"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "ref.txt", sentences(50))
    write(tmp_path / "hyp.txt", spoil(sentences(50), 0.4, seed=2))
    return tmp_path


def scores(texts, capsys, *flags):
    evaluate(capsys, "hyp.txt", "--ref", "ref.txt", "--json", "scores.json", *flags)
    found = json.loads((texts / "scores.json").read_text())
    return found["systems"][0]["scores"], found["metrics"]


@pytest.mark.parametrize(("flags", "tokenizer"), [(["--target-lang", "th"], "char"), (["--tokenize", "intl"], "intl")])
def test_tokenizer_of_the_command(flags, tokenizer, texts, capsys):
    found, metrics = scores(texts, capsys, *flags)
    references = [(texts / "ref.txt").read_text().splitlines()]
    expected = BLEU(tokenize=tokenizer).corpus_score((texts / "hyp.txt").read_text().splitlines(), references).score
    assert found["bleu"]["score"] == expected
    assert f"|tok:{tokenizer}|" in metrics["bleu"]["signature"]


def test_tokenizer_that_is_not_installed(texts, capsys, monkeypatch):
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    printed, errors = evaluate(capsys, "hyp.txt", "--ref", "ref.txt", "--target-lang", "ja", status=2)
    assert printed == ""
    assert errors == (
        "owf evaluate: error: BLEU for the language ja needs sacreBLEU's tokenizer ja-mecab, which is not installed: "
        "`pip install 'sacrebleu[ja]'`, or choose another one, `--tokenize char`\n"
    )
    assert scores(texts, capsys, "--target-lang", "ja", "--tokenize", "char")[0]["bleu"]["score"] > 0


def test_spbleu_without_its_model(texts, capsys):
    printed, errors = evaluate(capsys, "hyp.txt", "--ref", "ref.txt", "--metrics", "bleu", "spbleu", status=2)
    assert printed == ""  # nothing is scored before all is there
    (fetched,) = errors.splitlines()
    assert "sacreBLEU's tokenizer flores101 is not on this machine and can't be fetched (" in fetched
    assert f"{MODEL} to {texts / 'sacrebleu' / 'models' / MODEL} (the environment variable SACREBLEU" in fetched


def test_nothing_is_fetched_for_texts_that_cannot_be_read(texts, capsys, monkeypatch):
    monkeypatch.setattr(
        "sacrebleu.tokenizers.tokenizer_spm.download_file", lambda *_, **__: pytest.fail("it was fetched")
    )
    _, errors = evaluate(capsys, "hyp.txt", "--ref", "missing.txt", "--metrics", "spbleu", status=2)
    assert errors == "owf evaluate: error: missing.txt can't be read: No such file or directory\n"
    _, errors = evaluate(capsys, "--directions", ".", "--ref", "nowhere", "--metrics", "spbleu", status=2)
    assert errors == "owf evaluate: error: nowhere can't be read as a folder: No such file or directory\n"


def test_spbleu_with_a_damaged_model(texts, capsys):
    path = texts / "sacrebleu" / "models" / MODEL
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half a download")
    _, errors = evaluate(capsys, "hyp.txt", "--ref", "ref.txt", "--metrics", "spbleu", status=2)
    assert "tokenizer flores101 can't be read (" in errors
    assert f"remove {path} and try again" in errors


def test_spbleu_is_bleu_of_pieces(texts, capsys):
    import sentencepiece

    models = texts / "sacrebleu" / "models"
    models.mkdir(parents=True)
    sentencepiece.SentencePieceTrainer.train(
        input=str(texts / "ref.txt"), model_prefix=str(models / MODEL.removesuffix(".model")), vocab_size=60,
        minloglevel=2,
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(models / MODEL))
    segmented = {
        name: [" ".join(pieces.encode(line, out_type=str)) for line in (texts / name).read_text().splitlines()]
        for name in ("hyp.txt", "ref.txt")
    }
    expected = BLEU(tokenize="none", force=True).corpus_score(segmented["hyp.txt"], [segmented["ref.txt"]]).score
    found, metrics = scores(texts, capsys, "--metrics", "spbleu", "bleu", "--baseline", "again=ref.txt")
    assert "|tok:flores101|" in metrics["spbleu"]["signature"]
    systems = json.loads((texts / "scores.json").read_text())["systems"]
    assert systems[1]["scores"]["spbleu"]["score"] == expected != systems[1]["scores"]["bleu"]["score"]
    assert systems[1]["scores"]["spbleu"]["significant"] is True
