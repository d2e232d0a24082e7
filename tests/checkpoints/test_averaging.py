"""Averages: the exact mean, ties kept, and the right checkpoints of a folder chosen."""

import pytest
import torch
from models_for_tests import all_weights, checkpoint_of, make_model, parse

from owf_fairseq.checkpoints.averaging import average, best, candidates, last
from owf_fairseq.checkpoints.checkpoint import write_checkpoint
from owf_fairseq.errors import InputError

SHARE = "--share-all-embeddings"


def save(path, arch="owf_tiny_one_wide_ffn", *flags, seed=1, updates=7, score=1.5, change=None):
    model = make_model(arch, SHARE, *flags, seed=seed)
    state = checkpoint_of(model, parse(arch, SHARE, *flags), updates)
    state["extra_state"]["val_loss"] = score
    if change:
        change(state)
    torch.save(state, path)
    return model


def fairseqs_average(states):
    """What fairseq's scripts/average_checkpoints.py computes: a sum in the stored type, divided in place."""
    total = {}
    for state in states:
        for name, tensor in state.items():
            total[name] = total[name] + tensor if name in total else tensor.clone()
    for tensor in total.values():
        if tensor.is_floating_point():
            tensor.div_(len(states))
        else:
            tensor //= len(states)
    return total


@pytest.mark.parametrize(
    "arch", ["owf_tiny", "owf_tiny_one_wide_ffn", "owf_tiny_attention_sss", "owf_tiny_shared_enc_dec"]
)
def test_mean_in_float64_ties_kept(arch, tmp_path):
    files = [tmp_path / f"{seed}.pt" for seed in (1, 2, 3)]
    made = [save(file, arch, seed=seed, updates=seed) for seed, file in enumerate(files, 1)]
    state = average(files)
    before = [model.state_dict() for model in made]
    assert state["model"].keys() == before[0].keys()
    for name, tensor in state["model"].items():
        if tensor.is_floating_point():
            expected = (sum(weights[name].double() for weights in before) / 3).float()
            assert torch.equal(tensor, expected), name
    assert all(
        torch.allclose(state["model"][name], tensor, atol=1e-6) for name, tensor in fairseqs_average(before).items()
    )
    model = make_model(arch, SHARE, seed=9)
    model.load_state_dict(state["model"], strict=True)
    assert torch.equal(all_weights(model)["encoder.embed_tokens.weight"], state["model"]["encoder.embed_tokens.weight"])


def test_what_float32_cannot_add_is_exact(tmp_path):
    def set_bias(value):
        return lambda state: state["model"]["encoder.layers.0.fc1.bias"].fill_(value)

    for number, value in enumerate((1e8, 1.0, -1e8)):
        save(tmp_path / f"{number}.pt", change=set_bias(value))
    bias = average([tmp_path / f"{number}.pt" for number in range(3)])["model"]["encoder.layers.0.fc1.bias"]
    assert torch.equal(bias, torch.full_like(bias, 1 / 3))


def test_half_precision_is_added_in_float64_and_stays(tmp_path):
    def halve(state):
        state["model"] = {name: tensor.half() for name, tensor in state["model"].items()}

    for seed in (1, 2):
        save(tmp_path / f"{seed}.pt", seed=seed, change=halve)
    name = "encoder.layers.0.fc1.weight"
    one, two = (torch.load(tmp_path / f"{seed}.pt", weights_only=True)["model"][name] for seed in (1, 2))
    found = average([tmp_path / "1.pt", tmp_path / "2.pt"])["model"][name]
    assert torch.equal(found, ((one.double() + two.double()) / 2).half())


def test_what_is_recorded(tmp_path):
    save(tmp_path / "a.pt", updates=10, seed=1)
    save(tmp_path / "b.pt", updates=5, seed=2)
    state = average([tmp_path / "a.pt", tmp_path / "b.pt"])
    assert state["extra_state"]["averaged"] == [
        {"file": str(tmp_path / "a.pt"), "updates": 10},
        {"file": str(tmp_path / "b.pt"), "updates": 5},
    ]
    assert "last_optimizer_state" not in state
    assert state["optimizer_history"][-1]["num_updates"] == 10
    assert state["extra_state"]["train_iterator"]["epoch"] == 1


def test_vanilla_checkpoints_keep_all_names(tmp_path):
    for seed in (1, 2):
        save(tmp_path / f"{seed}.pt", "transformer", "--encoder-layers", "2", "--decoder-layers", "2", seed=seed)
    state = average([tmp_path / "1.pt", tmp_path / "2.pt"])["model"]
    assert state.keys() == torch.load(tmp_path / "1.pt", weights_only=True)["model"].keys()
    assert state["decoder.output_projection.weight"] is state["encoder.embed_tokens.weight"]


