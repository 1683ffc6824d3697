"""Expected scores beside real ones, calibration, and candidates with a guarantee, by corpus and size.

    python experiments/expected_scores.py --data PATH [--corpora people_daily ...] [--sizes 300 1000] [--seeds 0 1]
    python experiments/expected_scores.py --data PATH --encoder cnn --corpora ud_gsd people_daily --sizes 300 --seeds 0
    python experiments/expected_scores.py --data PATH --small --corpora people_daily wnut17 --sizes 100 300

A model with the defaults of `kcrf train --encoder linear` is trained on so many sentences of a training set, and
estimates its scores on 2,000 other sentences of it, or all if there are fewer (Weibo's with its validation and test
sets), and on texts of another kind: the recognizer of People's Daily on Weibo (its names of persons, organizations and
places), the segmenter of UD Chinese GSD on the PKU test set. Real scores are beside the expected ones, and beside the
calibration error the one by chance. For entities, the other sentences are split twenty times: as many as the model has
learned, at most half, choose the minimum probability for a coverage of 0.5 to 0.9, the rest counts what is found, and
how many candidates there are, also with the fixed minimum 0.1. With --small, a model without augmented copies estimates
its scores on 400 random sets of 20, 50, 100 and 300 of the other sentences: how many intervals contain the real score,
and how wide they are. Results are kept in experiments/expected_scores.json.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from data import TAGGED, parts_of
from results import kept

RESULTS = Path(__file__).with_suffix(".json")
CORPORA = ["people_daily", "weibo", "wnut17", "ud_gsd", "pfr199801"]
OTHERS = {"people_daily": "weibo", "ud_gsd": "pfr199801"}
TYPES = {"PER.NAM": "PER", "ORG.NAM": "ORG", "LOC.NAM": "LOC", "GPE.NAM": "LOC"}
TEST, FOREIGN, COVERAGES, FIXED = 2000, 600, (0.5, 0.7, 0.8, 0.9), 0.1
SMALL = (20, 50, 100, 300)  # texts of a set


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument("--encoder", default="linear")
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--sizes", nargs="+", type=int, default=[300, 1000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--small", action="store_true", help="small sets of texts instead")
    options = parser.parse_args()
    for size, seed, corpus in product(options.sizes, options.seeds, options.corpora):
        key = f"{'small sets, ' * options.small}{options.encoder}, {corpus}, {size}, seed {seed}"
        print(key, json.dumps(kept(RESULTS, key, partial(measure, options, corpus, size, seed))), flush=True)


def measure(options, corpus, size, seed):
    """Expected and real scores of a model, and the coverage of its candidates."""
    from kcrf.progress_bars import quiet
    from kcrf.taggers import load_tagger
    from kcrf.training import Settings, train_tagger

    train, *others = parts_of(options.data, corpus)
    order = [train[i] for i in np.random.default_rng(seed).permutation(len(train))]
    test = order[size:] + (others[0] + others[1] if corpus == "weibo" else [])
    test = test[:TEST]
    with tempfile.TemporaryDirectory() as folder, quiet(True):
        settings = Settings(
            task=TAGGED[corpus][0], encoder=options.encoder, seed=seed, augment=0 if options.small else None
        )
        train_tagger(settings, order[:size], None, None, out=f"{folder}/run")
        tagger = load_tagger(f"{folder}/run")
        if options.small:
            return small_sets(tagger, test)
        result = {"temperature": tagger.network.temperature, "like": compared(tagger, test)}
        if corpus in OTHERS:
            result["unlike"] = compared(tagger, foreign(options.data, OTHERS[corpus]))
        if TAGGED[corpus][0] == "ner":
            result["coverage"] = covered(tagger, test, min(size, len(test) // 2))
    return result


def foreign(data, corpus):
    """The test set of another corpus, with the types of People's Daily."""
    sentences = parts_of(data, corpus)[2][:FOREIGN]
    if corpus != "weibo":
        return sentences
    kept_spans = [[(a, b, TYPES[name]) for a, b, name in s.spans if name in TYPES] for s in sentences]
    return [replace(s, spans=spans) for s, spans in zip(sentences, kept_spans, strict=True)]


