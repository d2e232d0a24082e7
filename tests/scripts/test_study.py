"""The study: the list of its runs, and the tables of literal results."""

import json

import pytest
import torch
from scripts_for_tests import load_script
from study_for_tests import REFERENCE, load_study, write_run

from owf_fairseq.checkpoints.stored_model import build_model
from owf_fairseq.files.lines import write_lines
from owf_fairseq.paper.rows import rows as paper_rows
from owf_fairseq.parameters import SizedDictionary
from owf_fairseq.training.run import plan as training_plan

listed, planner, missing, tables = map(load_study, ("_runs", "_plan", "missing", "tables"))
VOCABULARY = 4000


# --- the list of runs


def planned(settings, folder):
    config = folder / "config.yaml"
    write_lines(config, [f"{flag}: {json.dumps(value)}" for flag, value in settings.items()])
    return training_plan(str(config), ["--seed", "3"], "data", environment={}).args


def parameters(args):
    dictionary = SizedDictionary(VOCABULARY)
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build_model(args, dictionary, dictionary).parameters())


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Of each row what fairseq-train reads, and how many parameters its model has."""
    folder = tmp_path_factory.mktemp("configs")
    args = {name: planned(planner.make_plan(row).second, folder) for name, row in listed.ROWS.items()}
    return {name: (one, parameters(one)) for name, one in args.items()}


def test_fairseq_reads_every_row_and_all_are_trained_alike(models):
    for name, (args, _) in models.items():
        assert (args.dropout, args.max_tokens, args.lr_scheduler) == (0.3, 2000, "polynomial_decay"), name
        assert (args.encoder_layers, args.decoder_layers, args.encoder_embed_dim) == (4, 4, 128)
        assert (args.warmup_updates, args.validate_interval_updates, args.save_interval_updates) == (500, 500, 500)
        assert args.seed == 3
        if name != "one_wide_ffn_warm":
            assert (args.lr, args.max_update, int(args.total_num_update)) == ([0.004], 8000, 8000)


def test_rows_of_equal_parameters_have_them(models):
    wanted = models["individual"][1]
    for name in listed.EQUAL:
        assert models[name][1] == pytest.approx(wanted, rel=0.01), name
    assert models["shared_enc_no_dec"][1] < 0.8 * wanted
    assert models["shared_enc_no_dec_1024"][1] < wanted < models["shared_enc_no_dec_4096"][1]
    # what layers have for themselves is little beside what they share
    shared = models["shared_enc_shared_dec"][1]
    for name in ("shared_enc_shared_dec_bias", "shared_enc_shared_dec_lora_4"):
        assert shared < models[name][1] < 1.05 * shared


def test_a_warm_start_has_two_halves(tmp_path):
    plan = planner.make_plan(listed.ROWS["one_wide_ffn_warm"])
    first, second = planned(plan.first, tmp_path), planned(plan.second, tmp_path)
    assert (first.arch, second.arch) == ("owf_multi30k", "owf_multi30k_one_wide_ffn")
    # the first is the beginning of the individual model's own training
    assert (first.max_update, int(first.total_num_update), first.lr) == (4000, 8000, [0.004])
    assert (second.max_update, int(second.total_num_update), second.lr) == (4000, 4000, [0.002])


def test_rows_have_the_papers_labels():
    found = {row.row: row.configuration for row in paper_rows() if (row.size, row.pair) == ("big", "en-de")}
    for name, row in listed.ROWS.items():
        if row.paper is not None:
            configuration = "shared_enc_no_dec" if row.configuration == "one_wide_ffn" else row.configuration
            assert found[row.paper] == configuration, name
    # the sizes of the tables allow all of them but one block of three
    missing = {row for row in found if row not in {one.paper for one in listed.ROWS.values()}}
    assert missing == {"SharedEncNoDec 4096", "SharedEnc (M=1)", "Sequence M=3", "Cycle M=3", "Cycle Rev M=3"}


def test_the_order_of_the_runs():
    wanted = listed.runs()
    main = ["individual", "shared_enc_no_dec", "no_dec", "one_wide_ffn"]
    assert [(run.name, run.seed) for run in wanted[:4]] == [(name, 1) for name in main]
    assert all(run.name.startswith("attention_") for run in wanted[4:10])
    assert [(run.name, run.seed) for run in wanted[10:18]] == [(name, seed) for seed in (2, 3) for name in main]
    assert len(set(wanted)) == len(wanted) == len(listed.ROWS) + 8
    asked = {name for question in listed.QUESTIONS.values() for name in question.rows}
    assert asked == set(listed.ROWS)
    for question in listed.QUESTIONS.values():
        assert question.rows[0] == question.baselines[0]
        assert set(question.baselines) <= set(question.rows)
    assert {run.name for run in listed.runs("warm_start")} == {"one_wide_ffn", "one_wide_ffn_warm"}


def test_what_is_missing(tmp_path, capsys):
    (tmp_path / "attention_sss_seed_1").mkdir()
    (tmp_path / "attention_sss_seed_1/run.json").touch()
    (tmp_path / "attention_ssi_seed_1").mkdir()  # nothing is in it
    assert missing.main(["--results", str(tmp_path), "--only", "attention"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["individual --seed 1", "attention_ssi --seed 1"]
    assert printed[-2:] == ["individual --seed 2", "individual --seed 3"]
    assert "attention_sss --seed 1" not in printed
    assert missing.main(["--results", str(tmp_path), "--only", "speed"]) == 2
    assert "`--only` must be one of main, attention, " in capsys.readouterr().err


def test_what_the_log_of_an_interrupted_training_says():
    read = load_script("training_log.py")
    trained = "| INFO | train_inner | epoch 001: 4 / 9 loss=7, nll_loss=6, num_updates={}, train_wall=700, wall={}\n"
    held_out = (
        "| INFO | valid | epoch 001 | valid on 'valid' subset | loss {} | nll_loss {} | ppl 2 | num_updates {}{}\n"
    )
    log = trained.format(9, 100) + held_out.format(6.5, 5.25, 10, "") + trained.format(19, 200)
    log += held_out.format(5.5, 4.25, 20, " | best_loss 5.5") + trained.format(29, 300)
    # lost after the checkpoint of 10 updates, and made again
    log += trained.format(19, 180) + held_out.format(5.4, 4.125, 20, " | best_loss 5.4") + trained.format(29, 285)
    assert read.validations(log) == {10: (6.5, 5.25), 20: (5.4, 4.125)}
    assert read.training_seconds(log) == 285
    assert (read.validations(""), read.training_seconds("")) == ({}, 0)


# --- the tables


BAD = ["etwas ganz anderes steht hier"] * 20
HALF = [*REFERENCE[:10], *BAD[:10]]


@pytest.fixture
def make_tables(tmp_path, capsys):
    """Runs tables.py on what is in runs/; the function gives its status and what it said."""
    write_lines(tmp_path / "test.de", REFERENCE)
    words = [
        f"--{flag}={tmp_path / name}" for flag, name in (("ref", "test.de"), ("results", "runs"), ("output", "out"))
    ]

    def run():
        status = tables.main([*words, "--samples", "50"])
        return status, capsys.readouterr()

    return run


def test_tables_of_literal_results(make_tables, tmp_path):
    pytest.importorskip("matplotlib")
    runs = tmp_path / "runs"
    write_run(runs, "individual", 1, {10: 5.0, 20: 3.0}, REFERENCE)
    write_run(runs, "individual", 2, {10: 6.0, 20: 3.5, 30: 4.0}, REFERENCE)
    write_run(runs, "one_wide_ffn", 1, {10: 7.0}, HALF)
    cached = write_run(runs, "attention_isi", 1, {10: 5.0}, REFERENCE)
    write_lines(cached / "test.one_cache.de", BAD)
    write_run(runs, "shared_enc_no_dec_norms", 1, {10: 5.0}, HALF)  # its baseline is not there
    write_run(runs, "one_wide_ffn_norms", 1, {10: 5.0}, REFERENCE)
    (runs / ".no_dec_seed_1.part").mkdir()
    status, said = make_tables()
    assert status == 0, said.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{name}.{kind}" for name in ("attention", "layer_norm", "main") for kind in ("json", "png")
    ]
    made = {
        name: json.loads((tmp_path / f"out/{name}.json").read_text()) for name in ("main", "attention", "layer_norm")
    }
    assert {one["made_by"] for one in made.values()} == {"bash scripts/study.sh"}
    first, wide = made["main"]["rows"]
    assert first == {
        "model": "Transformer",
        "parameters": "1,001",
        "seeds": "2",
        "BLEU": "100.0 ± 0.0",
        "chrF": "100.0 ± 0.0",
        "compared with": "-",
        "BLEU, difference": "-",
        "p": "-",
        "difference in the paper": "-",
        "validation, bits a piece": "3.250",
    }
    assert (wide["model"], wide["seeds"], wide["compared with"]) == ("One Wide FFN", "1", "Transformer")
    assert wide["BLEU"].endswith(" †")
    assert -70 < float(wide["BLEU, difference"]) < -30
    assert float(wide["p"]) < 0.05
    assert (wide["difference in the paper"], wide["validation, bits a piece"]) == ("+0.9", "7.000")
    _, own, one = made["attention"]["rows"]
    assert one["model"] == f"{own['model']}; decoded with one cache"
    assert (own["BLEU, difference"], float(one["BLEU, difference"]) < -90) == ("+0.0", True)
    assert own["difference in the paper"] == one["difference in the paper"] != "-"
    # each is compared with the model that has one layer norm
    assert [(row["model"], row["compared with"]) for row in made["layer_norm"]["rows"]] == [
        ("One Wide FFN", "-"),
        ("One Wide FFN, a layer norm each", "One Wide FFN"),
    ]
    assert made["layer_norm"]["rows"][1]["difference in the paper"] == "-"
    systems = tables.read_systems(runs, tmp_path / "test.de")
    assert systems["individual"].curve == {10: 5.5, 20: 3.25}
    assert "One Wide FFN, a layer norm each" in said.out


def test_nothing_is_compared_across_recipes_and_references(make_tables, tmp_path):
    runs = tmp_path / "runs"
    write_run(runs, "individual", 1, {10: 5.0}, REFERENCE)
    write_run(runs, "no_dec", 1, {10: 5.0}, REFERENCE, recipe={"lr": "0.002"})
    write_run(runs, "no_enc", 1, {10: 5.0}, REFERENCE, reference="0")
    write_run(runs, "no_such_row", 1, {10: 5.0}, REFERENCE)
    status, said = make_tables()
    assert status == 2
    assert "individual_seed_1/run.json are of different recipes: lr\n" in said.err
    assert "no_enc_seed_1/run.json was scored with another reference than `--ref`" in said.err
    assert "no_such_row_seed_1/run.json is not of a run of the study" in said.err
    assert len(said.err.splitlines()) == 3
    assert not (tmp_path / "out").exists()
