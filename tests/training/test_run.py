"""From a config and the user's flags to fairseq-train's: who wins, how many GPUs, what is refused."""

import pytest
import torch

from owf_fairseq.errors import InputError
from owf_fairseq.training.processes import Batch, Launch, find_launch
from owf_fairseq.training.run import plan

TORCHRUN = {"MASTER_ADDR": "host", "MASTER_PORT": "1", "WORLD_SIZE": "16", "RANK": "9"}


def slurm(**variables):
    return {"SLURM_JOB_NODELIST": "host[1-2]", "SLURM_PROCID": "1"} | {
        f"SLURM_{name}": str(value) for name, value in variables.items()
    }


@pytest.mark.parametrize(
    ("environment", "gpus", "launch"),
    [
        ({}, 0, Launch(1, 0)),
        ({}, 8, Launch(8, 0)),
        (TORCHRUN, 8, Launch(16, 9, "torchrun")),
        ({**TORCHRUN, "WORLD_SIZE": "2", "RANK": "1"}, 1, Launch(2, 1, "torchrun")),
        (slurm(NNODES=2, NTASKS_PER_NODE=1, NTASKS=2), 8, Launch(16, 1, "slurm")),
        (slurm(NNODES=2, NTASKS=2), 4, Launch(8, 1, "slurm")),
        (slurm(NNODES=2, NTASKS=8), 8, Launch(8, 1, "slurm")),
        (slurm(NNODES=1, NTASKS=1), 4, Launch(4, 0)),  # a job on one machine, as without SLURM
        ({"WORLD_SIZE": "16"}, 1, Launch(1, 0)),  # not all that torchrun sets
    ],
)
def test_the_launcher(environment, gpus, launch):
    assert find_launch(environment, gpus) == launch


@pytest.mark.parametrize(
    ("size", "processes", "update_freq"), [(3584, 1, 128), (3584, 8, 16), (3584, 3, 43), (7168, 8, 8), (3584, 512, 1)]
)
def test_an_update_stays_as_large(size, processes, update_freq):
    batch = Batch("tokens", size, 458_752)
    assert batch.update_freq(processes) == update_freq
    assert f"{size * processes * update_freq:,} tokens" in batch.describe(processes, update_freq)
    assert ("config's" in batch.describe(processes, update_freq)) == (processes in (3, 512))


@pytest.fixture
def gpus(monkeypatch):
    """Lets a test say how many GPUs there are."""

    def set_number(number):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: number)

    return set_number


def flags(*words, environment=None, **options):
    return plan("wmt22_en_de/big", words, environment=environment or {}, **options).flags


@pytest.mark.parametrize(
    ("number", "words", "update_freq"),
    [
        (8, [], "16"),
        (1, [], "128"),
        (0, [], "128"),
        (8, ["--max-tokens", "7168"], "8"),
        (8, ["--update-freq", "5"], "5"),
        (8, ["--update-freq", "5,6"], "5,6"),
        (0, ["--distributed-world-size", "8"], "16"),
        (8, ["--cpu", "--fp32"], "128"),
    ],
)
def test_update_freq_by_gpus(number, words, update_freq, gpus):
    gpus(number)
    given = flags(*[word for word in words if word != "--fp32"], fp32="--fp32" in words)
    assert given["update-freq"] == (update_freq,)


def test_fairseq_is_told_of_the_other_machines(gpus):
    gpus(1)  # fairseq would train on this one alone
    given = flags(environment={**TORCHRUN, "WORLD_SIZE": "2"})
    assert (given["distributed-world-size"], given["update-freq"]) == (("2",), ("64",))
    assert "distributed-world-size" not in flags()
    gpus(8)  # fairseq would start eight processes, without a GPU
    assert flags("--cpu")["distributed-world-size"] == ("1",)


