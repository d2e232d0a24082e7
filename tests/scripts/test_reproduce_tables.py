"""scripts/reproduce_tables.sh and quickstart.sh from text to table, with small models and few updates."""

import json
import os
import signal
import subprocess
import time
import zipfile

import pytest
from fairseq_for_tests import REPOSITORY
from scripts_for_tests import SHARED_DATA, Scripts, lines_of

from owf_fairseq import cli

DATA = SHARED_DATA / "multi30k"
ROWS = {
    "small": "Transformer Big",
    "small_shared_enc_no_dec": "SharedEncNoDec 4096",
    "small_shared_enc_no_dec_512": "SharedEncNoDec 24576",
    "small_one_wide_ffn": "SharedEncNoDec 49152",
    "small_shared_enc_no_dec_2048": "SharedEncNoDec 98304",
}
"""The paper's rows of its table of One Wide FFN, in its order, by the config of each."""

QUICK = "--max-update 2 --max-tokens 300 --max-valid-steps 1".split()


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


def called(scripts):
    """The subcommands of ``owf`` that the last script ran, but for those that change nothing."""
    return [command[0] for command in scripts.commands if command[0] not in ("configs", "params")]


def cells_of(table):
    """The cells of a Markdown table without its header."""
    rows = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no Multi30k in {DATA}")
def test_a_table_from_the_text(scripts):
    """All rows in the paper's order, ours and the paper's; repeated, it does only what is missing."""
    run = scripts.folder / "run"
    small = ["--limit", "300", "--vocab-size", "200", "--sentences", "4", "--speed", "1"]
    call = ["reproduce_tables.sh", "--table", "one_wide", "--dataset", "multi30k", "--local", DATA, *small]
    call += ["--jobs", "2", *QUICK, "--output", "run"]
    done = scripts.succeed(*call)
    assert called(scripts) == ["pairs"] * 3 + ["prepare"] + ["train"] * 5 + ["translate"] * 5 + [
        "evaluate",
        "benchmark",
        "report",
    ]
    benchmark = next(command for command in scripts.commands if command[0] == "benchmark")
    assert [word.split("=")[0] for word in benchmark[1:6]] == list(ROWS)  # in one run
    assert benchmark[benchmark.index("--sentences") + 1] == "1"

    table = (run / "table.md").read_text(encoding="utf-8")
    assert [cells[0] for cells in cells_of(table)] == [f"{row} ({name})" for name, row in ROWS.items()]
    header = [cell.strip() for cell in table.splitlines()[0].strip("|").split("|")]
    for cells, bleu, percent in zip(
        cells_of(table), (35.6, 35.3, 35.7, 36.5, 36.4), (100, 60, 80, 100, 145), strict=True
    ):
        assert cells[header.index("BLEU") + 1].startswith(str(bleu))
        assert cells[header.index("parameters, %") + 1] == str(percent)
        for column in ("BLEU", "chrF", "tokens/s", "speed, %", "parameters"):
            assert cells[header.index(column)] not in ("", "-"), column
    shares = [int(cells[header.index("parameters, %")]) for cells in cells_of(table)]
    assert shares[1] < shares[2] < shares[3] < shares[4]
    budget = "300 training pairs, 2 updates of the training recipe of configs/multi30k, with " + " ".join(
        ["--limit 300 --sentences 4 --vocab-size 200", *QUICK]
    )
    assert budget in table.splitlines()[-1]
    assert done.stdout.rstrip().endswith(f"{run}/table.md")
    assert table in done.stdout[done.stdout.index("\n| model |") :]
    scores = json.loads((run / "scores.json").read_text())
    assert (scores["segments"], scores["significance"]["baseline"]) == (4, "small")
    assert len(lines_of(run / "small_one_wide_ffn/test.de")) == 4

    scripts.succeed(*call)
    assert called(scripts) == ["evaluate", "report"]
    assert (run / "table.md").read_text(encoding="utf-8") == table
    (run / "steps/train-small_one_wide_ffn.done").unlink()
    (run / "steps/translate-small.done").unlink()
    scripts.succeed(*call)
    assert called(scripts)[0] == "train"
    assert scripts.commands[1][1] == "multi30k/small_one_wide_ffn"
    assert set(called(scripts)) <= {"train", "translate", "evaluate", "benchmark", "report"}
    assert called(scripts).count("train") == 1

    other = scripts.run(*call, "--limit", "200")
    assert other.returncode == 2
    assert "run was begun with other settings" in other.stderr


