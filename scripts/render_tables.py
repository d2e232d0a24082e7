"""Renders the tables with numbers in README.md, docs/ and configs/README.md from what they are made of.

A table that this script writes stands between two comments:

    <!-- table: NAME from SOURCE, made by: COMMAND -->
    ...
    <!-- end table -->

NAME is one of the renderers below. SOURCE is a committed JSON file, and COMMAND is what measured it; or SOURCE is
`the package`, for what follows from the code alone. A JSON file may say itself which command made it (`made_by`); then
the comment has to agree.

example:
  python scripts/render_tables.py           # writes the tables
  python scripts/render_tables.py --check   # writes nothing; status 1 if a table is not what its source gives
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from owf_fairseq.files.lines import write_lines
from owf_fairseq.tables import markdown_table, number

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts/measure"))
MARKED = re.compile(
    r"(?P<start><!-- table: (?P<name>\S+) from (?P<source>[^,]+), made by: (?P<command>.+?) -->\n)"
    r"(?P<table>.*?)(?P<end><!-- end table -->)",
    re.DOTALL,
)
PACKAGE = "the package"

Data = dict[str, Any]
FROM_JSON: dict[str, Callable[[Data], str]] = {}
FROM_PACKAGE: dict[str, Callable[[str], str]] = {}


def from_json(name: str) -> Callable:
    """Registers a renderer of a JSON file."""
    return lambda render: FROM_JSON.setdefault(name, render)


def from_package(name: str) -> Callable:
    """Registers a renderer that takes the command alone."""
    return lambda render: FROM_PACKAGE.setdefault(name, render)


# --- measured


@from_json("report")
def report_table(data: Data) -> str:
    """`owf report --only-ours --json`: our results, and the paper's beside them where there is a row."""
    from owf_fairseq.paper.report import report
    from owf_fairseq.paper.results import Ours, Results

    models = [Ours(**row["ours"]) for row in data["rows"] if row["ours"]]
    made = report(Results({model.name: model for model in models}), data["table"], only_ours=True)
    return markdown_table(made.header, made.rows, made.words)


@from_json("ratios")
def ratios_table(data: Data) -> str:
    """`scripts/measure/bench_training.py --json`."""
    rows = [[f"`{r['arch']}` to `{r['to']}`", f"{r['speed']:.2f}", f"{r['memory']:.2f}"] for r in data["ratios"]]
    return markdown_table(["training", "speed", "peak memory"], rows)


@from_json("cells")
def cells_table(data: Data) -> str:
    """Rows as objects whose values are the cells, as `scripts/measure/compare_exports.py --json` writes them."""
    rows = [list(row.values()) for row in data["rows"]]
    words = {index for index in range(len(rows[0])) if not any(_is_number(row[index]) for row in rows)}
    return markdown_table(list(data["rows"][0]), rows, words)


@from_json("speeds")
def speeds(data: Data) -> str:
    """`owf benchmark --json`: every model in every setting."""
    from owf_fairseq.speed.report import speeds_table

    made = speeds_table({**data, "calibration": None})  # which only its notes are about
    return markdown_table(made.header, made.rows, made.words)


@from_json("like_for_like")
def like_for_like(data: Data) -> str:
    """`owf benchmark --unpacked NAME ... --json`: each model to the first that is decoded in the same way."""
    unpacked = data["settings"]["unpacked"]
    archs = {model["name"]: model["arch"] for model in data["models"]}
    packed_base = next(name for name in archs if name not in unpacked)
    found: dict[tuple[str, str], list[str]] = {}
    for entry in data["measurements"]:
        base = unpacked[0] if entry["name"] in unpacked else packed_base
        [first] = [one for one in data["measurements"] if (one["name"], one["lengths"]) == (base, entry["lengths"])]
        runs = zip(entry["tokens_per_s"]["by_run"], first["tokens_per_s"]["by_run"], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in runs)
        found.setdefault((entry["lengths"], archs[entry["name"]]), []).append(f"{ratio:.2f}")
    rows = [[*key, *cells] for key, cells in found.items()]
    return markdown_table(["source/target", "model", "ratio, as in fairseq", "ratio, packed"], rows, words=(0, 1))


