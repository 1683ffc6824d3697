"""Linear models of few sentences: augmented copies, the solver, and whether the held-out tenth is learned.

    python experiments/few_entities.py --data PATH [--corpora weibo gsd titles people_daily] [--sizes 300 1000]

F1 on 1,500 other sentences (1,050 or 350 of Weibo). gsd has the entities of few_sentences.py. titles are sentences of
PFR 1998-01 with TITLE, a word that ends like 书记 or 总理, and UNIT, up to four words before it. Both learn BIOES, the
others BIO. Results are kept in experiments/few_entities.json: F1, and the seconds of the processor.
"""

import argparse
import json
import time
from functools import partial
from itertools import product
from pathlib import Path

import few_sentences
import numpy as np
from data import parts_of
from results import kept

RESULTS = Path(__file__).with_suffix(".json")
CORPORA = ["weibo", "gsd", "titles", "people_daily"]
COPIES = {"augment": 3, "augment_by": "mentions"}
CELLS = {  # settings, and whether all sentences are learned
    "copies, adagrad": ({**COPIES, "solver": "adagrad"}, False),
    "copies": ({**COPIES, "solver": "lbfgs"}, False),
    "no copies": ({"augment": 0, "solver": "lbfgs"}, False),
    "copies, all sentences": ({**COPIES, "solver": "lbfgs"}, True),
    "no copies, all sentences": ({"augment": 0, "solver": "lbfgs"}, True),
    "no lexicon, all sentences": ({"augment": 0, "solver": "lbfgs", "lexicon": False}, True),
}
TITLES = tuple("主席 总理 部长 书记 主任 局长 省长 市长 经理 教授 记者 委员 院长 校长 总统 司令 厂长 县长".split())
TITLES += ("委员长", "秘书长", "大使", "代表")
BETWEEN = set("的 了 在 和 、 ， 。 ： ； “ ” （ ） 《 》 ！ ？ 是 与 对 向 为 由 以 到 从 说 等 年 月 日".split())
BETWEEN |= set("一 这 他 我 有 被 把 及 同 也 就 让 给 会见 ————".split())
TEST = 1500


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--sizes", nargs="+", type=int, default=[300, 1000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    options = parser.parse_args()
    for size, seed, corpus, cell in product(options.sizes, options.seeds, options.corpora, options.cells):
        key = f"{corpus}, {size}, {cell}, seed {seed}"
        print(key, json.dumps(kept(RESULTS, key, partial(measure, options.data, corpus, size, seed, *CELLS[cell]))))


def measure(data, corpus, size, seed, settings, whole):
    """F1 on other sentences of a linear model, and the seconds of its training."""
    from kcrf.progress_bars import quiet
    from kcrf.runs import Settings
    from kcrf.tasks import task_of
    from kcrf.training.data import read_data
    from kcrf.training.linear import linear_tagger, train_linear_models
    from kcrf.training.plan import plan_run
    from kcrf.training.stages import STAGES

    items = sentences(data, corpus)
    order = [items[i] for i in np.random.default_rng(seed).permutation(len(items))]
    train, test = order[:size], order[size : size + TEST]
    part, valid = task_of("ner").hold_out(train, seed)
    scheme = {"scheme": "bioes"} if corpus in ("gsd", "titles") else {}
    began, user = time.process_time(), Settings(task="ner", encoder="linear", seed=seed, **scheme, **settings)
    with quiet(True):
        plan = plan_run(user, read_data(user, train if whole else part, valid), table=STAGES)
        tagger = linear_tagger(plan, train_linear_models(plan, plan.windows))
    seconds = time.process_time() - began
    return {"f": round(tagger.scores(test)["f"], 4), "seconds": round(seconds, 1)}


def sentences(data, corpus):
    """All sentences of a corpus that are drawn from."""
    if corpus == "gsd":
        return [s for part in ("train", "test") for s in few_sentences.read(data / f"cws/ud_gsd/{part}.conll")]
    if corpus != "titles":
        return parts_of(data, corpus)[0]
    lines = (data / "cws/pfr199801/train.utf8").read_text(encoding="utf-8").splitlines()
    found = map(titled, map(str.split, lines))
    return [sentence for sentence in found if sentence.spans and len(sentence.text) < 120]


def titled(words):
    """The `Sentence` of some words with its titles and units."""
    from kcrf.corpora import Sentence

    spans, after, starts = [], 0, np.cumsum([0, *map(len, words)]).tolist()
    for i, word in enumerate(words):
        if not word.endswith(TITLES) or len(word) < 2:
            continue
        first = i
        while first > max(after, i - 4) and words[first - 1] not in BETWEEN and not words[first - 1].isascii():
            first -= 1
        spans += [(starts[first], starts[i], "UNIT")] * (first < i) + [(starts[i], starts[i + 1], "TITLE")]
        after = i + 1
    return Sentence("".join(words), spans, [(k, k + 1) for k in range(starts[-1])])


if __name__ == "__main__":
    main()