def test_all_problems_at_once(tmp_path):
    save(tmp_path / "a.pt")
    save(tmp_path / "arch.pt", "owf_tiny_no_dec")
    save(tmp_path / "blocks.pt", "owf_tiny_one_wide_ffn", "--encoder-ffn", "cycle-2")
    save(tmp_path / "width.pt", "owf_tiny_one_wide_ffn", "--encoder-ffn-embed-dim", "64")
    (tmp_path / "empty.pt").touch()

    def untie(state):
        state["model"]["encoder.layers.1.fc1.bias"] = torch.ones(1536)

    def remove(state):
        del state["model"]["encoder.layers.0.fc1.bias"]

    save(tmp_path / "untied.pt", change=untie)
    save(tmp_path / "less.pt", change=remove)
    names = ("a", "arch", "blocks", "width", "empty", "untied", "less")
    with pytest.raises(InputError) as error:
        average([*(tmp_path / f"{name}.pt" for name in names), tmp_path])
    text = str(error.value)
    for problem in (
        "its arch is owf_tiny_no_dec, not owf_tiny_one_wide_ffn",
        "blocks.pt differs from",
        "other blocks are shared or dropped",
        "its `--encoder-ffn-embed-dim` is 64, not 1536",
        "empty.pt is empty",
        "untied.pt: encoder.layers.0.fc1.bias and encoder.layers.1.fc1.bias are one weight",
        "less.pt lacks encoder.layers.0.fc1.bias",
        "is a folder: choose among its checkpoints with `--last N` or `--best N`",
    ):
        assert problem in text


@pytest.mark.parametrize("flags", [["--encoder-attention-heads", "4"], ["--activation-fn", "gelu"]], ids=" ".join)
def test_models_of_equal_shapes_that_compute_something_else_are_refused(tmp_path, flags):
    save(tmp_path / "a.pt")
    save(tmp_path / "b.pt", "owf_tiny_one_wide_ffn", *flags)
    with pytest.raises(InputError, match=f"its `{flags[0]}` is {flags[1]}, not"):
        average([tmp_path / "a.pt", tmp_path / "b.pt"])


def test_flags_of_training_may_differ(tmp_path):
    save(tmp_path / "a.pt")
    save(tmp_path / "b.pt", "owf_tiny_one_wide_ffn", "--dropout", "0.3", "--encoder-layerdrop", "0.1", seed=2)
    assert average([tmp_path / "a.pt", tmp_path / "b.pt"])["model"]


def test_a_shared_weight_under_a_further_name_is_not_lost(tmp_path):
    def rename(state):
        state["model"]["encoder.layers.3.fc1.bias"] = state["model"].pop("encoder.layers.0.fc1.bias")

    model = save(tmp_path / "a.pt", change=rename)
    save(tmp_path / "b.pt", updates=8)
    weights = average([tmp_path / "a.pt", tmp_path / "b.pt"])["model"]
    assert torch.equal(weights["encoder.layers.0.fc1.bias"], model.encoder.layers[0].fc1.bias)
    model.load_state_dict(weights, strict=True)


def test_the_same_file_twice_is_refused(tmp_path, monkeypatch):
    save(tmp_path / "a.pt")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="named twice"):
        average([tmp_path / "a.pt", "a.pt"])


@pytest.fixture
def folder(tmp_path):
    """As fairseq-train leaves it: epochs, updates between them, copies, and what is none of its checkpoints."""
    for name, updates, score in (
        ("checkpoint1", 10, 3.0),
        ("checkpoint2", 20, 1.0),
        ("checkpoint10", 100, 2.0),
        ("checkpoint_10_95", 95, None),
        ("checkpoint.best_loss_1.0000", 20, 1.0),
        ("checkpoint.best_loss_1.5001", 15, 1.5),
        ("checkpoint_best", 20, 1.0),
        ("checkpoint_last", 100, 2.0),
        ("averaged", 200, 0.1),
        ("checkpoint11-shard0", 300, 0.1),
    ):
        save(tmp_path / f"{name}.pt", updates=updates, score=score)
    state = checkpoint_of(make_model("owf_tiny"), parse("owf_tiny"), 500)
    write_checkpoint(state, tmp_path / "checkpoint99.pt", "owf average")
    return tmp_path


def names(files):
    return [file.name for file in files]


def test_last_and_best_choose_by_what_is_recorded(folder):
    assert [candidate.updates for candidate in candidates(folder)] == [10, 15, 20, 95, 100]
    assert names(last(folder, 3)) == ["checkpoint10.pt", "checkpoint_10_95.pt", "checkpoint2.pt"]
    assert names(best(folder, 2)) == ["checkpoint2.pt", "checkpoint.best_loss_1.5001.pt"]
    assert names(best(folder, 4))[2:] == ["checkpoint10.pt", "checkpoint1.pt"]


def test_higher_is_better_where_training_said_so(tmp_path):
    def maximize(state):
        state["cfg"]["checkpoint"] = {"maximize_best_checkpoint_metric": True}

    for number, score in ((1, 20.0), (2, 30.0), (3, 25.0)):
        save(tmp_path / f"checkpoint{number}.pt", updates=number, score=score, change=maximize)
    assert names(best(tmp_path, 2)) == ["checkpoint2.pt", "checkpoint3.pt"]


@pytest.mark.parametrize(
    ("choose", "number", "problem"),
    [
        (last, 6, "`--last` is 6, but .* has 5 checkpoints"),
        (best, 5, "`--best` is 5, but .* has 4 validated checkpoints"),
        (last, 0, "`--last` must be at least 1"),
    ],
)
def test_too_few_or_too_little(choose, number, problem, folder):
    with pytest.raises(InputError, match=problem):
        choose(folder, number)


def test_a_damaged_one_is_not_passed_over(folder):
    (folder / "checkpoint1.pt").write_bytes(b"PK")
    with pytest.raises(InputError, match="checkpoint1.pt is cut off or damaged"):
        last(folder, 1)
    with pytest.raises(InputError, match="is not a folder"):
        last(folder / "averaged.pt", 1)