@from_json("batch_sizes")
def batch_sizes(data: Data) -> str:
    """`owf benchmark --batch-sizes ... --json`: ours beside the table of the paper's appendix."""
    from owf_fairseq.cost_model.speed_tables import batch_size_table
    from owf_fairseq.paper.rows import batch_rows
    from owf_fairseq.tables import with_deviation

    made = batch_size_table(
        {model["name"]: model["baseline"] for model in data["models"]},
        data["measurements"],
        lambda entry: with_deviation(entry["tokens_per_s"]["mean"], entry["tokens_per_s"]["sd"]),
        lambda entry: entry["ratio"]["median"],
        data,
    )
    paper = {str(row.batch_size): f"{row.speed_up:+}" for row in batch_rows()}
    rows = [[*row, paper[row[1]]] for row in made.rows]
    return markdown_table([*made.header, "paper's GPU: speed-up, %"], rows, made.words)


def _exploration(name: str, place: int) -> None:
    @from_json(name)
    def render(data: Data) -> str:
        from owf_fairseq.explore.tables import workload_table

        made = workload_table(data, place)
        return markdown_table(made.header, made.rows, made.words)


for _place, _name in enumerate(("exploration", "exploration_second")):
    _exploration(_name, _place)


@from_json("curves")
def curves_table(data: Data) -> str:
    """`scripts/measure/warm_start.py`: validation losses by updates."""
    from warm_start import Curve, loss_table

    return loss_table(
        [Curve(curve["name"], {int(at): loss for at, loss in curve["loss"].items()}) for curve in data["curves"]]
    )


def _similarity(table: str, decimals: int) -> None:
    @from_json(f"similarity_{table}")
    def render(data: Data) -> str:
        from owf_fairseq.analysis.tables import COLUMNS, TITLES, WHOLE

        listed = data["tables"][table]
        with_paper = any(row["paper"] for row in listed)
        header, rows = ["model"], []
        for stack, metric in COLUMNS:
            header += [f"{stack} {TITLES[metric]}", "paper"][: 1 + with_paper]
        for row in listed:
            name = f"{row['paper_row']} ({row['model']})" if row["paper_row"] and row["role"] == "compared" else None
            cells = [name or row["model"]]
            for stack, metric in COLUMNS:
                mark = f" {WHOLE}" if stack in row["whole_layers"] else ""
                paper = row["paper"][f"{stack}_{metric}"] if row["paper"] else None
                cells += [number(row[f"{stack}_{metric}"], decimals) + mark, number(paper, decimals)][: 1 + with_paper]
            rows.append(cells)
        return markdown_table(header, rows)


for _table, _decimals in (("normalised", 1), ("raw", 2), ("layers", 2)):
    _similarity(_table, _decimals)


@from_json("similarity_redundancy")
def redundancy_table(data: Data) -> str:
    """`owf similarity --json`: how alike neighbouring components of a model are."""
    what = ("adjacent", "second", "difference")
    stacks = ("encoder", "decoder")
    rows = [
        [row["model"], *(number((row[stack] or {}).get(one), 3) for stack in stacks for one in what)]
        for row in data["tables"]["redundancy"]
    ]
    return markdown_table(["model", *(f"{stack} {one}" for stack in stacks for one in what)], rows)


# --- of the package itself


def _printed(command: str, index: int) -> str:
    """A table of what an `owf` command prints with `--markdown`."""
    from owf_fairseq import cli

    program, *words = shlex.split(command)
    if program != "owf":
        raise ValueError(f"a table of {PACKAGE} is made by an `owf` command, not by `{command}`")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = cli.main([*words, "--markdown"])
    if status:
        raise ValueError(f"`{command} --markdown` ended with status {status}")
    return re.findall(r"(?:^\|.*\n?)+", printed.getvalue(), re.MULTILINE)[index].rstrip("\n")


@from_package("printed")
def printed_first(command: str) -> str:
    """The first table of the command."""
    return _printed(command, 0)


@from_package("printed_second")
def printed_second(command: str) -> str:
    """The second table of the command."""
    return _printed(command, 1)


