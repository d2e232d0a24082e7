"""Training in half precision without a GPU, for every configuration.

fairseq itself trains so on a CPU with `--memory-efficient-fp16` and with `--fp16 --fp16-no-flatten-grads`. Plain
`--fp16` asks CUDA for the number of the current device, under which it keeps its flat copy of the parameters, and ends
where there is none. A tensor in a CPU's memory has None for that number: with None for an answer (`plain_fp16`), what
runs here is fairseq's very code for a GPU. `--bf16` on the command line is for TPUs only; in a hydra config it is not,
which `bf16_as_in_hydra` does. `--amp` on a CPU is single precision: autocasting and the scaled loss need CUDA, and are
put on the CPU by `amp_on_cpu`. What a GPU's own kernels do, `scripts/gpu_check.sh` shows.
"""

import functools
import re

import fairseq.trainer
import fairseq_cli.train
import pytest
import torch
from fairseq_for_tests import COPIER, TRAINING, run, text_sentences, train_on_text
from models_for_tests import TINY_ARCHS, all_weights, make_model, trained_weights

from owf_fairseq import USER_DIR, cli
from owf_fairseq.checkpoints.checkpoint import read_checkpoint
from owf_fairseq.checkpoints.stored_model import describe_state
from owf_fairseq.models.tied_weights import tied_names
from owf_fairseq.sharing import ARCHS

DECODER_ONLY = sorted(arch for arch, (size, _) in ARCHS.items() if size == "decoder_only_tiny")
WIDE = "owf_tiny_one_wide_ffn"
needs_no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="it is what fairseq does without CUDA")


@pytest.fixture
def train(data_bin, tmp_path, monkeypatch):
    """Runs fairseq-train with flags; returns the Trainer, as the training left it, and the log."""
    made = []

    class Kept(fairseq.trainer.Trainer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(fairseq_cli.train, "Trainer", Kept)

    def run_it(arch, *flags, updates=4, folder="model"):
        command = [data_bin, "--user-dir", USER_DIR, "--arch", arch, *TRAINING, "--max-update", str(updates)]
        log = run("train", *command, "--batch-size", "16", "--save-dir", tmp_path / folder, *flags)
        return made.pop(), log

    return run_it


@pytest.fixture
def plain_fp16(monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)


@pytest.fixture
def bf16_as_in_hydra(monkeypatch):
    """fairseq-hydra-train leaves `tpu` as it is when `bf16` is on."""
    main = fairseq_cli.train.main

    def without_tpu(cfg, *args, **kwargs):
        cfg.common.tpu = False
        return main(cfg, *args, **kwargs)

    monkeypatch.setattr(fairseq_cli.train, "main", without_tpu)


@pytest.fixture
def amp_on_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda.amp, "GradScaler", functools.partial(torch.amp.GradScaler, "cpu"))
    half = functools.partial(torch.autocast, "cpu", dtype=torch.float16)
    monkeypatch.setattr(torch.cuda.amp, "autocast", half)


def losses(log):
    """The loss of each update, by the update's number."""
    return {int(number): float(loss) for loss, number in re.findall(r" loss=([\d.]+),.*? num_updates=(\d+),", log)}


def scales(log):
    return {float(scale) for scale in re.findall(r" loss_scale=([\d.]+)", log)}


def check_stored_once(state, model):
    """Every trained tensor of the model is in the state under one name, as float32, with the very values."""
    weights = trained_weights(state)
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    named = dict(model.named_parameters())
    assert named.keys() <= weights.keys()
    assert not {name for names in tied_names(model).values() for name in names} & weights.keys()
    assert sum(weights[name].numel() for name in named) == sum(tensor.numel() for tensor in named.values())
    for name, tensor in named.items():
        assert torch.equal(weights[name], tensor.float()), name