def test_flags_win_under_all_of_their_names():
    given = flags("--lr=0.1", "--max-sentences", "7", "-s", "ro", "--arch", "owf_tiny", "--lr", "0.2", data="a:b")
    assert given["data"] == ("a:b",)
    assert (given["lr"], given["batch-size"], given["source-lang"]) == (("0.2",), ("7",), ("ro",))
    assert given["arch"] == ("owf_tiny",)
    assert given["dropout"] == ("0.1",)


def test_switches(tmp_path):
    (tmp_path / "row.yaml").write_text("arch: owf_tiny\ndata: d\nfp16: true\n")
    assert plan(str(tmp_path / "row.yaml"), environment={}).flags["fp16"] == ()
    (tmp_path / "off.yaml").write_text("base: row.yaml\nfp16: false\n")
    assert "fp16" not in plan(str(tmp_path / "off.yaml"), environment={}).flags
    assert "fp16" not in plan(str(tmp_path / "row.yaml"), fp32=True, environment={}).flags


@pytest.mark.parametrize("wanted", ["true", "false"])
def test_a_switch_of_a_config_says_what_holds(wanted, tmp_path):
    """fairseq's flag ``--left-pad-source`` switches it off."""
    (tmp_path / "row.yaml").write_text(f"arch: owf_tiny\ndata: d\ntask: translation\nleft-pad-source: {wanted}\n")
    training = plan(str(tmp_path / "row.yaml"), environment={})
    assert training.args.left_pad_source is (wanted == "true")
    assert ("--left-pad-source" in training.command) == (wanted == "false")
    assert plan(str(tmp_path / "row.yaml"), ["--left-pad-source"], environment={}).args.left_pad_source is False


def test_the_text_false_is_no_switch(tmp_path):
    (tmp_path / "row.yaml").write_text(
        "arch: owf_tiny\ndata: d\ntask: translation_multi_simple_epoch\nleft-pad-source: false\nwandb-project: false\n"
    )
    args = plan(str(tmp_path / "row.yaml"), ["--source-lang", "false"], environment={}).args
    assert (args.left_pad_source, args.wandb_project, args.source_lang) == ("false", "false", "false")


@pytest.mark.parametrize("value", ["-,0,0,1,1,-", "'-,0,0,1,1,-'", "['-', 0, 0, 1, 1, '-']"])
def test_a_pattern_that_begins_with_a_dash(value, tmp_path):
    """argparse takes it for a flag, unless it is joined to its own."""
    (tmp_path / "row.yaml").write_text(f"arch: owf_tiny\ndata: d\nencoder-ffn: {value}\n")
    training = plan(str(tmp_path / "row.yaml"), ["--decoder-ffn=-,0,1,2,3,4"], environment={})
    assert (training.args.encoder_ffn, training.args.decoder_ffn) == ("-,0,0,1,1,-", "-,0,1,2,3,4")
    assert "--encoder-ffn=-,0,0,1,1,-" in training.command


@pytest.mark.parametrize("update_freq", ["4,2", "[4, 2]"])
def test_one_update_freq_for_each_epoch(update_freq, gpus, tmp_path):
    gpus(2)
    (tmp_path / "row.yaml").write_text(f"arch: owf_tiny\ndata: d\nmax-tokens: 8\nupdate-freq: '{update_freq}'\n")
    training = plan(str(tmp_path / "row.yaml"), environment={})
    assert training.args.update_freq == [4, 2]
    assert training.describe_update() == (
        f"the size of an update is not known, so --update-freq {update_freq} is passed on as it is"
    )
    training = plan(str(tmp_path / "row.yaml"), ["--update-freq", "[3]"], environment={})
    assert training.describe_update().startswith("an update has up to 48 tokens: ")