@from_package("patterns")
def patterns_table(_: str) -> str:
    """The patterns, for six layers."""
    from owf_fairseq.patterns import STRATEGIES, make_pattern

    rows = []
    for strategy in STRATEGIES.values():
        numbers = make_pattern(strategy.spelling.replace("-M", "-2"), 6)
        layout = " ".join("–" if one is None else str(one) for one in numbers)
        meaning = " ".join((strategy.layout.__doc__ or "").split("\n\n")[0].split()).rstrip(".")
        rows.append([f"`{strategy.spelling}`", layout, meaning])
    return markdown_table(["pattern", "6 layers (M = 2)", "meaning"], rows, words=(0, 1, 2))


@from_package("sizes")
def sizes_table(_: str) -> str:
    """The named sizes."""
    from owf_fairseq.sharing import SIZES

    rows = [
        [
            f"`{name}`",
            " + ".join(str(getattr(size, f"{stack}_layers")) for stack in size.stacks),
            *(f"{size.embed_dim:,}", f"{size.ffn_dim:,}", f"{size.wide_ffn_dim:,}", str(size.heads)),
        ]
        for name, size in SIZES.items()
    ]
    return markdown_table(["size", "layers", "d_model", "d_ff", "One Wide FFN's d_ff'", "heads"], rows)


def _flags_of(configuration: Any, size: Any) -> str:
    flags = [
        "`--" + name.replace("_", "-") + ("`" if value is True else f" {value}`")
        for name, value in configuration.flags.items()
        if value != "individual"
    ]
    layers = "(N_enc + N_dec)" if size.encoder_layers else "N"
    return ", ".join(flags) + (f"; d_ff' = {layers} × d_ff" if configuration.wide else "")


def _configurations(size: str) -> str:
    from owf_fairseq.paper.rows import VOCAB_SIZES
    from owf_fairseq.parameters import count_parameters
    from owf_fairseq.sharing import SIZES, arch_name

    rows = []
    for name, configuration in SIZES[size].configurations.items():
        count = count_parameters(arch_name(size, name), VOCAB_SIZES["en-de"])
        rows.append([configuration.paper, f"`{name}`", _flags_of(configuration, SIZES[size]), f"{count.total:,}"])
    header = ["the paper", "configuration", "flags that it stands for", f"parameters (`owf_{size}`)"]
    return markdown_table(header, rows, words=(0, 1, 2))


@from_package("configurations")
def configurations_table(_: str) -> str:
    """The paper's encoder-decoder configurations."""
    return _configurations("big")


@from_package("decoder_only_configurations")
def decoder_only_table(_: str) -> str:
    """Those of the decoder-only model."""
    return _configurations("decoder_only")


@from_package("terms")
def terms_table(_: str) -> str:
    """The paper's terms of the FFN and the architectures of size big, in short."""
    from owf_fairseq.paper.rows import VOCAB_SIZES
    from owf_fairseq.parameters import count_parameters
    from owf_fairseq.sharing import CONFIGURATIONS, arch_name

    rows = []
    for name, configuration in CONFIGURATIONS.items():
        if name.startswith(("sequence", "cycle", "attention")):
            continue
        count = count_parameters(arch_name("big", name), VOCAB_SIZES["en-de"])
        rows.append([configuration.paper, f"`{arch_name('big', name)}`", f"{count.total / 1e6:.0f} M"])
    return markdown_table(["the paper", "architecture", "parameters"], rows, words=(0, 1))


@from_package("paper_one_wide")
def paper_table(_: str) -> str:
    """What the paper prints of One Wide FFN."""
    from owf_fairseq.paper.rows import rows_of_table
    from owf_fairseq.tables import DAGGER, with_deviation

    rows = []
    for row in rows_of_table("one_wide"):
        bleu, chrf = (
            f"{getattr(row, metric)}" + (f" {DAGGER}" if getattr(row, f"significant_{metric}") else "")
            for metric in ("bleu", "chrf")
        )
        speed = with_deviation(row.tokens_per_s, row.tokens_per_s_sd) if row.tokens_per_s else "-"
        rows.append([row.row, bleu, chrf, str(row.comet), speed, f"{row.params_millions} M"])
    return markdown_table(["the paper's row", "BLEU", "chrF", "COMET", "tokens/s", "parameters"], rows)


