"""scripts/wmt22_en_de from end to end, with the text of the test set for all sets, small models and few updates."""

import json

import pytest
from scripts_for_tests import SHARED_DATA, Scripts, lines_of, read_by_mtdata

DATA = SHARED_DATA / "wmt22-en-de"
PARTS = {"train": (0, 1500), "valid": (1500, 1700), "test": (1700, 1740)}

MTDATA = """#!/bin/bash
printf '%s\\n' "$*" "$MTDATA_RECIPES" "$MTDATA" >"$RECORD"
while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
mkdir -p "$out/train-parts"
sed -n 's/^ *- \\([A-Z].*\\)/\\1/p' "$MTDATA_RECIPES"/mtdata.recipes*.yml | sort | while read -r name; do
  for lang in eng deu; do printf '%s\\n\\n' "$name in $lang" | gzip >"$out/train-parts/$name.$lang.gz"; done
  [ -e "$CONNECTED" ] || exit 1
done
"""
SACREBLEU = f"""#!/bin/bash
[ "$1 $3 $4 $5" = "--test-set --language-pair en-de --echo" ] || exit 2
case "$2 $6" in
  "wmt22 src") cat {DATA}/src.en ;;
  "wmt22 ref:A") cat {DATA}/ref.A.de ;;
  "wmt22 ref:B") cat {DATA}/ref.B.de ;;
  "wmt20 src" | "wmt20 ref" | "wmt21 src" | "wmt21 ref:A") echo "$2" ;;
  *) exit 2 ;;
esac
"""

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no WMT22 test set in {DATA}")


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)


def write_local(folder):
    """Splits the test set into the three sets; two training pairs get a fault."""
    folder.mkdir()
    texts = {"en": lines_of(DATA / "src.en"), "de": lines_of(DATA / "ref.A.de")}
    texts["de"][10] = ""
    texts["en"][20] = "word " * 251
    for split, (start, end) in PARTS.items():
        for lang, lines in texts.items():
            (folder / f"{split}.{lang}").write_bytes("".join(f"{line}\n" for line in lines[start:end]).encode())
    start, end = PARTS["test"]
    lines = lines_of(DATA / "ref.B.de")[start:end]
    (folder / "test.refB.de").write_bytes("".join(f"{line}\n" for line in lines).encode())
    return texts


def test_from_the_text_to_the_table(scripts):
    texts = write_local(scripts.folder / "local")
    run = scripts.folder / "run"

    def step(name, *arguments):
        return scripts.succeed(f"wmt22_en_de/{name}.sh", *arguments, "--output", run)

    step("download", "--local", scripts.folder / "local", "--limit", "1400")
    for lang in ("en", "de"):
        kept = [line for number, line in enumerate(texts[lang]) if number not in (10, 20)]
        assert lines_of(run / f"raw/train.{lang}") == kept[:1400]
        assert lines_of(run / f"raw/test.{lang}") == texts[lang][slice(*PARTS["test"])]

    step("preprocess", "--vocab-rows", "900", "--shards", "2", "--workers", "1")
    shards = [run / "data/shard-00", run / "data/shard-01"]
    for shard in shards:
        assert len(lines_of(shard / "dict.de.txt")) == 900 - 4
        assert (shard / "train.en-de.en.bin").exists()
    assert (shards[0] / "valid.en-de.en.bin").exists()

    mine = scripts.folder / "mine_one_wide_ffn.yaml"
    mine.write_text("arch: owf_tiny_one_wide_ffn\nlr: [0.001]\noptimizer: adam\n")
    quick = "--fp32 --cpu --max-update 2 --update-freq 1 --max-tokens 600 --validate-interval-updates 2 --num-workers 0"
    training = ["big", mine, *quick.split(), "--arch", "owf_tiny", "--source-lang", "en", "--target-lang", "de"]
    step("train", *training)
    for name in ("big", "mine_one_wide_ffn"):
        command = next(command for command in scripts.commands if command[-1] and f"{run}/{name}" in command)
        assert command[command.index("--data") + 1] == ":".join(map(str, shards))
        assert (run / name / "checkpoint_best.pt").exists()
    mine.write_text(mine.read_text() + "max-epoch: 9\n")
    assert "--max-epoch 9" in step("train", *training, "--dry-run").stdout
    step("train", *training)
    assert [command[1] for command in scripts.commands] == [str(mine)]  # a config that was changed is not done

    step("generate", "big", mine, "--beam", "1", "--max-len-a", "0", "--max-len-b", "8", "--cpu")
    assert len(lines_of(run / "big/test.de")) == len(lines_of(run / "mine_one_wide_ffn/test.de")) == 40

    printed = step("evaluate", "big", mine, "--samples", "20").stdout
    assert "COMET is not installed" in printed
    assert (run / "table.md").read_text() in printed
    scores = json.loads((run / "scores.json").read_text())
    assert [system["name"] for system in scores["systems"]] == ["big", "mine_one_wide_ffn"]
    assert len(scores["references"]) == 1
    step("evaluate", "big", "--both-references")
    assert len(json.loads((run / "scores.json").read_text())["references"]) == 2
    scripts.add("comet-score", "#!/bin/bash\n")
    refused = scripts.run("wmt22_en_de/evaluate.sh", "big", "--output", run, "--comet-model", "nowhere.ckpt")
    assert refused.returncode == 2
    assert "nowhere.ckpt" in refused.stderr


def test_corpora_come_through_mtdata_and_other_sets_through_sacrebleu(scripts):
    """Every corpus of the recipe, in its order; one that can't be had stops the script, and the next call goes on."""
    run, record, connected = (scripts.folder / name for name in ("run", "record", "connected"))
    how = {"env": {"RECORD": str(record), "CONNECTED": str(connected)}}
    scripts.add("sacrebleu", SACREBLEU)
    refused = scripts.run("wmt22_en_de/download.sh", "--output", "run", **how)
    assert refused.returncode == 1
    assert "mtdata is neither in" in refused.stderr
    assert "run `pip install mtdata==0.5.1`" in refused.stderr
    for lang, name in (("en", "src.en"), ("de", "ref.A.de"), ("refB.de", "ref.B.de")):
        assert lines_of(run / f"raw/test.{lang}") == lines_of(DATA / name)
    assert lines_of(run / "raw/valid.de") == ["wmt20", "wmt21"]

    scripts.add("mtdata", MTDATA)
    assert scripts.run("wmt22_en_de/download.sh", "--output", "run", **how).returncode == 1
    assert not (run / "raw/train.en").exists()
    connected.touch()
    scripts.succeed("wmt22_en_de/download.sh", "--output", "run", "--jobs", "3", **how)
    called, recipes, cache = lines_of(record)
    read = read_by_mtdata(called)
    assert (read.recipe_id, read.fail_on_error, read.merge_train, read.compress) == ("wmt22-deen", True, False, True)
    where = f"--out {run}/mtdata --n-jobs 3"
    assert called == f"--no-pbar get-recipe --recipe-id wmt22-deen {where} --fail-on-error --no-merge --compress"
    assert cache == f"{run}/mtdata-cache"
    joined = lines_of(run / "raw/train.de")
    assert len(joined) == 13  # each has one pair, and an empty one
    assert joined[:2] == ["Statmt-europarl-10-deu-eng in deu", "ParaCrawl-paracrawl-9-eng-deu in deu"]
    assert [line.replace(" in deu", " in eng") for line in joined] == lines_of(run / "raw/train.en")
    assert scripts.commands == [scripts.commands[0]]
    scripts.succeed("wmt22_en_de/download.sh", "--output", "run", **how)
    assert scripts.commands == []
