"""The quickstart's corpus, on a small zip that has the wheel's layout."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fairseq_for_tests import REPOSITORY
from scripts_for_tests import load_script

from owf_fairseq.errors import InputError
from owf_fairseq.files.folders import MANIFEST
from owf_fairseq.files.lines import read_lines

corpus = load_script("quickstart/corpus.py")
SPLITS, QuickstartCorpus, Filter, _key = corpus.SPLITS, corpus.QuickstartCorpus, corpus.Filter, corpus._key
extract, choose_langs, write = corpus.extract, corpus.choose_langs, corpus.write

MakeWheel = Callable[[dict[tuple[str, str], object]], Path]

NOUNS = ["lamp", "door", "window", "heater", "camera", "garden", "kitchen", "battery", "printer", "speaker"]
VERBS = ["open", "close", "start", "stop", "check", "move", "clean", "reset", "pair", "wake"]
ADVERBS = ["now", "later", "slowly", "again", "carefully"]
SENTENCES = [f"{verb} the {noun} {adverb}" for verb in VERBS for noun in NOUNS for adverb in ADVERBS]


def foreign(text: str, lang: str) -> str:
    """Another language: its words are English words with the language's name behind them; Chinese has no spaces."""
    if lang == "zh-Hans":
        return "".join(chr(0x4E00 + ord(word[0])) + chr(0x4E00 + ord(word[-1])) for word in text.split())
    return " ".join(f"{word}{lang}" for word in text.split())


@pytest.fixture
def make_wheel(tmp_path: Path) -> MakeWheel:
    def make(tables: dict[tuple[str, str], object]) -> Path:
        path = tmp_path / "made.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("homeassistant/__init__.py", "")
            # Looks like a table, but in no place where a table is.
            archive.writestr("homeassistant/components/c0/other/translations/fr.json", "{}")
            archive.writestr("vendor/homeassistant/components/c0/translations/it.json", "{}")
            for (component, lang), table in tables.items():
                archive.writestr(f"homeassistant/components/{component}/translations/{lang}.json", json.dumps(table))
        return path

    return make


def tables_of(*langs: str) -> dict[tuple[str, str], Any]:
    """Tables of all sentences, in ten components, each a nested table."""
    tables: dict[tuple[str, str], Any] = {}
    for component in range(10):
        for lang in langs:
            own = SENTENCES[component::10]
            sides = own if lang == "en" else [foreign(sentence, lang) for sentence in own]
            tables[f"c{component}", lang] = {"config": {"step": {str(n): side for n, side in enumerate(sides)}}}
    return tables


def one_table(pairs: list[tuple[str, str]], langs: tuple[str, str] = ("en", "de")) -> dict[tuple[str, str], object]:
    """The sentences of `tables_of`, so that there are enough, and one component with the given pairs."""
    tables = tables_of(*langs)
    for side, lang in enumerate(langs):
        tables["special", lang] = {str(n): pair[side] for n, pair in enumerate(pairs)}
    return tables


def all_pairs(corpus: Any) -> set[tuple[str, str]]:
    return {pair for split in SPLITS for pair in corpus.pairs[split]}


def test_joins_on_component_and_nested_key(make_wheel: MakeWheel) -> None:
    tables = tables_of("en", "de")
    # The same key in another component, another key, and a table without its counterpart are no pairs.
    tables["x", "en"] = {"a": {"b": "turn the big wheel"}, "only": "say a long word", "deep": {"b": "find the old key"}}
    tables["x", "de"] = {"a": {"b": "drehe das große Rad"}, "other": "sage ein langes Wort", "deep": "kein Schlüssel"}
    tables["x", "de"]["else"] = {"b": "anderswo unter gleichem Namen"}
    tables["y", "en"] = {"a": {"b": "sing a new song"}}
    tables["z", "de"] = {"a": {"b": "singe ein neues Lied"}}
    corpus = extract(make_wheel(tables), "en-de")
    special = {pair for pair in all_pairs(corpus) if not pair[1].endswith("de")}
    assert special == {("turn the big wheel", "drehe das große Rad")}
    assert (corpus.source, corpus.target) == ("en", "de")
    assert {(sentence, foreign(sentence, "de")) for sentence in SENTENCES} <= all_pairs(corpus)
    assert corpus.counts["joined"] == len(SENTENCES) + 1


@pytest.mark.parametrize(
    "pair",
    [
        ("turn {name} on now", "schalte {name} jetzt ein"),
        ("turn the <b>lamp</b> on", "schalte die Lampe ein"),
        ("turn the lamp on", "schalte die [Lampe](x) ein"),
        ("the key is [%key:common%]", "der Schlüssel ist hier"),
        ("see https://example.org for more", "siehe dort für mehr"),
        ("wait for 1000 seconds", "warte lange Zeit jetzt"),
        ("first line here\nsecond line", "erste Zeile hier zweite Zeile"),
        ("The Same Text", "the same text"),
        ("one two three", "eins " * 12),
        ("word " * 21, "Wort " * 21),
        ("", "etwas ist hier"),
    ],
    ids=repr,
)
def test_filtered_out(make_wheel: MakeWheel, pair: tuple[str, str]) -> None:
    corpus = extract(make_wheel(one_table([pair])), "en-de")
    assert all(side.endswith("de") for _, side in all_pairs(corpus))
    assert len(all_pairs(corpus)) == len(SENTENCES)