def test_training_that_fails_is_named_and_the_others_are_kept(scripts):
    """The data are there already, and one model can't be trained."""
    run = scripts.folder / "run"
    (run / "data").mkdir(parents=True)
    (run / "small_no_dec").mkdir()
    scripts.add(
        "owf",
        f"""#!/bin/bash
case "$*" in
  configs*) printf 'multi30k/%s\\n' small small_no_dec small_no_enc ;;
  *--dry-run*) echo fairseq-train --max-update 7 ;;
  *small_no_dec*) echo "cannot be trained"; exit 3 ;;
  *)
    sleep 0.3
    echo "$*" >>{run}/calls
    echo "| INFO | train_inner | epoch 001: 5 / 9 loss=9.274, nll_loss=8.733, wps=1609.8, num_updates=5, lr=0.1"
    echo '| INFO | valid | epoch 001 | valid on "valid" subset | loss 9 | nll_loss 8.1 | ppl 2 | num_updates 7 | best 9'
    ;;
esac
""",
    )
    failed = scripts.run("reproduce_tables.sh", "--dataset", "multi30k", "--prepared", "--jobs", "2", "--output", "run")
    assert failed.returncode == 1
    assert "training failed for small_no_dec\n" in failed.stderr
    assert "cannot be trained" in failed.stderr
    assert len([call for call in lines_of(run / "calls") if call.startswith("train ")]) == 2
    assert "small: 5 of 7 updates, loss 8.733 bits a token, 1609.8 tokens a second\n" in failed.stdout
    assert "small_no_enc: 7 of 7 updates, held-out loss 8.1\n" in failed.stdout
    assert "| INFO | valid |" in (run / "small/train.log").read_text()
    assert sorted(path.name for path in (run / "steps").glob("*.done")) == [
        "train-small.done",
        "train-small_no_enc.done",
    ]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_no_trainer_outlives_the_script(how, scripts):
    run = scripts.folder / "run"
    (run / "data").mkdir(parents=True)
    scripts.add(
        "owf",
        f"""#!/bin/bash
case "$*" in
  configs*) printf 'multi30k/%s\\n' small small_no_dec small_no_enc ;;
  *--dry-run*) echo fairseq-train --max-update 7 ;;
  *) echo $$ >>{run}/trainers; exec sleep 100 ;;
esac
""",
    )
    command = ["bash", REPOSITORY / "scripts/reproduce_tables.sh", "--dataset", "multi30k", "--prepared", "--jobs", "2"]
    process = subprocess.Popen(
        [*map(str, command), "--output", str(run)],
        env={**os.environ, "OWF_VENV": str(scripts.programs)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # the tests may run in the background, where a shell lets its jobs ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        wait_for(lambda: (run / "trainers").exists() and len(lines_of(run / "trainers")) == 2)
        trainers = [int(number) for number in lines_of(run / "trainers")]
        assert all(map(is_running, trainers))
        process.send_signal(how)
        assert process.wait(30) != 0
        wait_for(lambda: not any(map(is_running, trainers)))
    finally:
        process.kill()
    assert len(lines_of(run / "trainers")) == 2  # the third had not begun
    assert not list((run / "steps").glob("*.done"))


def wait_for(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(number):
    try:
        with open(f"/proc/{number}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name the data, --dataset NAME"),
        (["--dataset", "wmt23"], "'wmt23', which is none of wmt22_en_de"),
        (["--dataset", "multi30k", "--table", "two_wide"], "no row of table 'two_wide' for 'multi30k', which has"),
        (["--dataset", "multi30k", "--table", "other"], "no row of table 'other' for 'multi30k', which has"),
        (["--dataset", "multi30k", "--limit", "0"], "--limit must be a whole number above 0, but is 0"),
        (["--dataset", "multi30k", "--jobs", "two"], "--jobs must be a whole number above 0, but is two"),
        (["--dataset", "multi30k", "--langs", "en-fr"], "--langs: multi30k has no other languages"),
        (["--dataset", "multi30k", "--max-updates", "3"], "`--max-updates`: fairseq-train has no such flag"),
        (["--dataset", "multilingual", "--table", "other", "--langs", "en fr"], "of the languages en fr, but is de-en"),
        (["--dataset", "multilingual", "--table", "other", "--speed", "de-xx"], "ko pt sw zh, but is de-xx"),
        (["--dataset", "wmt22_en_de", "--cpu"], "half precision (fp16), which needs a GPU: add --fp32"),
    ],
)
def test_it_refuses_before_it_does_anything(arguments, problem, scripts):
    refused = scripts.run("reproduce_tables.sh", *arguments, "--output", "run")
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert not (scripts.folder / "run").exists()


def make_corpus(folder):
    """A wheel as the quickstart's, with 300 sentences in English and a language whose name has a hyphen."""
    things = [f"{verb} {what}" for verb in ("open", "close", "clean") for what in ("door", "lamp", "car", "cup", "box")]
    english = [f"please {thing} number {n} now" for thing in things for n in range(20)]
    tables = {"en": english, "pt-BR": [" ".join(f"{word}o" for word in line.split()) for line in english]}
    with zipfile.ZipFile(folder / "homeassistant-2026.11.0-py3-none-any.whl", "w") as wheel:
        for lang, lines in tables.items():
            table = json.dumps({str(number): line for number, line in enumerate(lines)})
            wheel.writestr(f"homeassistant/components/c/translations/{lang}.json", table)


def test_quickstart_with_any_archs_and_languages(scripts):
    """One that has no encoder is among them. Nothing is installed: the mark of an installation is there."""
    make_corpus(scripts.folder)
    state = subprocess.run(
        ["bash", "-c", "cat pyproject.toml constraints.txt | cksum"], cwd=REPOSITORY, capture_output=True, text=True
    ).stdout
    (scripts.programs / ".installed").write_text(f"{state}5\n")
    scripts.add("python", "#!/bin/sh\nexit 97\n")  # whatever happens, there is no pip to install with
    archs = ["owf_decoder_only_tiny", "owf_tiny_no_dec"]
    call = ["quickstart.sh", "--smoke", "--langs", "en-pt-BR", "--local", ".", "--output", "run"]
    done = scripts.succeed(*call, "--archs", " ".join(archs))
    trained = [command for command in scripts.commands if command[0] == "train"]
    assert len(trained) == 2
    for name, command in zip(sorted(archs), sorted(trained), strict=True):
        assert command[command.index("--source-lang") :][:4] == ["--source-lang", "en", "--target-lang", "pt-BR"]
        resolved = (scripts.folder / f"run/{name}/resolved.yaml").read_text()
        assert f"  arch: {name}\n" in resolved
        assert "  max-update: 6\n" in resolved
        assert ("encoder-normalize-before" in resolved) == (name == "owf_tiny_no_dec")
        assert len(lines_of(scripts.folder / f"run/{name}/test.pt-BR")) == len(
            lines_of(scripts.folder / "run/raw/test.en")
        )
    table = (scripts.folder / "run/table.md").read_text(encoding="utf-8")
    assert [cells[0] for cells in cells_of(table)] == archs
    assert "24 training pairs, 6 updates of the training recipe of configs/quickstart, with --limit 24" in table
    assert done.stdout.index("reference ") < done.stdout.index(table)
    refused = scripts.run(*call, "--archs", "owf_tiny")
    assert refused.returncode == 2
    assert "was begun with other settings" in refused.stderr
    refused = scripts.run("quickstart.sh", "--archs", "owf_tinny", "--output", "other")
    assert (refused.returncode, (scripts.folder / "other").exists()) == (2, False)
    assert "there is no owf_tinny" in refused.stderr


def test_the_configs_of_a_table_are_listed(capsys):
    assert cli.main(["configs", "--table", "one_wide", "--dataset", "multi30k"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"multi30k/{name}" for name in ROWS]
    assert cli.main(["configs", "--dataset", "wmt16_en_ro"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    for words, problem in ((["--dataset", "wmt23"], "must be one of"), (["--table", "one_wide"], "needs `--dataset`")):
        assert cli.main(["configs", *words]) == 2
        assert problem in capsys.readouterr().err
