"""A stranger's file runs nothing, opens nothing outside its folder, and writes nothing but text to the terminal."""

import ast
import importlib
import io
import json
import os
import sys
from argparse import Namespace
from pathlib import Path

import fairseq
import pytest
import torch
from fairseq import optim, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_for_tests import DECODING, run
from models_for_tests import checkpoint_of, make_model, make_task, parse

from owf_fairseq import USER_DIR, cli, compat
from owf_fairseq.checkpoints.checkpoint import read_checkpoint
from owf_fairseq.data.recorded import find_data
from owf_fairseq.data.segmentation import Segmentation
from owf_fairseq.errors import InputError, printable
from owf_fairseq.model_names import checkpoints_of

ARCH = "owf_tiny_one_wide_ffn"
SIZE = "--encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 8 --decoder-embed-dim 8".split()
SIZE += "--encoder-ffn-embed-dim 8 --decoder-ffn-embed-dim 8 --share-all-embeddings".split()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a checkpoint, its data, text that is in pieces, and what the commands read besides."""
    monkeypatch.chdir(tmp_path)
    state = checkpoint_of(make_model(ARCH, *SIZE), parse(ARCH, *SIZE))
    state["cfg"]["task"] = {"_name": "translation", "data": "data", "source_lang": "en", "target_lang": "de"}
    Path("data").mkdir()
    for lang in ("en", "de"):
        make_task().source_dictionary.save(f"data/dict.{lang}.txt")
        Path(f"text.{lang}").write_text("w1 w2 w3\nw4 w5\n")
    Path("data/segmentation.json").write_text(json.dumps({"type": "none", "source": "en", "target": "de"}))
    torch.save(state, "model.pt")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"w1 w2\n")))
    return tmp_path


def changed(path="model.pt", flags=(), **parts):
    """Writes the checkpoint with other flags of the model and other parts of `cfg`."""
    state = read_checkpoint("model.pt")
    vars(state["cfg"]["model"]).update(flags)
    state["cfg"].update(parts)
    torch.save(state, path)


COMMANDS = {
    "inspect": ["inspect", "model.pt"],
    "translate": ["translate", "model.pt", "--input", "text.en", "--output", "out.de", "--cpu"],
    "average": ["average", "model.pt", "--output", "average.pt"],
    "convert": ["convert", "model.pt", "--to", "individual", "--output", "individual.pt"],
    "export": ["export", "model.pt", "--output", "exported", "--verify", "text.en"],
    "similarity": ["similarity", "model.pt", "a=model.pt", "--src", "text.en", "--ref", "text.de", "--cpu"],
    "benchmark": ["benchmark", "model.pt", "--lengths", "2/2", "--sentences", "1", "--runs", "1", "--cpu"],
}
HOSTILE = "(__import__('os').system('touch was-run'),None)[1]"
EVALUATED = ("encoder_xformers_att_config", "decoder_xformers_att_config", "adaptive_softmax_cutoff")


@pytest.mark.parametrize("flag", EVALUATED)
def test_no_command_runs_a_recorded_flag(folder, capsys, flag):
    changed(flags={flag: HOSTILE, "share_all_embeddings": flag != "adaptive_softmax_cutoff"})
    for command, words in COMMANDS.items():
        assert cli.main(words) == 2, command
        said = capsys.readouterr().err
        assert f"`--{flag.replace('_', '-')}` is" in said, said
        assert "is not read as Python" in said
    assert {path.name for path in folder.iterdir()} == {"data", "text.en", "text.de", "model.pt"}


@pytest.mark.parametrize("flag", EVALUATED)
def test_fairseqs_own_commands_with_the_plugin_run_none_either(trained, data_bin, tmp_path, monkeypatch, flag):
    monkeypatch.chdir(tmp_path)
    state = read_checkpoint(trained / "checkpoint_last.pt")
    setattr(state["cfg"]["model"], flag, HOSTILE)
    torch.save(state, "model.pt")
    with pytest.raises(InputError, match=f"`--{flag.replace('_', '-')}` is .*, which is not read as Python"):
        run("generate", data_bin, "--path", "model.pt", "--user-dir", USER_DIR, *DECODING)
    assert not Path("was-run").exists()


def test_flags_of_optimizers_and_of_other_models_run_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weights = [torch.nn.Parameter(torch.zeros(2))]
    for optimizer, flag in (("adam", "adam-betas"), ("adamax", "adamax-betas"), ("adafactor", "adafactor-eps")):
        args = parse(ARCH, "--optimizer", optimizer, f"--{flag}", HOSTILE, "--lr", "0.1")
        cfg = convert_namespace_to_omegaconf(args).optimizer if optimizer == "adam" else args
        with pytest.raises(InputError, match=f"`--{flag}` is"):
            optim.build_optimizer(cfg, weights)
    fconv = importlib.import_module("fairseq.models.fconv")
    args = Namespace(encoder_layers=f" {HOSTILE}")
    fconv.base_architecture(args)
    with pytest.raises(InputError, match="`--encoder-layers` is"):
        fconv.FConvModel.build_model(args, make_task())
    assert not Path("was-run").exists()


def test_usual_values_are_read_as_before():
    for text, value in {
        "(0.9, 0.98)": (0.9, 0.98),
        "[0.001]": [0.001],
        "None": None,
        "10000,20000": (10000, 20000),
        "-1e-3": -0.001,
        " {'block_size': 4}": {"block_size": 4},
        "[(512, 3)] * 2 + [(8, 1)]": [(512, 3), (512, 3), (8, 1)],
    }.items():
        assert compat.read_literal(text) == value
    assert utils.eval_str_list("10,20", int) == [10, 20]
    assert utils.eval_bool("False") is False
    assert utils.eval_bool(True, default=True) is True  # fairseq's own way: what is no text is the default
    adam = ["--optimizer", "adam", "--adam-betas", "(0.8, 0.88)", "--lr", "0.1"]
    cfg = convert_namespace_to_omegaconf(parse(ARCH, *adam))
    made = optim.build_optimizer(cfg.optimizer, [torch.nn.Parameter(torch.zeros(2))])
    assert made.optimizer_config["betas"] == (0.8, 0.88)
    assert make_model(ARCH, "--adaptive-softmax-cutoff", "10,20").decoder.adaptive_softmax.cutoff[:2] == [10, 20]


@pytest.mark.parametrize(
    "text",
    [
        "", "foo", "a.b", "f()", "lambda: 0", "[n for n in (1,)]", "f'{1}'", "(x := 1)", "[0] * 10**9", "'a' * 99",
        "[[0]] * 99999999", "1 + 1", "(" * 5000, "-" * 50000 + "1", "9" * 5000, "{[]: 1}", "\0", "[1] * True",
    ],
)  # fmt: skip
def test_nothing_else_is(text):
    with pytest.raises(InputError, match="is not read as Python"):
        compat.read_literal(text)


def test_no_eval_of_fairseqs_is_left():
    """Whatever the build: a module that evaluates text is loaded when the plugin is, and evaluates literals only."""
    root = Path(fairseq.__file__).parent
    found = []
    for path in [*root.rglob("*.py"), *(root.parent / "fairseq_cli").glob("*.py")]:
        parts = path.relative_to(root.parent).with_suffix("").parts
        if "examples" in parts:  # are not imported by fairseq
            continue
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        assert "exec" not in names, path
        if "eval" in names:
            found.append(".".join(parts))
    for name in found:
        if name.startswith("fairseq_cli."):  # the command itself, which is loaded first
            importlib.import_module(name)
            compat.allow_literals_only()
        assert vars(sys.modules[name])["eval"] is compat.read_literal, name
    assert {"fairseq.utils", "fairseq.optim.adam", "fairseq.models.fconv"} <= set(found)


def test_a_recorded_user_dir_is_not_imported(folder):
    Path("plugin").mkdir()
    Path("plugin/__init__.py").write_text("open('was-run', 'w')")
    changed(common={"user_dir": str(folder / "plugin")})
    assert cli.main(COMMANDS["inspect"]) == cli.main(COMMANDS["translate"]) == 0
    assert not Path("was-run").exists()


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "..", "sub/codes", ""])
@pytest.mark.parametrize(("kind", "entry"), [("sentencepiece", "model"), ("moses-bpe", "codes")])
def test_a_segmentation_names_files_of_its_folder_only(folder, capsys, kind, entry, name):
    Path("secret").write_text("#version: 0.2\nmine")
    record = {"type": kind, "source": "en", "target": "de", entry: name}
    Path("data/segmentation.json").write_text(json.dumps(record))
    for command in ("translate", "export"):
        assert cli.main(COMMANDS[command]) == 2
        assert "which is no name of a file in " in capsys.readouterr().err
    assert not Path("exported").exists()


def test_languages_name_no_files_elsewhere(folder, capsys):
    changed(task={"data": "data", "source_lang": "/../../x", "target_lang": "de"})
    assert cli.main(COMMANDS["translate"]) == 2
    assert "its language '/../../x' is no language" in capsys.readouterr().err


def test_control_characters_of_a_file_do_not_reach_the_terminal(folder, capsys):
    escape = "\x1b]0;title\x07\x9b31m\u202e"
    changed(flags={"arch": f"owf{escape}"})
    assert cli.main(COMMANDS["inspect"]) == 2
    said = capsys.readouterr().err
    assert "\\x1b]0;title\\x07\\x9b31m\\u202e" in said
    changed(flags={"arch": ARCH, "encoder_embed_path": escape})
    assert cli.main(COMMANDS["inspect"]) == 0
    said += capsys.readouterr().out
    assert said.count("\\x1b") == 2
    assert not set(said) & set("\x1b\x07\x9b\u202e")
    assert printable("schön – 漢字 é\u0301") == "schön – 漢字 é\u0301"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_diverged_model_is_told_by_all(folder, capsys, value):
    state = read_checkpoint("model.pt")
    state["model"]["encoder.layers.0.fc1.weight"][1, 2] = value
    torch.save(state, "model.pt")
    for command, words in COMMANDS.items():
        assert cli.main(words) == (1 if command == "inspect" else 2), command
        captured = capsys.readouterr()
        said = captured.out + captured.err
        assert "infinite or none (NaN) in 1 of its weights, among them encoder.layers.0.fc1.weight" in said, command
        assert "its training has diverged" in said


def test_a_folder_that_may_not_be_read_is_passed_over(folder, monkeypatch):
    """As for everybody but root: it can be neither listed nor looked into."""
    changed(task={"data": "/closed/data", "source_lang": None, "target_lang": None})
    state = read_checkpoint("model.pt")

    def closed(original):
        def refuse(path, *args, **flags):
            if str(path).startswith("/closed"):
                raise PermissionError(13, "Permission denied", str(path))
            return original(path, *args, **flags)

        return refuse

    for name in ("stat", "listdir"):
        monkeypatch.setattr(os, name, closed(getattr(os, name)))
    with pytest.raises(InputError, match="/closed/data may not be read, and its data"):
        find_data(state, "elsewhere/model.pt")
    for kind in ("idx", "bin"):
        Path(f"data/train.en-de.en.{kind}").touch()
    assert find_data(state, "elsewhere/data/../model.pt", "data").folder == Path("data")
    state["cfg"]["task"] |= {"source_lang": "en", "target_lang": "de"}
    assert find_data(state, folder / "model.pt").folder == folder / "data"


def test_a_path_may_have_a_colon(folder, capsys):
    os.makedirs("run:1/data:2")
    for path in ("data", "model.pt"):
        Path(path).rename(f"run:1/{'data:2' if path == 'data' else path}")
    os.symlink("run:1/model.pt", "model.pt")
    changed("run:1/model.pt", task={"data": "run:1/data:2", "source_lang": "en", "target_lang": "de"})
    assert cli.main(["translate", "run:1/model.pt", *COMMANDS["translate"][2:]]) == 0
    assert len(Path("out.de").read_text().splitlines()) == 2
    assert checkpoints_of("run:1/model.pt:model.pt:none") == ["run:1/model.pt", "model.pt", "none"]


def test_a_torchscript_archive_is_called_what_it_is(folder, capsys):
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), "model.pt")
    assert cli.main(COMMANDS["inspect"]) == 2
    said = capsys.readouterr().err
    assert "is a TorchScript archive" in said
    assert "weights_only" not in said


def test_numbers_that_nothing_can_be_computed_with(folder, capsys):
    for flag, value in (("--max-len-b", "9" * 400), ("--lenpen", "nan"), ("--max-len-a", "1e300"), ("--beam", "99999")):
        assert cli.main([*COMMANDS["translate"], flag, value]) == 2
        assert f"`{flag}` must be" in capsys.readouterr().err
    for flag in ("--encoder-layers", "--decoder-ffn-embed-dim", "--max-target-positions"):
        assert cli.main(["params", ARCH, flag, "1000000000"]) == 2
        assert f"`{flag}` must be" in capsys.readouterr().err


def test_a_record_in_a_folder_is_still_read(folder):
    assert Segmentation.load("data").encode("w1  w2") == "w1 w2"
