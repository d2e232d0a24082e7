"""A tiny COMET model, and texts to score with it; COMET is imported only by the tests that use them."""

import socket

import pytest
from evaluation_for_tests import SOURCE, TRANSLATION, make_comet, sentences, spoil, write


@pytest.fixture(scope="session")
def comet_encoder(tmp_path_factory):
    """A folder with an XLM-R of two layers and its SentencePiece tokenizer."""
    import sentencepiece
    from transformers import XLMRobertaConfig, XLMRobertaTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    text = write(folder / "text.txt", sentences(300, seed=5))
    pieces = folder / "sentencepiece.bpe.model"
    sentencepiece.SentencePieceTrainer.train(
        input=text, model_prefix=str(pieces.with_suffix("")), vocab_size=60, minloglevel=2
    )
    tokenizer = XLMRobertaTokenizerFast(vocab_file=str(pieces))
    tokenizer.save_pretrained(folder)
    XLMRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64,
    ).save_pretrained(folder)  # fmt: skip
    return str(folder)


@pytest.fixture(scope="session")
def tiny_comet(comet_encoder, tmp_path_factory):
    from comet.models import RegressionMetric

    return make_comet(
        tmp_path_factory.mktemp("models") / "tiny-comet", RegressionMetric, pretrained_model=comet_encoder
    )


@pytest.fixture
def comet_texts(tmp_path, monkeypatch):
    """Two systems; the home folder is empty, and no name of a server is known."""

    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "src.en", SOURCE)
    write(tmp_path / "ref.de", TRANSLATION)
    write(tmp_path / "ref2.de", spoil(TRANSLATION, 0.2, seed=3))
    write(tmp_path / "base.de", spoil(TRANSLATION, 0.5, seed=2))
    write(tmp_path / "wide.de", ["", *spoil(TRANSLATION, 0.3, seed=6)[1:]])
    return tmp_path
