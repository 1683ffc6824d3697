"""The demo: three taggers that differ in the head alone, their scores, their transition matrices."""

from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from kcrf.backend import ops
from kcrf.corpora import load_mini
from kcrf.metrics import transition_report
from kcrf.reports import score_table, transition_heat_map, transition_table
from kcrf.runs import Settings
from kcrf.taggers import WordSegmenter
from kcrf.tags import bmes
from kcrf.training import train_segmenter
from kcrf.training.progress import TrainingProgress

__all__ = ["run_demo"]


# The learning rate moves a weight by a tenth or two in the whole run, as BERT's does. The first transition matrix has
# 7 of 8 illegal cells above a legal one (with seeds 0 to 7: 7, 4, 4, 6, 7, 4, 7, 5).
SETTINGS = Settings(learning_rate=2e-4, epochs=14, batch_size=16, width=192, depth=2, min_bigrams=2)
TEXTS = ("研究生命的起源。", "他从马上跳下来。", "南京市长江大桥昨天通车了。")


@dataclass(frozen=True)
class Contender:
    """A head to train, by the name it goes by in the tables."""

    name: str
    folder: str
    settings: Settings


CONTENDERS = (
    Contender("softmax", "softmax", replace(SETTINGS, head="softmax")),
    Contender("CRF x1", "crf_x1", replace(SETTINGS, crf_lr_multiplier=1)),
    Contender("CRF x100", "crf_x100", replace(SETTINGS, crf_lr_multiplier=100)),
)


def run_demo(out, texts=(), contenders=CONTENDERS):
    """Trains the contenders on the built-in corpus and shows what became of them.

    Args:
        out: Folder for the three run folders and `transitions.png`.
        texts: What to segment beside three built-in sentences.
        contenders: `Contender`s. Defaults to softmax, CRF x1 and CRF x100.
    """
    console, scheme, corpus = Console(), bmes(), load_mini()
    sample = ["".join(words) for words in corpus.valid[:64]]
    rows, matrices = [], {}
    for contender in contenders:
        progress = TrainingProgress(contender.name)
        folder = Path(out) / contender.folder
        tagger, scores = train_segmenter(contender.settings, corpus.train, corpus.valid, corpus.test, folder, progress)
        row = [contender.name, *(scores["test"][key] for key in ("precision", "recall", "f", "oov_recall"))]
        if tagger.crf is not None:
            matrices[contender.name] = ops.convert_to_numpy(tagger.crf.trans)
            report = transition_report(matrices[contender.name], scheme, tagger.emissions(sample))
            illegal = f"{report['illegal_above_legal']} of {report['illegal']}"
            rows.append([*row, illegal, f"{report['size']:.2f} / {report['gap']:.2f}"])
        else:
            rows.append([*row, None, None])
    columns = ["head", "precision", "recall", "F1", "OOV recall", "illegal > legal", "size / gap"]
    console.print(score_table("Test part of the built-in corpus", columns, rows))
    console.print(
        "illegal > legal: illegal transitions that score above a legal one out of the same tag.\n"
        "size / gap: standard deviation of the transitions beside the median distance of a\n"
        "character's best two emission scores.",
        highlight=False,
    )
    for name, matrix in matrices.items():
        console.print(transition_table(name, matrix, scheme))
    _draw(matrices, scheme, Path(out) / "transitions.png", console)
    _segment(Path(out) / contenders[-1].folder, (*TEXTS, *texts), console)


def _draw(matrices, scheme, path, console):
    try:
        transition_heat_map(matrices, scheme, path)
        console.print(f"Heat map: {path}", highlight=False)
    except ImportError as error:
        console.print(f"No heat map. {error}", markup=False)


def _segment(run_dir, texts, console):
    segmenter = WordSegmenter(run_dir)
    console.print(f"Segmented by {run_dir}:", highlight=False)
    for words in segmenter.segment_batch(texts):
        console.print("  " + " ".join(words), highlight=False, markup=False, soft_wrap=True)
