"""`owf params`."""

import json
import subprocess
import sys

import pytest

from owf_fairseq import cli
from owf_fairseq.paper import counts
from owf_fairseq.paper import rows as paper
from owf_fairseq.parameters import BLOCKS, count_parameters
from owf_fairseq.sharing import ARCHS


def run(capsys, *arguments):
    status = cli.main(["params", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def columns(line):
    return line.split()


def test_table(capsys):
    status, out, err = run(capsys, "owf_big", "owf_big_one_wide_ffn")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("arch ")
    assert columns(lines[2]) == [
        *("owf_big", "51,617,792", "25,202,688", "50,374,656", "25,202,688", "25,202,688", "50,374,656", "0"),
        *("227,975,168", "100.0", "4,096"),
    ]
    assert columns(lines[3])[0] == "owf_big_one_wide_ffn"
    assert columns(lines[3])[-3:] == ["227,941,376", "100.0", "49,168"]
    assert "50,408" in out


def test_json(capsys):
    flags = ["--encoder-ffn-embed-dim", "300"]
    status, out, err = run(capsys, "--json", "owf_tiny_no_enc", *flags, "--vocab-size", "1000")
    assert (status, err) == (0, "")
    count = count_parameters("owf_tiny_no_enc", 1000, flags)
    assert json.loads(out) == {
        "vocab_size": 1000,
        "shared_embeddings": True,
        "archs": [
            {
                "arch": "owf_tiny_no_enc",
                "flags": {"encoder_ffn_embed_dim": 300},
                "total": count.total,
                "by_block": count.by_block,
                "percent": round(count.percent, 2),
                "individual_total": count.individual_total,
                "matching_ffn_dim": count.matching_ffn_dim,
            }
        ],
    }
    assert list(json.loads(out)["archs"][0]["by_block"]) == list(BLOCKS)


def test_nothing_else_is_printed():
    code = f"import sys; sys.path[:] = {sys.path!r}; "
    code += "from owf_fairseq.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "params", "owf_tiny", "--json"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert "tensorboardX" not in done.stderr


def test_markdown_and_nothing_to_match(capsys):
    _, out, _ = run(capsys, "owf_tiny_no_enc_no_dec", "--markdown")
    assert out.splitlines()[0].startswith("| arch | embeddings | enc. self-attn |")
    assert out.splitlines()[2].startswith("| owf_tiny_no_enc_no_dec |")
    assert out.splitlines()[2].endswith("| - |")


def test_separate_embeddings(capsys):
    _, out, _ = run(capsys, "owf_tiny", "--vocab-size", "1000", "--separate-embeddings")
    assert columns(out.splitlines()[2])[1] == f"{3 * 1000 * 64:,}"


@pytest.mark.parametrize(
    "tokens",
    [
        ["owf_tiny", "owf_small", "--encoder-ffn", "cycle-2"],
        ["--encoder-ffn", "cycle-2", "owf_tiny", "owf_small"],
        ["owf_tiny", "--encoder-ffn=cycle-2", "owf_small", "owf_tiny"],
    ],
)
def test_archs_and_flags_in_any_order(tokens, capsys):
    status, out, _ = run(capsys, "--json", *tokens)
    assert status == 0
    archs = [(entry["arch"], entry["flags"]) for entry in json.loads(out)["archs"]]
    assert archs == [(arch, {"encoder_ffn": "cycle-2"}) for arch in ("owf_tiny", "owf_small")]


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ([], [["name at least one architecture", "`owf params --list`"]]),
        (["--encoder-ffn", "shared"], [["name at least one architecture"]]),
        (["owf_tinny"], [["no arch 'owf_tinny'", "did you mean owf_tiny", "`owf params --list`"]]),
        (
            ["owf_bg", "owf_tiny", "--lr", "0.1", "--encoder-fnn", "cycle-2", "nonsense"],
            [["`--lr`"], ["`--encoder-fnn`", "did you mean `--encoder-ffn`"], ["'owf_bg'"], ["'nonsense'"]],
        ),
        (["owf_tiny", "--encoder-layers", "x"], [["`--encoder-layers`", "'x'"]]),
        (
            ["owf_tiny", "owf_tiny_no_enc", "--decoder-ffn", "cycle-7", "--decoder-self-attn", "nun"],
            [["`--decoder-ffn`", "'cycle-7'"], ["`--decoder-self-attn`", "'nun'"]],
        ),
        (["owf_tiny", "--vocab-size", "0"], [["`--vocab-size`", "0"]]),
        (["owf_tiny", "--encoder-ffn-embed-dim", "-5"], [["`--encoder-ffn-embed-dim` must be at least 1", "-5"]]),
        (["owf_tiny", "owf_small", "--encoder-attention-heads", "0"], [["`--encoder-attention-heads`", "at least 1"]]),
        (["owf_tiny", "--encoder-layers-to-keep", "0,2"], [["owf_tiny cannot be built with these flags", "fairseq"]]),
        (["--paper", "owf_tiny", "--vocab-size", "9"], [["`--paper`", "owf_tiny", "--vocab-size"]]),
        (["--list", "--separate-embeddings"], [["`--list`", "--separate-embeddings"]]),
    ],
)
def test_bad_usage_tells_every_problem_once(capsys, arguments, problems):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == len(problems)
    for line, texts in zip(lines, problems, strict=True):
        assert line.startswith("owf params: error: ")
        assert all(text in line for text in texts)