def test_kept_with_white_space_made_plain(make_wheel: MakeWheel) -> None:
    pair = (" wait\u00a0for\t12 seconds ", "warte 12\u2028Sekunden")
    assert ("wait for 12 seconds", "warte 12 Sekunden") in all_pairs(extract(make_wheel(one_table([pair])), "en-de"))


def test_split_is_by_the_english_side_whatever_its_case_and_punctuation(make_wheel: MakeWheel) -> None:
    pairs = [(f"{sentence.capitalize()}.", foreign(sentence, "xx")) for sentence in SENTENCES]
    corpus = extract(make_wheel(one_table(pairs)), "en-de")
    where = {split: {_key(source) for source, _ in corpus.pairs[split]} for split in SPLITS}
    assert sum(map(len, where.values())) == len(set.union(*where.values())) == len(SENTENCES)
    plain = extract(make_wheel(tables_of("en", "de")), "en-de")
    assert where == {split: {_key(source) for source, _ in plain.pairs[split]} for split in SPLITS}
    # A held-out sentence has one translation; in train both are kept.
    for split in ("valid", "test"):
        assert len(corpus.pairs[split]) == len(where[split]) > 0
    assert len(corpus.pairs["train"]) == 2 * len(where["train"])


@pytest.mark.parametrize("langs", ["en-de", "de-en", "fr-de"])
def test_no_sentence_of_either_side_is_in_two_splits(make_wheel: MakeWheel, langs: str) -> None:
    tables = tables_of("en", "de", "fr")
    for component in range(10):
        # Five English sentences have the same translation, whose words end in "x".
        table = {str(n): f"gleich gleich {component} {n // 5}x" for n in range(50)}
        tables[f"c{component}", "de"] = {"config": {"step": table}}
    corpus = extract(make_wheel(tables), langs, keep=Filter(max_held_out_per_mille=150, min_pairs=1))
    for side in (0, 1):
        seen = [{_key(pair[side]) for pair in corpus.pairs[split]} for split in SPLITS]
        assert all(seen)
        assert not seen[0] & seen[1]
        assert not seen[0] & seen[2]
        assert not seen[1] & seen[2]


def test_the_split_of_a_sentence_is_the_same_in_all_language_pairs(make_wheel: MakeWheel) -> None:
    wheel = make_wheel(tables_of("en", "de", "fr"))
    english = [
        {split: {pair[side] for pair in extract(wheel, langs).pairs[split]} for split in SPLITS}
        for langs, side in (("en-de", 0), ("fr-en", 1))
    ]
    assert english[0] == english[1]


def test_the_most_frequent_translation_is_the_held_out_one(make_wheel: MakeWheel) -> None:
    tables = tables_of("en", "de")
    for component in range(10):
        table = tables[f"c{component}", "de"]
        for copy in ("first", "second"):
            tables[f"{copy}{component}", "en"] = tables[f"c{component}", "en"]
            tables[f"{copy}{component}", "de"] = json.loads(re.sub(r"de\b", "oft", json.dumps(table)))
    corpus = extract(make_wheel(tables), "en-de")
    for split in ("valid", "test"):
        assert corpus.pairs[split]
        assert all(target.endswith("oft") for _, target in corpus.pairs[split])


def test_single_words_are_for_training_only(make_wheel: MakeWheel) -> None:
    pairs = [(f"{verb}{noun}", f"{noun}{verb}x") for verb in VERBS for noun in NOUNS]
    corpus = extract(make_wheel(one_table(pairs)), "en-de")
    single = {split: sum(" " not in source for source, _ in corpus.pairs[split]) for split in SPLITS}
    assert single["train"] > 70
    assert single["valid"] == single["test"] == 0


def test_languages_without_spaces_are_measured_by_characters(make_wheel: MakeWheel) -> None:
    pairs = [("点" * 40, "eins " * 20), ("点" * 41, "zwei " * 20)]
    corpus = extract(make_wheel(one_table(pairs, ("zh-Hans", "de"))), "zh-Hans-de")
    kept = {source for source, _ in all_pairs(corpus)}
    assert "点" * 40 in kept
    assert "点" * 41 not in kept
    # With English in the pair its words count, and thirteen characters for four words are not too many.
    pairs = [("turn the light on", "请打开厨房里的灯并且关门吧")]
    corpus = extract(make_wheel(one_table(pairs, ("en", "zh-Hans"))), "en-zh-Hans")
    assert pairs[0] in all_pairs(corpus)


def test_limit_is_per_split_and_not_the_most_frequent(make_wheel: MakeWheel) -> None:
    tables = tables_of("en", "de")
    # One component's sentences are there twice.
    for lang in ("en", "de"):
        tables["copy", lang] = tables["c7", lang]
    wheel = make_wheel(tables)
    whole, limited = extract(wheel, "en-de"), extract(wheel, "en-de", limit=7)
    assert limited.pairs == {split: whole.pairs[split][:7] for split in SPLITS}
    assert whole.pairs == extract(make_wheel(tables_of("en", "de")), "en-de").pairs


