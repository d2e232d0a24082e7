"""The pictures: there for every model, in both formats, with labels that don't overlap."""

import itertools
import random

import pytest

from owf_fairseq.analysis.plots import FORMATS, STYLE, draw, figures
from owf_fairseq.analysis.tables import NOTHING

matplotlib = pytest.importorskip("matplotlib", reason="`pip install '.[plot]'` for the plots")


def stack(kinds, layers, baseline=None, seed=1):
    """A stack with random similarities; the baseline's labels are its own by default."""
    numbers = random.Random(seed)
    labels = {
        "modules": [f"{n}.{kind}" for n in range(layers) for kind in kinds],
        "layers": list(map(str, range(layers))),
    }
    names = baseline or labels
    columns, rows = (len(one["modules"]) + layers for one in (labels, names))

    def matrix(down, across):
        return {m: [[numbers.random() for _ in range(across)] for _ in range(down)] for m in ("cka", "lns")}

    scores = {
        of: {m: [numbers.random() for _ in labels[of]] if labels[of] == names[of] else None for m in ("cka", "lns")}
        for of in labels
    }
    return {**labels, "baseline": names, "self": matrix(columns, columns), "cross": matrix(rows, columns),
            "scores": scores, "redundancy": {"adjacent": 0.5, "second": 0.6, "difference": -0.1}}  # fmt: skip


def analysis(encoder, decoder):
    kinds = {"encoder": ["sa", "ffn"], "decoder": ["sa", "ca", "ffn"]}
    layers = {"encoder": encoder, "decoder": decoder}

    def made(seed):
        return {name: stack(kinds[name], layers[name], seed=seed) for name in kinds}

    base = made(1)
    dropped = {**base, "decoder": stack(["sa", "ca"], decoder, base["decoder"])}
    roles = [
        ("Transformer Big", "baseline", base),
        ("a/b", "compared", made(4)),
        ("a_b", "compared", dropped),
        ("/a/path/to/a/checkpoint/with $ in/its $.pt", "compared", dropped),
        ("seed 2", "benchmark", made(2)),
        ("random weights", "random", made(3)),
    ]
    return {"models": [{"name": name, "role": role, "stacks": stacks} for name, role, stacks in roles]}