@pytest.mark.parametrize("arch", [*TINY_ARCHS, *DECODER_ONLY])
def test_every_configuration_trains(arch, train, tmp_path):
    trainer, log = train(arch, "--memory-efficient-fp16")
    loss = losses(log)
    assert len(loss) == 4
    assert loss[4] < 0.9 * loss[1]
    assert scales(log) == {128}

    model = trainer.model
    assert type(trainer.optimizer).__name__ == "MemoryEfficientFP16Optimizer"
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float16}
    begun = make_model(arch, "--share-all-embeddings")
    assert tied_names(model) == tied_names(begun)
    weights = all_weights(model)
    assert all(torch.equal(weights[one], weights[first]) for first, ones in tied_names(begun).items() for one in ones)
    state = read_checkpoint(tmp_path / "model/checkpoint_last.pt")
    check_stored_once(state["model"], model)
    assert describe_state(state, "it").faults == []


EMA = "--store-ema --ema-decay 0.5".split()
WAYS = {
    # name: flags, fairseq's optimizer, type of the weights, fixtures
    "memory-efficient": (["--memory-efficient-fp16", *EMA], "MemoryEfficientFP16Optimizer", torch.float16, []),
    "plain": (["--fp16", *EMA, "--ema-fp32"], "FP16Optimizer", torch.float16, ["plain_fp16"]),
    "no-flatten": (["--fp16", "--fp16-no-flatten-grads"], "FP16Optimizer", torch.float16, []),
    "bf16": (["--bf16"], "FP16Optimizer", torch.bfloat16, ["bf16_as_in_hydra"]),
    "memory-efficient-bf16": (
        ["--memory-efficient-bf16"], "MemoryEfficientFP16Optimizer", torch.bfloat16, ["bf16_as_in_hydra"],
    ),
    "amp": (["--amp"], "AMPOptimizer", torch.float32, ["amp_on_cpu"]),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_way_goes_on_where_it_was(way, train, tmp_path, request):
    """Interrupted in the middle of an epoch of 4 updates, across its end.

    FP16Optimizer's float32 copy of the weights is in no checkpoint of fairseq's: the first update is the same, then the
    weights differ by their rounding.
    """
    flags, optimizer, dtype, fixtures = WAYS[way]
    for name in fixtures:
        request.getfixturevalue(name)
    whole, log = train(WIDE, *flags, "--save-interval-updates", "1", updates=6)
    assert type(whole.optimizer).__name__ == optimizer
    assert {parameter.dtype for parameter in whole.model.parameters()} == {dtype}
    assert tied_names(whole.model) == tied_names(make_model(WIDE, "--share-all-embeddings"))
    saved = [read_checkpoint(path) for path in tmp_path.glob("model/checkpoint[_1]*.pt")]
    states = {state["optimizer_history"][-1]["num_updates"]: state for state in saved}
    check_stored_once(states[6]["model"], whole.model)
    expected = losses(log)
    assert expected[4] < 0.9 * expected[1]
    assert scales(log) == (set() if dtype == torch.bfloat16 else {128})

    again, log = train(WIDE, *flags, "--restore-file", tmp_path / "model/checkpoint_1_3.pt", updates=6, folder="again")
    found = losses(log)
    assert found.keys() == {4, 5, 6}
    assert found[4] == expected[4]
    if optimizer == "FP16Optimizer":
        assert found == pytest.approx({update: expected[update] for update in found}, abs=0.02)
    else:
        assert found == {update: expected[update] for update in found}
        one, other = (dict(trainer.model.named_parameters()) for trainer in (whole, again))
        assert all(torch.equal(one[name], other[name]) for name in one)
    if "--store-ema" in flags:
        check_ema(states, whole)
        if "--ema-fp32" not in flags:
            one, other = (dict(trainer.ema.get_model().named_parameters()) for trainer in (whole, again))
            assert all(torch.equal(one[name], other[name]) for name in one)


def check_ema(states, trainer):
    """The moving average moves a shared weight once an update, and holds it once."""
    assert tied_names(trainer.ema.get_model()) == tied_names(trainer.model)
    fp32 = trainer.cfg.ema.ema_fp32
    kept = {number: trained_weights(state["extra_state"]["ema"]) for number, state in states.items()}
    check_stored_once(kept[6], trainer.ema.get_model())
    if fp32:  # where the average itself is, the other is its copy in half precision
        kept = {number: trained_weights(state["extra_state"]["ema_fp32_params"]) for number, state in states.items()}
    for number in range(2, 7):
        assert kept[number].keys() == kept[1].keys()
        for name in dict(trainer.model.named_parameters()):
            expected = 0.5 * kept[number - 1][name] + 0.5 * states[number]["model"][name]
            assert torch.allclose(kept[number][name], expected, rtol=1e-6 if fp32 else 1e-3, atol=1e-6), (number, name)


@needs_no_cuda
@pytest.mark.parametrize(
    ("flag", "error", "said"),
    [
        ("--fp16", (AssertionError, RuntimeError), "CUDA|NVIDIA"),
        ("--bf16", AttributeError, "xla_device"),
        ("--memory-efficient-bf16", AttributeError, "xla_device"),
    ],
)
def test_what_fairseq_cannot_do_on_a_cpu(flag, error, said, train):
    with pytest.raises(error, match=said):
        train(WIDE, flag)


@needs_no_cuda
def test_amp_on_a_cpu_is_single_precision(train):
    trainer, log = train(WIDE, "--amp")
    assert not trainer.optimizer.scaler.is_enabled()
    assert losses(log) == losses(train(WIDE, folder="single")[1])


@pytest.fixture(scope="module")
def half_copier(tmp_path_factory):
    """A One Wide FFN model of 2 + 2 layers after some updates in half precision, and an earlier checkpoint of it."""
    flags = "--encoder-layers 2 --decoder-layers 2 --memory-efficient-fp16 --save-interval-updates 30"
    return train_on_text(tmp_path_factory.mktemp("half"), f"{COPIER} {flags}", updates=60)


def test_all_tools_read_it(half_copier, tmp_path, capsys):
    def said(*command):
        capsys.readouterr()
        assert cli.main([*map(str, command)]) == 0
        return capsys.readouterr().out

    lines = text_sentences(20, seed=5)
    (tmp_path / "source").write_text("".join(f"{line}\n" for line in lines))
    data = half_copier.parent.parent / "data"

    def translated(path, *flags):
        return said("translate", path, "--input", tmp_path / "source", "--cpu", *flags).splitlines()

    expected = translated(half_copier, "--scores")
    assert len(expected) == 20

    inspected = said("inspect", half_copier)
    assert "MemoryEfficientFP16Optimizer: goes on with `--memory-efficient-fp16`" in inspected
    assert "each stored once" in inspected

    average = tmp_path / "average.pt"
    paths = sorted(half_copier.parent.glob("checkpoint_*_*.pt"))
    assert len(paths) == 2
    said("average", *paths, "--output", average)
    one, other, mean = (trained_weights(read_checkpoint(path)["model"]) for path in (*paths, average))
    assert mean.keys() == one.keys()
    assert all(torch.allclose(mean[name], (one[name] + other[name]) / 2, atol=1e-7) for name in mean)
    assert any(not torch.equal(mean[name], one[name]) for name in mean)

    individual, exported = tmp_path / "individual.pt", tmp_path / "exported"
    said("convert", half_copier, "--to", "individual", "--output", individual)
    weights = read_checkpoint(individual)["model"]
    assert torch.equal(weights["encoder.layers.1.fc1.weight"], weights["encoder.layers.0.fc1.weight"])
    assert translated(individual, "--data", data, "--scores") == expected

    said("export", half_copier, "--output", exported)
    # after so few updates the texts say little, and their probabilities much
    scores, served = (
        [float(line.split("\t")[1]) for line in of] for of in (expected, translated(exported, "--scores"))
    )
    assert len(set(scores)) > 5
    assert sum(abs(one - other) < 1e-3 for one, other in zip(scores, served, strict=True)) >= 18
