"""The commands of README.md and docs/ that work on the quickstart's data and on `runs/my-...` run as printed."""

import pytest
from documents_for_tests import TEXTS, blocks, commands
from fairseq_for_tests import REPOSITORY, spawn

from owf_fairseq import USER_DIR, cli

ORDER = ["README.md", "docs/decoder_only.md", "docs/translate_and_score.md"]
"""The documents whose commands others build on."""

ALL = [words for name in dict.fromkeys([*ORDER, *TEXTS]) for words in commands(TEXTS[name])]
OF_FAIRSEQ = [words for words in ALL if words[0].startswith("fairseq-")]
ON_A_MODEL = [words for words in ALL if words[0] == "owf" and any("runs/my-" in word for word in words)]
ALONE = [words for words in ALL if words[:2] in (["owf", "params"], ["owf", "configs"]) or "--dry-run" in words]


@pytest.fixture(scope="module")
def quickstart_folder(tmp_path_factory):
    """A folder as it is after the quickstart: the package, and toy text prepared where the README looks for it."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "owf_fairseq").symlink_to(USER_DIR)
    corpus = folder / "runs/quickstart-en-de/raw"
    corpus.mkdir(parents=True)
    for split, sentences in (("train", 200), ("valid", 10), ("test", 10)):
        english = [f"turn on light number {number} in room {number % 7}" for number in range(sentences)]
        (corpus / f"{split}.en").write_text("\n".join(english) + "\n")
        (corpus / f"{split}.de").write_text("\n".join(line.upper() for line in english) + "\n")
    prefixes = [argument for split in ("train", "valid", "test") for argument in (f"--{split}", str(corpus / split))]
    data = str(folder / "runs/quickstart-en-de/data")
    assert cli.main(["prepare", *prefixes, "--langs", "en-de", "--vocab-size", "120", "--output", data]) == 0
    return folder


@pytest.mark.parametrize("words", [words for words in ALONE if "mirror" not in words], ids=" ".join)
def test_command_that_needs_nothing(words, monkeypatch, capsys):
    monkeypatch.chdir(REPOSITORY)
    assert cli.main(words[1:]) == 0
    assert capsys.readouterr().out


def test_train_generate_python_and_tools_run_as_printed(quickstart_folder, monkeypatch, capsys):
    assert [words[0] for words in OF_FAIRSEQ] == ["fairseq-train", "fairseq-generate", "fairseq-train"]
    for program, *words in OF_FAIRSEQ:
        done = spawn(program.removeprefix("fairseq-"), *words, cwd=quickstart_folder)
        assert done.returncode == 0, done.stderr[-2000:]
        if program == "fairseq-generate":
            assert sum(line.startswith("H-") for line in done.stdout.splitlines()) == 10
    monkeypatch.chdir(quickstart_folder)
    [code] = blocks(TEXTS["docs/fairseq.md"], "python")
    exec(compile(code, "docs/fairseq.md", "exec"), {})
    assert capsys.readouterr().out.strip()
    tools = {"inspect", "average", "convert", "translate", "evaluate", "benchmark", "report", "export", "similarity"}
    assert {words[1] for words in ON_A_MODEL} == tools
    for words in ON_A_MODEL:
        assert cli.main(words[1:]) == 0, words
        assert words[1] == "translate" or capsys.readouterr().out.strip()
    translated = (quickstart_folder / "runs/my-model/test.de").read_text()
    assert len(translated.splitlines()) == 10
    assert (quickstart_folder / "runs/my-model/served.de").read_text() == translated
