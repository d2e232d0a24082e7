"""What `owf train` finds out before fairseq starts: metrics, validation sentences, dictionaries, languages."""

import shutil
from pathlib import Path

import pytest
from fairseq_for_tests import run, write_data

from owf_fairseq import cli
from owf_fairseq.checkpoints.checkpoint import read_checkpoint
from owf_fairseq.files.fingerprint import KEY, changed_files, fingerprint
from owf_fairseq.training.checks import language_problems
from owf_fairseq.training.run import plan

BLEU = ["--best-checkpoint-metric", "bleu"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (BLEU, "`--best-checkpoint-metric` bleu needs `--eval-bleu`"),
        (["--best-checkpoint-metric", "accuracy"], "`--best-checkpoint-metric` accuracy needs `--report-accuracy`"),
        (["--best-checkpoint-metric", "blue"], "has loss, nll_loss, ppl, and with more flags accuracy, bleu"),
        (["--maximize-best-checkpoint-metric"], "a smaller loss is better. Leave it out"),
        (["--criterion", "cross_entropy", "--best-checkpoint-metric", "nll_loss"], "it is the same as `loss`"),
        ([*BLEU, "--task", "translation_multi_simple_epoch", "--lang-pairs", "src-tgt"], "measures no BLEU"),
    ],
)
def test_a_metric_that_fails_at_the_first_validation(words, problem, owf):
    status, out, err, _ = owf(*words)
    assert (status, out) == (2, "")
    assert problem in err
    assert not Path("model").exists()


def test_a_metric_that_grows_is_maximized(owf):
    """fairseq takes the worst BLEU for the best one, unless another flag is given too."""
    text = Path("c.yaml").read_text().replace("disable-validation: true\n", "")
    Path("c.yaml").write_text(text)
    words = [*BLEU, "--eval-bleu", "--eval-bleu-args", '{"max_len_b": 9}', "--save-interval-updates", 4]
    status, out, _, log = owf(*words, "--max-update", 24)
    assert status == 0
    assert "--maximize-best-checkpoint-metric" in out
    scores = [float(line.split("| bleu ")[1].split(" ")[0]) for line in log.splitlines() if "| bleu " in line]
    assert len(scores) == 6
    assert max(scores) > min(scores)
    assert read_checkpoint("model/checkpoint_best.pt")["extra_state"]["best"] == pytest.approx(max(scores), abs=0.01)
    assert "--maximize" not in plan("c.yaml", ["--best-checkpoint-metric", "ppl"]).command
    assert "--maximize" in plan("c.yaml", ["--best-checkpoint-metric", "accuracy", "--report-accuracy"]).command


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--max-tokens", 9], "10 tokens, more than a batch may have (9): give `--max-tokens-valid 10` or more"),
        (["--max-tokens", 99, "--max-tokens-valid", 8], "more than a batch may have (8)"),
        (["--max-tokens", 99, "--max-source-positions", 9], "10 tokens in src, and `--max-source-positions` allows 9"),
        (["--max-target-positions", 8], "10 tokens in tgt, and `--max-target-positions` allows 8"),
    ],
)
def test_validation_sentences_that_are_too_long(words, problem, owf, data_bin):
    """fairseq ends with an AssertionError, after it has loaded everything."""
    Path("c.yaml").write_text(Path("c.yaml").read_text().replace("disable-validation: true\n", ""))
    status, out, err, _ = owf(*words, "--max-update", 1)
    assert (status, out) == (2, "")
    assert problem in err
    assert f"owf train: error: {data_bin}: sentence " in err
    way_out = ["--max-tokens-valid", 10] if "batch" in problem else ["--skip-invalid-size-inputs-valid-test"]
    assert owf(*words, *way_out, "--max-update", 1)[0] == 0


@pytest.fixture
def other_data(data_bin, tmp_path):
    """A copy of the data whose dictionaries can be changed."""
    shutil.copytree(data_bin, tmp_path / "other-data")
    return tmp_path / "other-data"


def swap_symbols(folder):
    for path in folder.glob("dict.*.txt"):
        first, second, *others = path.read_text().splitlines()
        path.write_text("\n".join([second, first, *others]) + "\n")


def add_symbols(folder):
    for path in folder.glob("dict.*.txt"):
        path.write_text(path.read_text() + "more 1\nmuch 1\n")


