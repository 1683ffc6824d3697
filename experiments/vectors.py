"""F1 of entities with and without word vectors, `kcrf train --vectors`.

    python experiments/vectors.py --pfr PATH/pfr199801/train.utf8 --people PATH/people_daily --weibo PATH/weibo

The vectors are trained with word2vec (gensim; skip-gram, 100 dimensions, 5 epochs, words that occur at least 5 times)
on the 1.1 million words of PFR 1998-01. Weibo differs much from this text, the People's Daily little. Every run is
`kcrf train --task ner` with its defaults, on all of Weibo and on 1,000 sentences of the People's Daily. The epoch is
chosen on the validation set. Results are stored in experiments/vectors.json.
"""

import argparse
import json
from functools import partial
from pathlib import Path

from results import kept, run_folder, trained

HERE = Path(__file__).parent
ROWS = {
    "without": {},
    "embeddings": {"vectors_at": "embeddings"},
    "top": {"vectors_at": "top"},
    "embeddings, trained": {"vectors_at": "embeddings", "train_vectors": True},
}
LIMITS = {"weibo": None, "people": 1000}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pfr", type=Path, required=True, help="words, one sentence per line")
    parser.add_argument("--weibo", type=Path, help="the folder of the corpus")
    parser.add_argument("--people", type=Path, help="the folder of the corpus")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--out", type=Path, default=Path("runs/vectors"))
    options = parser.parse_args()
    file = make_vectors(options.pfr, options.out / "pfr.bin")
    for seed in options.seeds:
        for corpus in filter(vars(options).get, LIMITS):
            for name, settings in ROWS.items():
                key = f"{corpus}, {name}, seed {seed}"
                if settings:
                    settings = {**settings, "vectors": str(file)}
                settings = {**settings, "seed": seed, "limit": LIMITS[corpus]}
                run = partial(measure, vars(options)[corpus], corpus, settings, run_folder(options.out, key))
                print(key, json.dumps(kept(HERE / "vectors.json", key, run)), flush=True)


def make_vectors(text, path):
    """The path of the vectors, which are made if they are not there."""
    if not path.exists():
        from gensim.models import Word2Vec

        from kcrf.corpora import read_segmented

        path.parent.mkdir(parents=True, exist_ok=True)
        model = Word2Vec(read_segmented(text), vector_size=100, sg=1, min_count=5, epochs=5, seed=0, workers=1)
        model.wv.save_word2vec_format(path, binary=True)
    return path


def measure(folder, corpus, settings, out):
    """The scores of one training run."""
    from kcrf.corpora import read_conll
    from kcrf.runs import Settings

    paths = sorted(folder.glob("*train*")) + sorted(folder.glob("*dev*")) + sorted(folder.glob("*test*"))
    parts = [read_conll(path, repair=corpus == "weibo") for path in paths]
    _, scores, taken = trained(Settings(task="ner", **settings), parts, out)
    rounded = {name: round(scores["test"][name], 5) for name in ("f", "precision", "recall")}
    return {**rounded, "valid_f": round(scores["valid"]["f"], 5), **taken}


if __name__ == "__main__":
    main()
