"""scripts/distill.sh: its commands, as the real parsers read them; and all of it for real, at a toy's size."""

import json
import sys

import pytest
from fairseq_for_tests import REPOSITORY
from prepare_for_tests import sentences
from scripts_for_tests import Scripts, lines_of, load_script, parse

from owf_fairseq.files.lines import write_lines
from owf_fairseq.training.several import members

STUDENTS = ("no_dec", "one_wide_ffn", "shared_enc_no_dec", "vanilla")


@pytest.fixture
def scripts(tmp_path):
    found = Scripts(tmp_path)
    found.pretend_installed("export,plot,shortlist")
    return found


def called(commands, name):
    return [parse(one) for one in commands if one[:2] == ["owf", name]]


def test_each_step_reads_what_the_one_before_it_writes(scripts):
    run = scripts.run
    commands = scripts.commands("distill.sh", "--original", "--speed", "7", LOCAL="x")
    text, prepare = called(commands, "pairs"), called(commands, "prepare")
    assert [one.output[0] for one in text] == [f"{run}/raw/{split}.en" for split in ("train", "valid", "test")]
    assert (prepare[0].output, prepare[0].vocab_size) == (f"{run}/data", 4000)
    original, distilled = called(commands, "train")
    trained = members(original.configs, original.others, original.folder, (), original.data)
    assert [one.training.args.save_dir for one in trained] == [
        f"{run}/original/{name}" for name in ("teacher", *STUDENTS)
    ]
    assert {one.training.args.data for one in trained} == {f"{run}/original/data"}
    assert (run / "original/data").readlink().as_posix() == "../data"
    [distill] = called(commands, "distill")
    assert (distill.teacher, distill.train) == ([f"{run}/served/teacher.int8"], f"{run}/raw/train")
    assert (prepare[1].train, prepare[1].like) == (distill.output, prepare[0].output)
    trained = members(distilled.configs, distilled.others, distilled.folder, (), distilled.data)
    assert {one.training.args.data for one in trained} == {prepare[1].output}
    sizes = {one.training.args.arch: one.training.args.encoder_ffn_embed_dim for one in trained}
    assert sizes.pop("owf_student_tiny_one_wide_ffn") == 8 * sizes["owf_student_tiny"] == 8 * 768
    [shortlist] = called(commands, "shortlist")
    assert shortlist.data == [prepare[0].output]
    teacher, *exports = called(commands, "export")[1:]
    assert (teacher.checkpoint, teacher.output) == (f"{run}/original/teacher/checkpoint_best.pt", distill.teacher[0])
    assert teacher.shortlist is None
    assert {one.shortlist for one in exports} == {shortlist.output}
    assert len(exports) == 2 * 2 * len(STUDENTS)
    translations = called(commands, "translate")
    assert len(translations) == 2 + 2 * len(exports)
    assert {(one.shortlist, one.batch_size) for one in translations} == {(False, None), (None, 1)}
    [evaluate] = called(commands, "evaluate")
    assert {one.partition("=")[2] for one in evaluate.hypotheses} == {one.output for one in translations}
    timed = called(commands, "benchmark")
    assert [(one.beam, one.batch_sizes, one.sentences) for one in timed] == [(5, (1,), 7), (1, (1, 32), 7)]
    for one in timed:
        assert one.no_shortlist == [name.partition("=")[0] for name in one.others if ".shortlist=" not in name]
        assert len(one.others) == 2 + 4 * len(STUDENTS)
    assert commands[-1][2:] == [evaluate.json, timed[0].json, timed[1].json, "--output", f"{run}/student"]


