"""What README.md and docs/ say is true: commands parse, names exist, links lead somewhere, tables are up to date."""

import json
import re
import textwrap
from functools import cache

import pytest
import yaml
from documents_for_tests import TEXTS, blocks, commands, makers, render_tables
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from fairseq_for_tests import REPOSITORY

from owf_fairseq import USER_DIR, cli, patterns
from owf_fairseq.explore import families
from owf_fairseq.explore.counts import count, solve
from owf_fairseq.patterns import make_pattern
from owf_fairseq.scoring import metrics
from owf_fairseq.sharing import ARCHS, SIZES
from owf_fairseq.training.run import plan

README = TEXTS["README.md"]
MAP = TEXTS["docs/map.md"]


@pytest.fixture(params=TEXTS)
def document(request):
    return request.param


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_the_readme_has_every_command():
    listed = re.findall(r"^\| `owf (\w+)` \|", README, re.MULTILINE)
    assert sorted(listed) == sorted(set(listed)) == cli.subcommands()


# --- links and names


def test_every_link_leads_somewhere(document):
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)", TEXTS[document]):
        assert (REPOSITORY / document).parent.joinpath(link).exists(), link


def test_every_text_can_be_reached_from_the_readme():
    seen, left = set(), ["README.md"]
    while left:
        name = left.pop()
        seen.add(name)
        for link in re.findall(r"\]\(([^)#:\s]+)", TEXTS[name]):
            path = (REPOSITORY / name).parent.joinpath(link).resolve()
            path = path / "README.md" if path.is_dir() else path
            found = path.relative_to(REPOSITORY.resolve()).as_posix()
            if found in TEXTS and found not in seen:
                left.append(found)
    assert seen == set(TEXTS)


def test_every_arch_that_is_named_exists(document):
    named = set(re.findall(rf"--arch (\S+)|\b(owf_(?:{'|'.join(SIZES)})\w*)", TEXTS[document]))
    assert {name for pair in named for name in pair if name} <= {*ARCHS, "owf_big_"}  # owf_big_<configuration>


def test_every_file_that_is_named_exists(document):
    paths = re.findall(r"`((?:owf_fairseq|scripts|tests|configs)/[\w./]+)`", TEXTS[document])
    for path in paths:
        assert (REPOSITORY / path).exists(), path


def test_every_part_of_the_package_is_on_the_map():
    rows = re.findall(r"^\| (`owf_fairseq/[^|]*`) \|", MAP, re.MULTILINE)
    listed = {path for row in rows for path in re.findall(r"`([^`]+)`", row)}
    package = REPOSITORY / "owf_fairseq"
    modules = {f"owf_fairseq/{path.name}" for path in package.glob("[!_]*.py")}
    folders = {f"owf_fairseq/{path.parent.name}/" for path in package.glob("*/__init__.py")}
    assert listed == modules | folders


# --- commands


@cache
def fairseq_flags():
    """Every flag that fairseq-train takes with one of our architectures."""
    parser = options.get_training_parser()
    ARCH_MODEL_REGISTRY["owf_small"].add_args(parser)
    parts = [*TASK_DATACLASS_REGISTRY.values()]
    for registry in REGISTRIES.values():
        parts += registry["dataclass_registry"].values()
    fields = {name for part in parts if part for name in part.__dataclass_fields__}
    return set(parser._option_string_actions) | {f"--{name.replace('_', '-')}" for name in fields}


def option_words(words):
    return {word.split("=")[0] for word in words if word.startswith("--") and word != "--"}


def parse_owf(words):
    args, left = cli.make_parser().parse_known_args(words)
    assert not left or args.passes_flags, left
    assert option_words(left) <= fairseq_flags(), left


def parse_fairseq(words):
    words = [USER_DIR if word == "owf_fairseq" else word for word in words]
    parser = options.get_training_parser() if words[0] == "fairseq-train" else options.get_generation_parser()
    options.parse_args_and_arch(parser, input_args=words[1:])