def boxes(texts):
    return [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("layers", [(6, 6), (12, 12)], ids=str)
def test_labels_do_not_overlap_and_all_components_have_one(layers):
    seen = {}
    with matplotlib.rc_context(STYLE):
        for name, figure in figures(analysis(*layers)):
            if name.startswith(("Transformer_Big.self", "a_b_2", "a_b.layers")):
                figure.draw_without_rendering()
                check_places(name, figure)
                seen[name] = sum(len(axis.get_xticklabels()) for axis in figure.axes)
    encoder, decoder = layers
    expected = {
        "Transformer_Big.self.encoder": 2 * encoder,
        "Transformer_Big.self.decoder": 3 * decoder,
        "a_b.layers": 2 * (2 * encoder + 3 * decoder),
        "a_b_2.self.encoder": 2 * 2 * encoder,
        "a_b_2.self.decoder": 5 * decoder,
        "a_b_2.cross.encoder": 2 * 2 * encoder,
        "a_b_2.cross.decoder": 2 * 2 * decoder,
        "a_b_2.layers": 2 * (2 * encoder + decoder),
    }
    if decoder == 12:  # too high for one page
        for name, halves in (("self", (3 * decoder, 2 * decoder)), ("cross", (2 * decoder, 2 * decoder))):
            del expected[f"a_b_2.{name}.decoder"]
            expected |= {f"a_b_2.{name}.decoder.{number}": half for number, half in enumerate(halves, 1)}
    if encoder == 12:
        for name in ("self", "cross"):
            del expected[f"a_b_2.{name}.encoder"]
            expected |= {f"a_b_2.{name}.encoder.{number}": 2 * encoder for number in (1, 2)}
    assert seen == expected


def check_places(name, figure):
    """No label lies on another, none leaves the picture, and on a page of 6.3 x 9.7 inches they can be read."""
    assert figure.get_figwidth() < 8
    assert figure.get_figheight() <= 9.7
    titles = boxes(text for axis in figure.axes for text in (axis.title, axis.xaxis.label, axis.yaxis.label))
    groups = [labels for axis in figure.axes for labels in (axis.get_xticklabels(), axis.get_yticklabels())]
    for group in [*map(boxes, groups), titles]:
        for one, other in itertools.combinations(group, 2):
            assert not one.overlaps(other), name
    inside = [*titles, *(box for group in groups for box in boxes(group))]
    for box in [*inside, *(legend.get_window_extent() for legend in figure.legends)]:
        assert 0 <= box.x0 <= box.x1 <= figure.bbox.width, name
        assert 0 <= box.y0 <= box.y1 <= figure.bbox.height, name


def test_one_scale_of_colours_and_the_numbers_themselves():
    data = analysis(6, 6)
    for name, figure in figures(data):
        images = [image for axis in figure.axes for image in axis.get_images()]
        assert {image.get_clim() for image in images} in ({(0.0, 1.0)}, set()), name
        if name == "a_b_2.cross.decoder":
            cross = data["models"][2]["stacks"]["decoder"]["cross"]
            assert [image.get_array().shape for image in images] == [(18, 12)] * 2
            assert [image.get_array()[4][7] for image in images] == [cross["cka"][4][7], cross["lns"][4][7]]
        if name == "a_b_2.self.decoder":
            shown = [data["models"][n]["stacks"]["decoder"]["self"]["cka"] for n in (0, 2)]
            assert [image.get_array()[2][5] for image in images] == [matrix[2][5] for matrix in shown]
        if name == "a_b.layers":
            heights = [bar.get_height() for bar in figure.axes[0].patches]
            scores = [data["models"][n]["stacks"]["encoder"]["scores"]["modules"]["cka"] for n in (4, 1)]
            assert heights == [*scores[0], *scores[1]]
            (line,) = figure.axes[0].lines
            assert list(line.get_ydata()) == data["models"][5]["stacks"]["encoder"]["scores"]["modules"]["cka"]
            assert len({bar.get_facecolor() for bar in figure.axes[0].patches}) == 2
        if name == "a_b_2.layers":
            assert [axis.get_title() for axis in figure.axes][2] == "CKA, decoder, whole layers"


def test_every_picture_is_written_in_both_formats(tmp_path):
    data = analysis(2, 2)
    data["models"] = [*data["models"][:3], data["models"][4]]
    names = draw(data, tmp_path)
    both = [f"{kind}.{name}" for name in ("encoder", "decoder") for kind in ("self", "cross")]
    assert names == [
        *("Transformer_Big.self.encoder", "Transformer_Big.self.decoder"),
        *(f"a_b.{kind}" for kind in (*both, "layers")),
        *(f"a_b_2.{kind}" for kind in (*both, "layers")),
        *(f"seed_2.{kind}" for kind in both),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.{kind}" for name in names for kind in FORMATS}
    assert (tmp_path / "a_b.self.encoder.png").read_bytes().startswith(b"\x89PNG")
    again = tmp_path / "again"
    again.mkdir()
    draw({"models": data["models"][:1]}, again)
    one, other = ((folder / "Transformer_Big.self.encoder.svg").read_bytes() for folder in (tmp_path, again))
    assert one == other
    assert b"<svg" in one


def test_names_of_models_are_shown_as_they_are():
    shown = {}
    for name, figure in figures(analysis(2, 2)):
        figure.draw_without_rendering()  # as mathematics, such a name would be an error
        shown[name] = [axis.get_xlabel() for axis in figure.axes]
    (name,) = [name for name in shown if name.endswith("its_.pt.cross.encoder")]
    assert shown[name][0] == r"/a/path/to/a/c…\$ in/its \$.pt"
    assert shown["a_b.cross.encoder"][0] == "a/b"


def test_stacks_that_cannot_be_compared_are_said_to_be_so():
    data = analysis(2, 2)
    model = data["models"][1]
    model["stacks"]["encoder"] = stack(["sa", "ffn"], 3, data["models"][0]["stacks"]["encoder"])
    model["stacks"]["decoder"] = {**stack([], 0, data["models"][0]["stacks"]["decoder"]), "redundancy": None}
    made = dict(figures(data))
    texts = {name: [text.get_text() for axis in made[name].axes for text in axis.texts] for name in made}
    assert texts["a_b.layers"] == [NOTHING] * 4
    assert texts["a_b.cross.decoder"] == [NOTHING] * 2
    assert texts["a_b.cross.encoder"] == []