def test_an_update_of_nothing_is_told_with_the_other_problems(tmp_path):
    (tmp_path / "row.yaml").write_text("arch: owf_tiny\nmax-tokens: 0\n")
    words = ["--distributed-world-size", "0", "--update-freq", "4,0", "--user-dir", "x"]
    with pytest.raises(InputError) as refused:
        plan(str(tmp_path / "row.yaml"), words, environment={})
    assert refused.value.problems == [
        "`max-tokens` must be at least 1, but is 0",
        "`distributed-world-size` must be at least 1, but is 0",
        "`update-freq` must be at least 1, but is 0",
        "`user-dir` is set by `owf train`: leave it out",
        f"{tmp_path}/row.yaml names no `data`: give `--data DIR`",
    ]


def test_a_polynomial_decay_ends_with_the_training():
    """fairseq's parser leaves the value empty, and fairseq then fails."""
    given = plan("quickstart/small", ["--max-update", "50"], environment={}).flags
    assert given["total-num-update"] == ("50",)
    given = plan("quickstart/small", ["--total-num-update", "70"], environment={}).flags
    assert given["total-num-update"] == ("70",)


def test_what_is_wrong_in_the_config_is_told_with_its_line(tmp_path):
    path = tmp_path / "row.yaml"
    path.write_text("arch: owf_tiny\ndata: d\nmax_update: 3\nlr: x\nfp16: 1\nmax-tokens: many\nbeam: 5\n")
    with pytest.raises(InputError) as refused:
        plan(str(path), ["--max-updates", "4", "--seed", "1", "2", "--lr", "1,"], environment={})
    where = "fairseq-train has no such flag with this arch, task, criterion, optimizer and scheduler"
    problems = refused.value.problems
    assert problems[0].startswith(f"{path}, line 3: `max_update`: {where}; did you mean `max-update`?")
    assert problems[1:4] == [
        f"{path}, line 4: `lr`: invalid value: 'x'",
        f"{path}, line 5: `fp16`: a switch must be true or false, but is '1'",
        f"{path}, line 6: `max-tokens`: invalid int value: 'many'",
    ]
    assert problems[4].startswith(f"{path}, line 7: `beam`: {where}")
    assert problems[5].startswith(f"`--max-updates`: {where}; did you mean `--max-update`")
    assert problems[6:] == ["`--seed`: must have one value, but has 1 2"]  # fairseq reads "1," as a list


@pytest.mark.parametrize(
    ("text", "words", "problem"),
    [
        ("data: d\n", [], "no `arch` is given"),
        ("arch: owf_tiny\n", [], "names no `data`: give `--data DIR`"),
        ("arch: owf_tinny\n", [], r"row.yaml, line 1: `arch`: there is no 'owf_tinny'; did you mean owf_tiny"),
        ("arch: owf_tiny\noptimizer: adm\n", [], "line 2: `optimizer`: there is no 'adm'; did you mean adam"),
        (
            "arch: owf_tiny\n",
            ["--task", "translatoin"],
            "`--task`: there is no 'translatoin'; did you mean translation",
        ),
        ("arch: owf_tiny\ndata: d\n", ["--user-dir", "x"], "`user-dir` is set by `owf train`: leave it out"),
        ("arch: owf_tiny\ndata: d\nuser-dir: x\n", [], "`user-dir` is set by `owf train`: leave it out"),
        ("arch: owf_tiny\ndata: d\n", ["word"], "'word' belongs to no flag"),
        ("arch: owf_tiny\ndata: d\n", ["--lr", "[0.1"], "`--lr`: invalid value"),
        ("arch: owf_tiny\ndata: d\n", ["--encoder-ffn", "cycle-7"], "`--encoder-ffn` must be one of .*7 blocks for 6"),
        ("arch: owf_tiny\ndata: d\nmax-tokens: 0\n", [], "`max-tokens` must be at least 1, but is 0"),
    ],
)
def test_refused(text, words, problem, tmp_path, capsys):
    (tmp_path / "row.yaml").write_text(text)
    with pytest.raises(InputError, match=problem):
        plan(str(tmp_path / "row.yaml"), words, environment={})
    assert capsys.readouterr() == ("", "")  # nothing of argparse's
