"""Several trainings of one `owf train`: what each is, some at a time, with their own logs; none outlives it."""

import os
import signal
import sys
import threading
import time

import pytest

from owf_fairseq import cli
from owf_fairseq.errors import InputError
from owf_fairseq.training.several import members, progress_line, train_members

FAKE = """
import os, sys, time
config = sys.argv[2]
with open("calls", "a") as file:
    print(config, os.environ.get("OMP_NUM_THREADS"), os.getpid(), file=file, flush=True)
print("| INFO | train_inner | epoch 001: 5 / 9 loss=9.274, nll_loss=8.733, ppl=2, wps=1609.8, num_updates=5, lr=0.1")
print('| INFO | valid | epoch 001 | valid on "valid" subset | loss 9 | nll_loss 8.1 | ppl 2 | num_updates 7 | best 9')
if config.endswith("no_dec"):
    sys.exit("cannot be trained")
time.sleep(float(os.environ.get("FAKE_SECONDS", 0)))
"""
CONFIGS = ["multi30k/small", "multi30k/small_no_dec", "multi30k/small_no_enc"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fake(folder):
    (folder / "fake.py").write_text(FAKE)
    return [sys.executable, "-IS", str(folder / "fake.py")]


def calls(folder):
    return [line.split() for line in (folder / "calls").read_text().splitlines()] if (folder / "calls").exists() else []


def test_each_is_a_training_of_its_own(folder):
    for shard in ("shard-01", "shard-00"):
        (folder / "run/data" / shard).mkdir(parents=True)
    found = members(CONFIGS[:2], ["--max-update", "9"], "run", seeds=[2, 3])
    assert [one.name for one in found] == ["small_seed_2", "small_seed_3", "small_no_dec_seed_2", "small_no_dec_seed_3"]
    args = [one.training.args for one in found]
    assert {one.data for one in args} == {"run/data/shard-00:run/data/shard-01"}
    assert [(one.seed, one.save_dir, one.arch) for one in args[1:3]] == [
        (3, "run/small_seed_3", "owf_small"),
        (2, "run/small_no_dec_seed_2", "owf_small_no_dec"),
    ]
    words = cli.make_parser().parse_known_args(["train", *found[1].words])  # alone, it is the same
    (alone,) = members(words[0].configs, words[1], data=words[0].data)
    assert alone.training.flags == found[1].training.flags


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ({"configs": CONFIGS}, "several trainings need `--run DIR`"),
        ({"configs": CONFIGS[:1], "seeds": [2]}, "several trainings need `--run DIR`"),
        ({"configs": CONFIGS, "run": "run", "words": ["--save-dir=x"]}, "`--save-dir` does not go with `--run`"),
        ({"configs": ["multi30k/small", "quickstart/small"], "run": "run"}, "would be in the folder small of `--run`"),
        ({"configs": CONFIGS, "run": "run", "seeds": [2, 2]}, "would be in the folder small_seed_2"),
        ({"configs": ["multi30k/smal", "multi30k/x"], "run": "run"}, "there is no config 'multi30k/x'"),
    ],
)
def test_what_cannot_be_is_refused(what, problem, folder):
    with pytest.raises(InputError) as refused:
        members(**what)
    assert problem in str(refused.value)


def test_one_that_fails_does_not_hold_up_the_others(folder):
    said = []
    found = members(CONFIGS, ["--max-update", "7"], "run")
    assert train_members(found, 2, said.append, fake(folder)) == ["small_no_dec"]
    assert sorted(call[:2] for call in calls(folder)) == [[config, "1"] for config in CONFIGS]
    assert "small: the whole log is run/small/train.log" in said
    assert "small: 5 of 7 updates, loss 8.733 bits a token, 1609.8 tokens a second" in said
    assert "small_no_enc: 7 of 7 updates, held-out loss 8.1" in said
    (failure,) = [line for line in said if "training failed" in line]
    assert "cannot be trained" in failure
    assert "| INFO | valid |" in (folder / "run/small/train.log").read_text()


def test_one_at_a_time_has_all_threads(folder, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert train_members(members(CONFIGS[::2], [], "run"), 1, lambda line: None, fake(folder)) == []
    assert [call[:2] for call in calls(folder)] == [[config, "None"] for config in CONFIGS[::2]]


@pytest.mark.parametrize(("how", "ends"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_no_training_outlives_the_command(how, ends, folder, monkeypatch):
    monkeypatch.setenv("FAKE_SECONDS", "100")

    def stop():
        wait_for(lambda: len(calls(folder)) == 2)
        os.kill(os.getpid(), how)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = members([*CONFIGS[::2], "multi30k/small_shared_enc"], [], "run")
        stopper = threading.Thread(target=stop)
        stopper.start()
        begun = time.monotonic()
        with pytest.raises(ends):
            train_members(found, 2, lambda line: None, fake(folder))
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 60
    stopper.join()
    assert len(calls(folder)) == 2  # the third had not begun
    wait_for(lambda: not any(is_running(call[2]) for call in calls(folder)))


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


def test_other_lines_of_the_log_are_not_told():
    assert progress_line("| INFO | fairseq_cli.train | task: TranslationTask") is None
    assert progress_line("| INFO | train | epoch 001 | loss 9 | nll_loss 8.1 | wps 3 | num_updates 7") is None


def test_command_checks_all_before_the_first(folder, capsys, monkeypatch):
    (folder / "bad.yaml").write_text("arch: owf_tiny\ndata: nowhere\nfp16: true\n")
    assert cli.main(["train", "multi30k/small", "bad.yaml", "--run", "run", "--cpu"]) == 2
    said = capsys.readouterr().err
    assert "there are no data in run/data" in said
    assert "half precision" in said
    assert not (folder / "run").exists()
    assert cli.main(["train", "multi30k/small", "--jobs", "0"]) == 2
    assert "`--jobs` must be at least 1, but is 0" in capsys.readouterr().err
    assert cli.main(["train", *CONFIGS, "--run", "run", "--dry-run"]) == 0
    assert capsys.readouterr().out.count("fairseq-train") == 3