def test_same_files_in_every_process(make_wheel: MakeWheel, tmp_path: Path) -> None:
    wheel = make_wheel(tables_of("en", "de"))
    for seed in ("1", "2"):
        command = [sys.executable, REPOSITORY / "scripts/quickstart/corpus.py", "--wheel", wheel, "--langs", "en-de"]
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)}
        subprocess.run([*command, "--output", tmp_path / seed], check=True, env=environment, stdout=subprocess.DEVNULL)
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert names == sorted([MANIFEST, "corpus.json", *(f"{split}.{lang}" for split in SPLITS for lang in ("en", "de"))])
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_written_files_are_aligned(make_wheel: MakeWheel, tmp_path: Path) -> None:
    corpus = extract(make_wheel(tables_of("en", "de")), "en-de")
    write(corpus, tmp_path / "out")
    for split in SPLITS:
        sides = [read_lines(tmp_path / "out" / f"{split}.{lang}") for lang in ("en", "de")]
        assert list(zip(*sides, strict=True)) == corpus.pairs[split]
    counts = json.loads((tmp_path / "out" / "corpus.json").read_text())["counts"]
    assert {split: counts[split] for split in SPLITS} == {split: len(corpus.pairs[split]) for split in SPLITS}


@pytest.mark.parametrize(
    ("langs", "pair"),
    [
        ("en-de", ("en", "de")),
        ("en-zh-Hans", ("en", "zh-Hans")),
        ("pt-BR-fr", ("pt-BR", "fr")),
        ("sr-Latn-sr", ("sr-Latn", "sr")),
        ("pt-pt-BR", ("pt", "pt-BR")),
        ("pt-BR-zh-Hans", ("pt-BR", "zh-Hans")),
    ],
)
def test_languages_with_hyphens(langs: str, pair: tuple[str, str]) -> None:
    assert choose_langs(langs, ["de", "en", "fr", "pt", "pt-BR", "sr", "sr-Latn", "zh-Hans"]) == pair


@pytest.mark.parametrize(
    ("langs", "message"),
    [
        ("en", "two different languages"),
        ("", "two different languages"),
        ("en-en", "two different languages"),
        ("en-xx", "no 'xx'; it has: de, en, fr"),
        ("xx-en", "no 'xx'"),
        ("xx-yy", "no 'xx' and no 'yy'"),
        ("en-de-", "no 'de-'"),
        ("en_de", "two different languages"),
    ],
)
def test_unknown_languages(langs: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choose_langs(langs, ["de", "en", "fr"])


def test_wheels_that_are_none(make_wheel: MakeWheel, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a zip file")
    with pytest.raises(InputError, match="text is not a zip file"):
        extract(text, "en-de")
    with pytest.raises(InputError, match=r"none can't be read: No such file"):
        extract(tmp_path / "none", "en-de")
    with pytest.raises(InputError, match="no 'it'; it has: de, en"):
        extract(make_wheel(tables_of("en", "de")), "en-it")
    with pytest.raises(InputError, match="holds no homeassistant"):
        extract(make_wheel({}), "en-de")
    with pytest.raises(InputError, match=r"too few pairs .* \(\d for train"):
        extract(make_wheel({key: table for key, table in tables_of("en", "de").items() if key[0] == "none"} | {
            ("c", "en"): {"a": "open the big door"}, ("c", "de"): {"a": "öffne die große Tür"},
        }), "en-de")  # fmt: skip
    damaged = make_wheel(tables_of("en", "de"))
    with zipfile.ZipFile(damaged, "a") as archive:
        for lang in ("en", "de"):
            archive.writestr(f"homeassistant/components/broken/translations/{lang}.json", "{")
    with pytest.raises(InputError, match="broken/translations/en.json is damaged"):
        extract(damaged, "en-de")


def test_command_extracts_once_and_refuses(
    make_wheel: MakeWheel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--wheel", str(make_wheel(tables_of("en", "de"))), "--langs", "en-de", "--output", str(tmp_path / "raw")]
    assert corpus.main(command) == 0
    assert "en-de: 500 pairs" in capsys.readouterr().out
    before = (tmp_path / "raw/train.en").stat().st_mtime_ns
    assert corpus.main(command) == 0
    assert "made before with the same settings" in capsys.readouterr().out
    assert (tmp_path / "raw/train.en").stat().st_mtime_ns == before
    assert corpus.main([*command, "--limit", "120"]) == 0
    assert len(read_lines(tmp_path / "raw/train.en")) == 120
    assert corpus.main([*command, "--limit", "0"]) == 2
    assert "`--limit` must be at least 1, but is 0" in capsys.readouterr().err
    (tmp_path / "raw/mine").touch()
    assert corpus.main([*command, "--limit", "9"]) == 2
    assert "holds files that" in capsys.readouterr().err