def test_a_teacher_that_is_there(scripts):
    """No student of the original text is trained unless it is asked for; what is given goes to the trainings."""
    (scripts.run / "data").mkdir(parents=True)
    (scripts.run / "raw").mkdir()
    (scripts.run / "raw/train.en").touch()
    (scripts.folder / "big.pt").touch()
    how = ["--teacher", "big.pt", "--students", REPOSITORY / "scripts/student/wmt22_en_de", "--max-update", "9"]
    commands = scripts.commands("distill.sh", *how)
    assert commands[0][1] == "export"
    assert parse(commands[0]).checkpoint == "big.pt"
    [train] = called(commands, "train")
    trained = members(train.configs, train.others, train.folder, (), train.data, fp32=True)
    assert {one.training.args.max_update for one in trained} == {9}
    assert {one.training.args.arch.removeprefix("owf_student_base") for one in trained} == {
        "", "_no_dec", "_one_wide_ffn", "_shared_enc_no_dec"
    }  # fmt: skip
    [evaluate] = called(commands, "evaluate")
    assert not [name for name in evaluate.hypotheses if name.startswith("original")]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--teacher"], "--teacher needs a value"),
        (["--teacher", "none.pt"], "--teacher none.pt: there is no such checkpoint"),
        (["--students", "."], "--students .: the folder has no config"),
        (
            ["--students", REPOSITORY / "scripts/student/wmt22_en_de"],
            "no teacher.yaml; name a checkpoint with --teacher",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_done(scripts, words, problem):
    refused = scripts.call("distill.sh", *words)
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert not scripts.record.exists()


def test_from_text_to_the_table(scripts):
    """With words that are translated into capitals, which a tiny teacher learns in seconds."""
    program = "import sys\nfrom owf_fairseq.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    scripts.add("owf", f"#!{sys.executable}\n{program}")
    scripts.add("python", f'#!/bin/bash\nexec "{sys.executable}" "$@"\n')
    run, students = scripts.run, scripts.folder / "students"
    (run / "raw").mkdir(parents=True)
    for seed, (split, count) in enumerate({"train": 300, "valid": 20, "test": 20}.items()):
        lines = sentences(seed, count)
        write_lines(run / f"raw/{split}.en", lines)
        write_lines(run / f"raw/{split}.de", [line.upper() for line in lines])
    students.mkdir()
    settings = ["max-tokens: 300", "lr: 0.005", "max-update: 300", "warmup-updates: 50", "dropout: 0"]
    for stack in ("encoder", "decoder"):
        settings += [f"{stack}-layers: 1", f"{stack}-embed-dim: 96", f"{stack}-attention-heads: 4"]
    settings += [f"{each}-interval{of}: 150" for each in ("validate", "save") for of in ("", "-updates")]
    write_lines(students / "_base.yaml", [f"base: {REPOSITORY}/configs/_cpu.yaml", *settings])
    for name, arch in {"teacher": "owf_tiny", "no_dec": "owf_tiny_no_dec"}.items():
        write_lines(students / f"{name}.yaml", ["base: _base.yaml", f"arch: {arch}"])
    done = scripts.call(
        "distill.sh", "--students", students, "--speed", "3", VOCAB_SIZE="90", TYPES="int8", OMP_NUM_THREADS="1"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = (run / "student.md").read_text().splitlines()
    assert [line.split(" | ")[:3] for line in table[2:]] == [
        ["| teacher", "int8", "no"], ["| NoDec, d_ff 128", "int8", "no"], ["| NoDec, d_ff 128", "int8", "yes"]
    ]  # fmt: skip
    rows = json.loads((run / "student.json").read_text())["rows"]
    # the toy is learned: whatever the student has learned from, it has learned from the teacher
    assert float(rows[0]["BLEU, original text"]) > 60
    assert min(float(row["BLEU, distilled text"]) for row in rows[1:]) > 40
    assert {row["BLEU, original text"] for row in rows[1:]} == {"-"}
    assert all(float(value.replace(",", "")) > 0 for row in rows for what, value in row.items() if "words/s" in what)
    assert (run / "student.png").stat().st_size > 10_000
    sources, targets = (lines_of(run / f"distilled/raw/train.{lang}") for lang in ("en", "de"))
    assert sum(source.upper() == target for source, target in zip(sources, targets, strict=True)) > 200


def results(names, beam, sizes):
    """The JSON of `owf benchmark`; the second model is as fast as its place, in words a second."""
    return {
        "settings": {"beam": beam},
        "models": [
            {
                "name": name,
                "arch": f"owf_tiny{arch}",
                "configuration": configuration,
                "folder_mb": 1.25,
                "ffn_dims": {"encoder": 1536, "decoder": None},
            }
            for name, arch, configuration in names
        ],
        "measurements": [
            {"name": name, "batch_size": size, "words_per_s": {"mean": 1000 * number + size}}
            for size in sizes
            for number, (name, *_) in enumerate(names)
        ],
    }


def test_the_table_has_each_score_and_speed_in_its_place(tmp_path, capsys):
    names = [("teacher.int8", "", "individual"), ("distilled.a.int8", "_no_dec", "NoDec"),
             ("distilled.a.int8.shortlist", "_no_dec", "NoDec")]  # fmt: skip
    files = [tmp_path / name for name in ("scores.json", "beam_5.json", "beam_1.json")]
    scored = [*(name for name, *_ in names), "original.a.int8", "original.a.int8.shortlist"]
    scores = [
        {"name": name, "scores": {"bleu": {"score": 10.0 + n}, "chrf": {"score": 20.04 + n}}}
        for n, name in enumerate(scored)
    ]
    files[0].write_text(json.dumps({"systems": scores}))
    files[1].write_text(json.dumps(results(names, 5, [1])))
    files[2].write_text(json.dumps(results(names, 1, [1, 32])))
    table = load_script("student/table.py")
    assert table.main([*map(str, files), "--output", str(tmp_path / "out")]) == 0
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in (tmp_path / "out.md").read_text().splitlines()
    ]
    assert rows[0] == [
        *("model", "weights", "shortlist", "BLEU, distilled text", "chrF, distilled text", "BLEU, original text"),
        *("chrF, original text", "words/s, beam 5, batch 1", "words/s, greedy, batch 1", "words/s, greedy, batch 32"),
        "MB",
    ]
    assert rows[2:] == [
        ["teacher", "int8", "no", "-", "-", "10.0", "20.0", "1", "1", "32", "1.2"],
        ["NoDec, d_ff 1,536", "int8", "no", "11.0", "21.0", "13.0", "23.0", "1,001", "1,001", "1,032", "1.2"],
        ["NoDec, d_ff 1,536", "int8", "yes", "12.0", "22.0", "14.0", "24.0", "2,001", "2,001", "2,032", "1.2"],
    ]
    made = json.loads((tmp_path / "out.json").read_text())
    assert [list(row.values()) for row in made["rows"]] == rows[2:]
    assert made["made_by"] == "bash scripts/distill.sh --original"
    capsys.readouterr()
    assert table.main([str(tmp_path / "none"), str(files[1]), "--output", str(tmp_path / "new")]) == 2
    assert "none" in capsys.readouterr().err
    assert not list(tmp_path.glob("new*"))