def compared(tagger, sentences):
    """Expected scores with their intervals, real scores, the expected calibration error, and the one of as many
    predictions with right probabilities, by chance: the mean of 500 draws."""
    from kcrf.metrics import calibration

    estimate, predictions = (
        tagger.estimate([s.text for s in sentences]),
        tagger.predictions(sentences),
    )
    right = [span.key in set(s.spans) for s, spans in zip(sentences, predictions) for span in spans]
    probabilities = np.array([span.probability for spans in predictions for span in spans])
    draws = np.random.default_rng(0).random((500, len(probabilities))) < probabilities
    (_, error), *by_chance = (calibration(probabilities, outcome) for outcome in (right, *draws))
    real, expected = tagger.scores(sentences), estimate.as_dict()
    return {
        **{name: [*expected[name], round(real[name], 4)] for name in ("precision", "recall", "f")},
        "ece": round(error, 4),
        "ece by chance": round(float(np.mean([error for _, error in by_chance])), 4),
        "notes": expected["notes"],
    }


def small_sets(tagger, sentences):
    """By the size of a set, the fraction of intervals of precision, recall and F1 that contain the real score, and the
    mean width; and the recall of all sentences: real, expected, and without the ratio of the held-out sentences."""
    from kcrf.runs.formats import read_predictions
    from kcrf.runs.names import PREDICTIONS
    from kcrf.taggers.decoder import parts_of_sentences
    from kcrf.taggers.estimates import estimate_of, held_out_of

    held_out = held_out_of(read_predictions(tagger.run / PREDICTIONS), lambda texts: np.zeros(2))
    pairs = zip(sentences, *tagger.decoder.spans_and_begins(parts_of_sentences(sentences)))
    rows = [([(p.label, p.probability, p.key in s.spans) for p in found], n, len(s.spans)) for s, found, n in pairs]

    def scores_of(numbers, held_out):
        spans, real = [span for i in numbers for span in rows[i][0]], sum(rows[i][2] for i in numbers)
        parts = [(len(numbers), [span[:2] for span in spans], sum(rows[i][1] for i in numbers), np.zeros(2))]
        expected, right = estimate_of(parts, tagger.labels, held_out).all, sum(is_right for *_, is_right in spans)
        totals = len(spans), real, (len(spans) + real) / 2
        return [right / max(1, n) for n in totals], (expected.precision, expected.recall, expected.f)

    random, whole = np.random.default_rng(0), range(len(rows))
    recalls = [scores_of(whole, h) for h in (held_out, held_out._replace(ratio=1.0))]
    result = {"recall": np.round([recalls[0][0][1], *(expected[1].value for _, expected in recalls)], 4).tolist()}
    for count in SMALL:
        sets = (scores_of(random.choice(len(rows), count, replace=False), held_out) for _ in range(400))
        table = [[inside(*pair) for pair in zip(*of_set)] for of_set in sets]
        result[str(count)] = np.nanmean(table, axis=0).T.round(3).tolist()
    return result


def inside(real, expected):
    """Whether an interval contains the real score, and its width; neither of a score that is not defined."""
    if expected is None:
        return np.nan, np.nan
    return expected.low - 1e-9 <= real <= expected.high + 1e-9, expected.high - expected.low


def covered(tagger, sentences, held_out):
    """The fraction of the entities that is found, and the candidates for each entity, over twenty splits."""
    from kcrf.taggers.coverage import LOWEST
    from kcrf.taggers.decoder import parts_of_sentences

    tagger.decoder.min_probability, tagger.decoder.overlaps = LOWEST, True
    tables = [{s.key: s.probability for s in spans} for spans in tagger.decoder.spans(parts_of_sentences(sentences))]
    golds = [[table.get(span, 0.0) for span in s.spans] for table, s in zip(tables, sentences)]
    return {str(coverage): over_splits(coverage, tables, golds, held_out) for coverage in COVERAGES}


def over_splits(coverage, tables, golds, held_out):
    """Means over twenty splits, or the message if a model cannot promise this coverage."""
    from kcrf.taggers.coverage import conformal_threshold

    rows = []
    for split in range(20):
        order = np.random.default_rng(split).permutation(len(golds))
        try:
            limit = conformal_threshold([golds[i] for i in order[:held_out]], coverage)
        except ValueError as error:
            return str(error)
        groups = [[p for i in order[held_out:] for p in of[i]] for of in (golds, [list(t.values()) for t in tables])]
        counts = [[sum(p >= minimum for p in group) for group in groups] for minimum in (limit, FIXED)]
        rows.append(np.ravel(counts) / len(groups[0]))
    means = np.mean(rows, axis=0).round(4).tolist()
    return dict(zip(("found", "candidates", "found_fixed", "candidates_fixed"), means, strict=True))


if __name__ == "__main__":
    main()
