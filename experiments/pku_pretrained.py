"""F1 on the PKU test set with and without features learned from unlabeled text.

    python experiments/pku_pretrained.py --data FOLDER --bert runs/chinese/longest --teacher runs/pku [--only ROW ...]

`experiments/chinese_bert.py` shows how the BERT was pretrained. "bert" is this BERT, fine-tuned with a CRF on top.
"characters" adds its character embeddings to the default network, below or above the convolutions. "words" adds word
vectors of word2vec, as in experiments/vectors.py, trained on PFR 1998-02 as segmented by the teacher, a run with the
defaults. "texts" also distills the teacher's predictions on these texts. Every run is `kcrf train --task cws` on PFR
1998-01 with its defaults, except for the settings in ROWS. The datasets are those of experiments/small_segmenter.py.
Results are stored in experiments/pku_pretrained.json; a stopped experiment resumes after the last complete epoch.
"""

import argparse
import json
from functools import partial
from pathlib import Path

from results import kept, run_folder, trained
from small_segmenter import read_parts
from vectors import make_vectors

RESULTS = Path(__file__).with_suffix(".json")
ROWS = {
    "without": {},
    "characters": {"vectors": "characters"},
    "characters, top": {"vectors": "characters", "vectors_at": "top"},
    "words": {"vectors": "words"},
    "words, top": {"vectors": "words", "vectors_at": "top"},
    "bert": {"bert": True, "learning_rate": 1e-3, "epochs": 8, "precision": "bfloat16"},
    "texts": {"teacher": True},
    "texts, characters": {"teacher": True, "vectors": "characters"},
    "texts, words": {"teacher": True, "vectors": "words"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--bert", required=True, type=Path, help="a folder that `kcrf pretrain` wrote")
    parser.add_argument("--teacher", help="the run folder of the teacher")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, default=Path("runs/pku_pretrained"))
    options = parser.parse_args()
    for seed in options.seeds:
        for row in options.only:
            key = f"{row}, seed {seed}"
            run = partial(measure, options, {"seed": seed, **ROWS[row]}, run_folder(options.out, key))
            print(key, json.dumps(kept(RESULTS, key, run)), flush=True)


def measure(options, settings, out):
    """The scores of one training run, and its wall time and processor time in seconds."""
    from kcrf.runs import Settings

    parts, texts = read_parts(options.data)
    if settings.get("vectors") == "characters":
        settings |= {"vectors": str(character_vectors(options.bert, options.out / "characters.txt"))}
    elif settings.get("vectors") == "words":
        settings |= {"vectors": str(word_vectors(options.teacher, texts, options.out))}
    settings |= {name: str(vars(options)[name]) for name in ("bert", "teacher") if name in settings}
    more = {"unlabeled": texts} if "teacher" in settings else {}
    _, scores, taken = trained(Settings(linear_weight=0.0, **settings), parts, out, **more)
    figures = {name: round(scores["test"][name], 5) for name in ("f", "precision", "recall", "oov_recall")}
    return {**figures, "valid_f": round(scores["valid"]["f"], 5), **taken}


def word_vectors(segmenter, texts, folder):
    """The path of the vectors of words in texts as a segmenter cuts them."""
    from kcrf.taggers import WordSegmenter

    path = folder / "words.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = WordSegmenter(segmenter).segment_batch(texts)
        path.write_text("".join(f"{' '.join(words)}\n" for words in lines), encoding="utf-8")
    return make_vectors(path, folder / "words.bin")


def character_vectors(bert, path):
    """Writes the embeddings of a BERT's single characters as text, as word2vec does; returns the path."""
    from kcrf.checkpoints import open_checkpoint
    from kcrf.tokenizers import load_vocab

    table = open_checkpoint(bert)["bert.embeddings.word_embeddings.weight"]
    table = (table - table.mean(axis=0)) / table.std()  # of the size of other inputs
    characters = {token: table[row] for token, row in load_vocab(bert / "vocab.txt").items() if len(token) == 1}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{len(characters)} {table.shape[1]}\n")
        file.writelines(f"{name} {' '.join(f'{x:.4f}' for x in row)}\n" for name, row in characters.items())
    return path


if __name__ == "__main__":
    main()