def parse_script(words):
    script = (REPOSITORY / words[1]).read_text(encoding="utf-8")
    parsers = cli.make_parser()._subparsers._group_actions[0].choices.values()
    known = fairseq_flags() | {flag for parser in parsers for flag in parser._option_string_actions}
    for flag in option_words(words[2:]):
        assert flag in script or (flag in known and words[0] == "bash"), flag


def parse_pip(words):
    assert words[1] == "install"
    if "-c" in words:
        assert (REPOSITORY / words[words.index("-c") + 1]).is_file()


PROGRAMS = {
    "owf": lambda words: parse_owf(words[1:]),
    "fairseq-train": parse_fairseq,
    "fairseq-generate": parse_fairseq,
    "bash": parse_script,
    "python": parse_script,
    "pip": parse_pip,
    "torchrun": lambda words: parse_owf(words[words.index("owf") + 1 :]),
    "srun": lambda words: parse_owf(words[words.index("owf") + 1 :]),
}


def test_commands_parse(document, capsys):
    problems = []
    for words in (*commands(TEXTS[document]), *makers(TEXTS[document])):
        while "=" in words[0]:  # a variable of the environment
            words = words[1:]
        try:
            PROGRAMS[words[0]](words)
        except SystemExit:  # argparse has said why
            problems.append(f"{' '.join(words)}: {capsys.readouterr().err.splitlines()[-1]}")
        except (AssertionError, KeyError, OSError) as error:
            problems.append(f"{' '.join(words)}: {error!r}")
    assert not problems


def test_commands_in_running_text_have_flags_that_exist(document):
    text = re.sub(r"^[ ]*```.*?^[ ]*```", "", TEXTS[document], flags=re.DOTALL | re.MULTILINE)
    parsers = cli.make_parser()._subparsers._group_actions[0].choices
    for command in re.findall(r"`owf ([a-z][^`]*)`", " ".join(text.split())):
        name, *words = command.split()
        assert name in parsers, command
        known = set(parsers[name]._option_string_actions)
        for action in parsers[name]._actions:
            if isinstance(action.choices, dict):  # its own subcommands
                known |= {flag for each in action.choices.values() for flag in each._option_string_actions}
        known |= fairseq_flags() if parsers[name].get_default("passes_flags") else set()
        assert option_words(words) <= known, command


# --- tables


def test_tables_are_their_sources(document, capsys):
    text = TEXTS[document]
    assert render_tables.rendered(text) == text, "run scripts/render_tables.py"
    assert not list(render_tables.unmarked_tables(text))


def test_tables_are_not_only_a_few():
    sources = [m["source"] for text in TEXTS.values() for m in render_tables.MARKED.finditer(text)]
    assert len(sources) >= 25
    committed = {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "docs").rglob("*.json")}
    # a JSON file that no table shows is a leftover; of the study's runs its tables are made
    assert {path for path in committed if not path.startswith("docs/study/runs/")} <= set(sources)


@pytest.fixture
def documents(tmp_path, monkeypatch):
    """A repository with one document and one result; the function writes the document."""
    result = {"made_by": "owf doctor", "rows": [{"model": "a", "BLEU": "32.3"}, {"model": "b", "BLEU": "28.3"}]}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/x.json").write_text(json.dumps(result))
    monkeypatch.setattr(render_tables, "ROOT", tmp_path)
    monkeypatch.setattr(render_tables, "documents", lambda: [tmp_path / "README.md"])
    return lambda *lines: (tmp_path / "README.md").write_text("\n".join([*lines, ""]))


MARK = "<!-- table: cells from docs/x.json, made by: owf doctor -->"
TABLE = ["| model | BLEU |", "| --- | ---: |", "| a | 32.3 |", "| b | 28.3 |"]
END = "<!-- end table -->"