@from_package("configs")
def configs_table(_: str) -> str:
    """The folders of configs."""
    from owf_fairseq.training.config import CONFIGS, config_names
    from owf_fairseq.training.run import plan

    about = {
        "wmt22_en_de": "WMT22 English-German",
        "wmt16_en_ro": "WMT16 English-Romanian",
        "multilingual": "ten languages, 90 directions",
        "multi30k": "Multi30k English-German",
        "quickstart": "the corpus of `scripts/quickstart.sh`",
        "iwslt14_de_en": "IWSLT14 German-English",
    }
    rows = []
    for folder, data in about.items():
        names = [name for name in config_names() if name.startswith(f"{folder}/")]
        training = plan(names[0], environment={})
        assert training.batch is not None
        sizes = sorted(
            path.stem for path in (CONFIGS / folder).glob("[!_]*.yaml") if f"owf_{path.stem}" in _individual()
        )
        rows.append(
            [
                f"`{folder}`",
                data,
                ", ".join(f"`{size}`" for size in sizes),
                f"{training.batch.wanted:,} tokens",
                f"{training.args.max_update:,}",
            ]
        )
    return markdown_table(["folder", "data", "sizes", "an update", "updates"], rows, words=(0, 1, 2))


def _individual() -> set[str]:
    from owf_fairseq.sharing import SIZES

    return {f"owf_{size}" for size in SIZES}


# --- documents


def documents() -> list[Path]:
    """The files whose tables are looked at."""
    return [ROOT / "README.md", ROOT / "configs/README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rendered(text: str) -> str:
    """The document with every marked table as its source gives it.

    Raises:
        ValueError: a mark names what is not there.
    """

    def replace(match: re.Match[str]) -> str:
        return match["start"] + _render(match["name"], match["source"], match["command"]) + "\n" + match["end"]

    return MARKED.sub(replace, text)


def _render(name: str, source: str, command: str) -> str:
    if source == PACKAGE:
        if name not in FROM_PACKAGE:
            raise ValueError(f"table '{name}' of {PACKAGE}: there are {', '.join(FROM_PACKAGE)}")
        return FROM_PACKAGE[name](command)
    if name not in FROM_JSON:
        raise ValueError(f"table '{name}' from {source}: there are {', '.join(FROM_JSON)}")
    path = ROOT / source
    if not path.is_file():
        raise ValueError(f"table '{name}': {source} is not there")
    data = json.loads(path.read_text(encoding="utf-8"))
    made_by = data.get("made_by", command)
    if made_by != command:
        raise ValueError(f"{source} was made by `{made_by}`, and the comment above its table says `{command}`")
    return FROM_JSON[name](data)


_NUMBER = re.compile(r"[-+±~<>]?\d[\d,.]*(e[-+]\d+)?( ?[%†‡]| [MGkK]B?| ± .*| of \d+| tokens)*")


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip("*` ")) is not None


def unmarked_tables(text: str) -> Iterator[str]:
    """The tables that have a number in a cell and no mark; of each its head."""
    outside = re.sub(r"^```.*?^```", "", MARKED.sub("", text), flags=re.DOTALL | re.MULTILINE)
    for match in re.finditer(r"(?:^[ ]*\|.*\n?)+", outside, re.MULTILINE):
        head, *rows = match[0].strip().splitlines()
        cells = [cell for row in rows[1:] for cell in row.strip().strip("|").split("|")]
        if any(_is_number(cell) for cell in cells):
            yield head


def main(argv: list[str] | None = None) -> int:
    """Writes the tables, or checks them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a table is not up to date")
    args = parser.parse_args(argv)
    problems = []
    for path in documents():
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        problems += [f"{name}: no comment says what this table is made of: {head}" for head in unmarked_tables(text)]
        try:
            fresh = rendered(text)
        except ValueError as error:
            problems.append(f"{name}: {error}")
            continue
        if fresh != text and args.check:
            problems.append(f"{name}: a table is not what its source gives: run scripts/render_tables.py")
        elif fresh != text:
            write_lines(path, fresh.rstrip("\n").split("\n"))
            print(f"{name}: rendered")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