@pytest.mark.parametrize("flags", [["--json", "--markdown"], ["--paper", "--list"], ["--vocab-size", "many"]])
def test_flags_that_exclude_each_other(flags):
    with pytest.raises(SystemExit) as end:
        cli.main(["params", *flags])
    assert end.value.code == 2


def test_list(capsys):
    status, out, _ = run(capsys, "--list")
    lines = {line.split()[0]: line for line in out.splitlines()[2:]}
    assert status == 0
    assert list(lines) == list(ARCHS)
    line = lines["owf_deep_shallow_shared_enc_no_dec"]
    assert "12+2 layers, d 1024, d_ff 4096, 16 heads" in line
    assert "SharedEncNoDec" in line
    _, out, _ = run(capsys, "--list", "--json")
    assert [entry["arch"] for entry in json.loads(out)] == list(ARCHS)


def test_paper(capsys):
    status, out, err = run(capsys, "--paper")
    assert (status, err) == (0, "")
    lines = out.splitlines()[2 : 2 + len(paper.rows())]
    for line, row in zip(lines, paper.rows(), strict=True):
        assert line.startswith(row.table)
        assert row.row in line
        assert f" {row.arch} " in line
        assert ("not built yet" in line) == (row.arch not in ARCHS)
        assert (str(row.slip) in line) == (row.slip is not None)
    [line] = [line for line in lines if "SharedEncNoDec 24576" in line and line.startswith("one_wide")]
    assert line.split()[3:10] == ["en-de", "owf_big_shared_enc_no_dec", "24,576", "50,408", "177", "177.6", "80"]
    assert line.endswith("77.9  printed in the paper: 80 %, exact 78 %")


def test_paper_as_json(capsys):
    _, out, err = run(capsys, "--paper", "--json")
    assert err == ""
    entries = json.loads(out)
    assert len(entries) == len(paper.rows())
    for entry, row in zip(entries, paper.rows(), strict=True):
        assert entry["flags"] == row.ffn_flags
        if row.arch in ARCHS:
            assert abs(entry["total"] / 1e6 - entry["paper_millions"]) < 1


def test_a_row_whose_arch_is_not_there(capsys, monkeypatch):
    monkeypatch.setattr(counts, "ARCHS", {})
    status, out, _ = run(capsys, "--paper")
    assert status == 0
    assert out.count("this arch is not built yet") == len(paper.rows())