def test_weights_for_another_number_of_symbols(owf, other_data):
    assert owf("--max-update", 1)[0] == 0
    rows = len(read_checkpoint("model/checkpoint_last.pt")["model"]["encoder.embed_tokens.weight"])
    add_symbols(other_data)
    for words in (
        ["--finetune-from-model", "model/checkpoint_last.pt"],
        ["--restore-file", "model/checkpoint_last.pt"],
    ):
        status, _, err, _ = owf("--data", other_data, "--save-dir", "b", *words)
        assert status == 2
        assert (
            f"model/checkpoint_last.pt has {rows} symbols for src, and {other_data}/dict.src.txt has {rows + 2}: give "
            "the data that it was trained on, or prepare others with the same symbols (`owf prepare --like DATA`)"
        ) in err


def test_other_symbols_of_the_same_number(owf, other_data):
    """The record, the checkpoint and the data have fingerprints of the dictionaries."""
    assert owf("--max-update", 1, "--data", other_data)[0] == 0
    assert read_checkpoint("model/checkpoint_last.pt")["extra_state"][KEY] == fingerprint(other_data)
    swap_symbols(other_data)
    status, out, err, _ = owf("--max-update", 2, "--data", other_data)
    assert (status, out) == (2, "")
    assert "other settings: dict.src.txt (its content); dict.tgt.txt (its content). Give" in err
    Path("model/resolved.yaml").unlink()
    status, _, err, _ = owf("--max-update", 2, "--data", other_data)
    assert status == 2
    assert (
        f"checkpoint_last.pt was trained with another dict.src.txt, dict.tgt.txt than there is in {other_data}" in err
    )
    swap_symbols(other_data)
    assert owf("--max-update", 2, "--data", other_data)[0] == 0


def test_translating_with_other_symbols(copier, tmp_path, capsys):
    folder = copier.parent.parent
    shutil.copytree(folder / "data", tmp_path / "data")
    shutil.copytree(folder / "model", tmp_path / "model")
    (tmp_path / "text.en").write_text("the lamp opens the door.\n")
    command = ["translate", str(tmp_path / "model/checkpoint_last.pt"), "--input", str(tmp_path / "text.en"), "--cpu"]
    command += ["--data", str(tmp_path / "data")]
    assert cli.main(command) == 0
    translation = capsys.readouterr().out
    swap_symbols(tmp_path / "data")
    assert cli.main(command) == 2
    assert "was trained with other symbols than those of dict.de.txt, dict.en.txt in " in capsys.readouterr().err
    swap_symbols(tmp_path / "data")
    model = next((tmp_path / "data").glob("*.model"))
    model.write_bytes(model.read_bytes() + b"\x1a\x00")
    assert cli.main(command) == 2
    assert "cuts text into other pieces now than when the model was trained" in capsys.readouterr().err
    assert cli.main([*command, "--segmentation", str(folder / "data")]) == 0
    assert capsys.readouterr().out == translation


def test_counts_are_no_part_of_the_fingerprint(other_data):
    before = fingerprint(other_data)
    assert set(before) == {"dict.src.txt", "dict.tgt.txt"}
    for path in other_data.glob("dict.*.txt"):
        path.write_text("".join(line.rpartition(" ")[0] + " 7\n" for line in path.read_text().splitlines()))
    assert changed_files(before, fingerprint(other_data)) == []
    swap_symbols(other_data)
    assert changed_files(before, fingerprint(f"{other_data}:elsewhere")) == ["dict.src.txt", "dict.tgt.txt"]
    assert changed_files(None, before) == changed_files({}, before) == changed_files({"other": "x"}, before) == []


def test_a_language_whose_code_has_a_hyphen(config, owf):
    """fairseq finds no languages in the names of such files."""
    folder = Path("corpus")
    folder.mkdir()
    write_data(folder)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.src").rename(folder / f"{split}.en")
        (folder / f"{split}.tgt").rename(folder / f"{split}.pt-BR")
    prefixes = [f"--{split}pref={folder / split}" for split in ("train", "valid", "test")]
    run("preprocess", "-s", "en", "-t", "pt-BR", *prefixes, "--destdir", "hyphen", "--joined-dictionary")
    status, out, err, _ = owf("--data", "hyphen", "--max-update", 1)
    assert status == 0, err
    assert "--source-lang en --target-lang pt-BR" in " ".join(out.replace("\\", "").split())
    assert read_checkpoint("model/checkpoint_last.pt")["cfg"]["task"]["target_lang"] == "pt-BR"
    assert "--source-lang" not in plan("c.yaml").command  # a training that began without them goes on


def test_pairs_that_fairseq_cannot_split(config):
    words = ["--task", "translation_multi_simple_epoch", "--lang-pairs", "en-de,en-pt-BR"]
    (problem,) = language_problems(plan("c.yaml", words).args)
    assert problem.startswith("`--lang-pairs` en-pt-BR: fairseq splits a pair at its one hyphen")
