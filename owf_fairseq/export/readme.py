"""What an exported folder says of itself to the one who serves it."""

from __future__ import annotations

import json

from owf_fairseq.data.languages import short_code
from owf_fairseq.data.segmentation import SEGMENTATION_RECORD
from owf_fairseq.decoding.exported import EXPORT_RECORD, FLAGS, ExportedModel
from owf_fairseq.decoding.vocabulary_map import VOCABULARY_MAP


def readme(model: ExportedModel) -> str:
    """The README.md of a folder, wherever it will be moved to."""
    record = model.record
    files = {
        **({VOCABULARY_MAP: "the shortlist: which symbols a translation may have"} if has_shortlist(model) else {}),
        "model.bin, config.json, *_vocabulary.json": f"CTranslate2's: weights in {record['quantization']}, vocabulary",
        **_segmentation_files(model),
        FLAGS: "the flags that the model was trained with",
        EXPORT_RECORD: "languages, lengths, and how the export was verified",
    }
    verified = record["verification"]
    return "\n".join(
        [
            f"# {record['arch']}, {record['source']} to {record['target']}, for CTranslate2",
            "",
            f"{record['parameters']:,} parameters, a shared one counted once. Exported by owf_fairseq "
            f"{record['versions']['owf_fairseq']} for CTranslate2 {record['versions']['ctranslate2']} or later.",
            f"On {verified['tokens']} tokens the largest difference of a log-probability from the checkpoint's was "
            f"{verified['largest']:.2g}.",
            "",
            "In this folder:",
            "",
            "```python",
            *example(model),
            "```",
            "",
            *shortlist_lines(model),
            f"A sentence may have {model.max_source_length:,} pieces. `owf translate --backend ctranslate2 .` "
            "translates files, whatever their lines hold.",
            "",
            "| file | |",
            "|---|---|",
            *(f"| {name} | {what} |" for name, what in files.items()),
            "",
        ]
    )


def has_shortlist(model: ExportedModel) -> bool:
    """Whether it lists which symbols a translation may have."""
    return (model.folder / VOCABULARY_MAP).is_file()


def shortlist_lines(model: ExportedModel) -> list[str]:
    """What to know of the shortlist."""
    found = model.record.get("shortlist")
    if found is None:
        return []
    return [
        f"`use_vmap=True` lets a translation have the symbols only that the shortlist ({VOCABULARY_MAP}) has for its "
        f"source: {found['symbols']:,.0f} of {found['vocabulary']:,} in the mean, which makes decoding faster. The "
        "sentences of a batch share their symbols: with `max_batch_size=1` a translation depends on its own sentence "
        "alone. Without the option, translations have all symbols.",
        "",
    ]


def _segmentation_files(model: ExportedModel) -> dict[str, str]:
    record = json.loads((model.folder / SEGMENTATION_RECORD).read_text(encoding="utf-8"))
    files = {record[entry]: what for entry, what in _FILES.items() if entry in record}
    return {SEGMENTATION_RECORD: "how text becomes pieces", **files}


def example(model: ExportedModel) -> list[str]:
    """Five lines of Python that translate a sentence, without this package."""
    record = json.loads((model.folder / SEGMENTATION_RECORD).read_text(encoding="utf-8"))
    translator = 'translator = ctranslate2.Translator(".")'
    options = "beam_size=5, max_decoding_length=250" + (", use_vmap=True" if has_shortlist(model) else "")
    sentence, lower = (_SENTENCE.lower(), ".lower()") if record.get("lowercase") else (_SENTENCE, "")
    if record["type"] == "sentencepiece":
        return [
            "import ctranslate2, sentencepiece",
            f'pieces = sentencepiece.SentencePieceProcessor(model_file="{record["model"]}")',
            translator,
            f'(found,) = translator.translate_batch([pieces.encode("{sentence}", out_type=str)], {options})',
            "print(pieces.decode(found.hypotheses[0]))",
        ]
    if record["type"] == "separate-sentencepiece":
        return [
            "import ctranslate2, sentencepiece",
            f'source = sentencepiece.SentencePieceProcessor(model_file="{record["source_model"]}")',
            translator,
            f'(found,) = translator.translate_batch([source.encode("{sentence}", out_type=str)], {options})',
            """print("".join(found.hypotheses[0]).replace("\u2581", " ").strip())""",
        ]
    if record["type"] == "moses-bpe":
        source, target = (short_code(record[side]) for side in ("source", "target"))
        tokens = f"[token{lower} for token in tokens]" if lower else "tokens"
        return [
            "import ctranslate2, sacremoses, subword_nmt.apply_bpe",
            f'tokens = sacremoses.MosesTokenizer("{source}").tokenize("{_SENTENCE}", aggressive_dash_splits=True)',
            f'pieces = subword_nmt.apply_bpe.BPE(open("{record["codes"]}")).segment_tokens({tokens})',
            f'(found,) = ctranslate2.Translator(".").translate_batch([pieces], {options})',
            f'print(sacremoses.MosesDetokenizer("{target}").detokenize(" ".join(found.hypotheses[0])'
            '.replace("@@ ", "").split()))',
        ]
    return [
        "import ctranslate2",
        translator,
        'pieces = "put a sentence here , in the pieces that the model was trained on".split()',
        f"(found,) = translator.translate_batch([pieces], {options})",
        'print(" ".join(found.hypotheses[0]))',
    ]


_FILES = {
    "model": "the SentencePiece model",
    "source_model": "the SentencePiece model of the source language",
    "target_model": "the SentencePiece model of the target language",
    "codes": "the BPE codes",
}

_SENTENCE = "Put a sentence here."