def test_rendering(documents, tmp_path, capsys):
    documents("text", "", MARK, END)
    assert render_tables.main(["--check"]) == 1
    assert render_tables.main([]) == 0
    assert (tmp_path / "README.md").read_text() == "\n".join(["text", "", MARK, *TABLE, END, ""])
    assert render_tables.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([MARK, *TABLE[:3], "| b | 28.4 |", END], "is not what its source gives"),
        (TABLE, "no comment says what this table is made of: | model | BLEU |"),
        ([*TABLE[:2], "| c | +24 % |"], "no comment says"),
        ([MARK.replace("x.json", "y.json"), *TABLE, END], "docs/y.json is not there"),
        ([MARK.replace("doctor", "train"), *TABLE, END], "was made by `owf doctor`, and the comment above"),
        ([MARK.replace("cells", "cell"), *TABLE, END], "table 'cell' from docs/x.json"),
    ],
)
def test_what_is_wrong_with_a_table_is_found(documents, capsys, lines, said):
    documents(*lines)
    assert render_tables.main(["--check"]) == 1
    assert said in capsys.readouterr().err


def test_a_table_of_words_needs_no_mark(documents):
    documents("| file | what |", "|---|---|", "| `a.py` | 3 things, in version 2.1 |")
    assert render_tables.main(["--check"]) == 0


# --- the worked examples of the map


def section(heading):
    return MAP.split(f"## {heading}\n")[1].split("\n## ")[0]


def test_the_example_of_a_pattern(monkeypatch):
    monkeypatch.setattr(patterns, "STRATEGIES", dict(patterns.STRATEGIES))
    function, row = blocks(section("Add a pattern"), "python")
    exec(function, vars(patterns) | {})
    [((name, layers), expected)] = eval("{" + row + "}").items()
    assert make_pattern(name, layers) == expected


def test_the_example_of_a_family(monkeypatch):
    monkeypatch.setattr(families, "FAMILIES", dict(families.FAMILIES))
    [function] = blocks(section("Add a family of layouts"), "python")
    exec(function, vars(families) | {})
    assert families.family_help("alternating") == "Individual FFNs in every second layer of each stack"
    template, *_ = families.FAMILIES["alternating"]("deep_shallow")
    layout = solve(template, 200e6, 50_408, 64)
    assert (layout.encoder_ffn, layout.decoder_ffn) == ("0,-,1,-,2,-,3,-,4,-,5,-", "0,-")
    assert abs(count(layout, 50_408) - 200e6) < 1e6


def test_the_example_of_a_metric():
    names, lines = blocks(section("Add a metric"), "python")
    added = {}
    exec(names, added)
    assert added["METRICS"] == {**metrics.METRICS, "chrf++": "chrF++"}
    from sacrebleu.metrics import CHRF

    made = {}
    exec("def bind(name, references):\n" + textwrap.indent(lines, "    "), {"CHRF": CHRF}, made)
    metric = made["bind"]("chrf++", [["a cat sat there", "and a dog"]])
    statistics = metric._extract_corpus_statistics(["a cat sat", "and a dog"], None)
    score = metric._aggregate_and_compute(statistics).score
    assert (
        score == CHRF(word_order=2).corpus_score(["a cat sat", "and a dog"], [["a cat sat there", "and a dog"]]).score
    )


def test_the_example_of_a_dataset(tmp_path, monkeypatch):
    base, model = blocks(section("Add a dataset"), "yaml")
    (tmp_path / "configs").symlink_to(REPOSITORY / "configs")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/_base.yaml").write_text(base)
    (tmp_path / "mine/small_one_wide_ffn.yaml").write_text(model)
    monkeypatch.chdir(tmp_path)
    [command] = [words for words in commands(section("Add a dataset")) if words[:2] == ["owf", "train"]]
    training = plan(command[2], command[3:], environment={})
    assert training.args.arch == yaml.safe_load(model)["arch"]
    assert training.args.max_update == yaml.safe_load(base)["max-update"]
