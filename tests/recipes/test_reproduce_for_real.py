"""A table from prepared text to its end, with real trainings, very short; and the same command again."""

from prepare_for_tests import SIZE, sentences

from owf_fairseq import cli
from owf_fairseq.files.lines import write_lines

ROWS = ["multi30k/small", "multi30k/small_one_wide_ffn"]
UPDATES = "--max-update 2 --validate-interval-updates 2 --save-interval-updates 2 --max-tokens 400".split()


def test_one_wide_from_text_to_table(tmp_path, capfd):
    run = tmp_path / "run"
    for seed, (split, count) in enumerate({"train": 60, "valid": 8, "test": 6}.items()):
        lines = sentences(seed, count)
        (run / "raw").mkdir(parents=True, exist_ok=True)
        write_lines(run / f"raw/{split}.en", lines)
        write_lines(run / f"raw/{split}.de", [line.upper() for line in lines])
    prefixes = [word for split in ("train", "valid", "test") for word in (f"--{split}", str(run / "raw" / split))]
    prepare = ["prepare", *prefixes, "--langs", "en-de", "--vocab-size", str(SIZE), "--output", str(run / "data")]
    assert cli.main(prepare) == 0

    call = ["reproduce", "--dataset", "multi30k", "--table", "one_wide", "--rows", *ROWS, "--run", str(run)]
    call += ["--sentences", "4", "--speed", "2", "--cpu", *UPDATES]
    assert cli.main(call) == 0
    printed = capfd.readouterr().out
    assert "owf train multi30k/small multi30k/small_one_wide_ffn" in printed
    table = (run / "table.md").read_text(encoding="utf-8")
    assert "| Transformer Big (small) |" in table
    assert "| SharedEncNoDec 49152 (small_one_wide_ffn) |" in table
    assert "ours: 60 training pairs" in table
    assert len((run / "small_one_wide_ffn/test.de").read_text(encoding="utf-8").splitlines()) == 4

    made = {path: path.stat().st_mtime_ns for path in run.rglob("*.pt")}
    made |= {path: path.stat().st_mtime_ns for path in (*run.rglob("test.de"), run / "speed.json")}
    assert len(made) >= 7
    assert cli.main(call) == 0  # everything is there
    assert "small is finished: 2 updates" in capfd.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert (run / "table.md").read_text(encoding="utf-8") == table

    assert "a sample, the first 2 sentences of test.en" in table
    assert "float32" in table

    # the table of batch sizes measures the models that are there
    call = ["reproduce", "--dataset", "multi30k", "--table", "batch_size", "--rows", *ROWS, "--run", str(run)]
    assert cli.main([*call, "--speed", "4", "--cpu", *UPDATES]) == 0
    assert {path: path.stat().st_mtime_ns for path in made} == made
    by_size = (run / "batch_size.md").read_text(encoding="utf-8")
    assert "| batch | small | paper | small_one_wide_ffn | paper | speed-up, % | paper |" in by_size
    assert [line.split(" ")[1] for line in by_size.splitlines() if line.startswith("| ")][2:] == ["1", "2", "4"]
    assert "a sample, the first 4 sentences of test.en" in by_size
    assert (run / "table.md").read_text(encoding="utf-8") == table

    call[call.index("batch_size")] = "one_wide"
    assert cli.main([*call, "--cpu", *UPDATES, "--dropout", "0.5"]) == 2
    assert "dropout" in capfd.readouterr().err
