"""scripts/multilingual on the quickstart's corpus: `owf corpus` for each pair of languages, all of it in one model."""

import json
import zipfile

from fairseq_for_tests import REPOSITORY
from scripts_for_tests import Scripts, lines_of

from owf_fairseq import cli

WHEELS = sorted((REPOSITORY / "runs/cache").glob("homeassistant-*.whl"))
"""The real one, where the quickstart has fetched it."""

LANGS = ("de", "en", "fr")
QUICK = "--fp32 --cpu --num-workers 0 --arch owf_tiny --max-tokens 800 --update-freq 1 --warmup-updates 2"
QUICK += " --validate-interval-updates 2 --batch-size-valid 36 --max-update 2"


def make_wheel(path):
    """A small one with the real one's layout."""
    verbs = "open close start stop check move clean reset pair wake".split()
    nouns = "lamp door window heater camera garden kitchen battery printer speaker".split()
    texts = [
        f"{verb} the {noun} {when}" for verb in verbs for noun in nouns for when in "now later slowly again".split()
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for lang in LANGS:
            for part in range(6):
                own = texts[part::6]
                table = {
                    str(n): text if lang == "en" else " ".join(f"{w}{lang}" for w in text.split())
                    for n, text in enumerate(own)
                }
                archive.writestr(
                    f"homeassistant/components/c{part}/translations/{lang}.json", json.dumps({"step": table})
                )
    return path


def write_local(folder, wheel):
    """Pairs of each two languages to train on; held-out text is that which is there in all languages."""
    corpora = folder / "corpora"
    texts = {}
    for pair in ("en-de", "en-fr", "de-fr"):
        command = ["corpus", "--wheel", wheel, "--langs", pair, "--limit", "300", "--output", corpora / pair]
        assert cli.main([*map(str, command)]) == 0
        texts[pair] = {
            split: list(zip(*(lines_of(corpora / pair / f"{split}.{lang}") for lang in pair.split("-")), strict=True))
            for split in ("train", "valid", "test")
        }
    local = folder / "local"
    local.mkdir()

    def write(name, lines):
        (local / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    held_out = set()
    for split in ("valid", "test"):
        german, french = (dict(texts[pair][split]) for pair in ("en-de", "en-fr"))
        english = [text for text in german if text in french]
        sides = {"de": [german[text] for text in english], "en": english, "fr": [french[text] for text in english]}
        for lang, lines in sides.items():
            write(f"{split}.{lang}", lines)
            held_out |= {(lang, line) for line in lines}
    for pair in texts:
        langs = pair.split("-")
        kept = [row for row in texts[pair]["train"] if not held_out & {*zip(langs, row, strict=True)}]
        for side, lang in enumerate(langs):
            write(f"train.{'-'.join(sorted(langs))}.{lang}", [row[side] for row in kept])
    return local


def test_three_languages(tmp_path):
    scripts = Scripts(tmp_path)
    run, local = tmp_path / "run", write_local(tmp_path, WHEELS[0] if WHEELS else make_wheel(tmp_path / "made.whl"))

    def step(script, *arguments):
        done = scripts.run(f"multilingual/{script}.sh", *arguments, "--output", run)
        assert done.returncode == 0, done.stderr[-3000:]

    step("download", "--langs", " ".join(LANGS), "--local", local)
    for pair in ("de-en", "de-fr", "en-fr"):
        for lang in pair.split("-"):
            assert lines_of(run / f"raw/train.{pair}.{lang}") == lines_of(local / f"train.{pair}.{lang}")
    step(
        "preprocess",
        "--vocab-size",
        "120" if not WHEELS else "600",
        "--sample",
        "40",
        "--shards",
        "1",
        "--workers",
        "1",
    )
    step("train", "big", *QUICK.split())
    step("generate", "big", *"--cpu --beam 1 --max-len-a 0 --max-len-b 5 --limit 2".split())
    translated = sorted(path.name for path in (run / "big/test").iterdir() if path.name.startswith("test."))
    assert translated == [f"test.{a}-{b}.{b}" for a in LANGS for b in LANGS if a != b]
    assert all(len(lines_of(run / "big/test" / name)) == 2 for name in translated)
