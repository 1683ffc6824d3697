"""What is measured in a training run of a claim.

The settings of a run are those of `kcrf.runs.Settings`, and these:

- `corpus`, `sentences`: a corpus of `experiments.data`, and how many of its sentences or texts are trained on (all).
- `lengths`: the fewest and the most characters of a sentence, of a tagged corpus; in all of its parts (all).
- `masked`: True scores the tagger with illegal transitions forbidden in decoding, too.
- `bert`: "chinese" (4 layers) or "deep" (12 layers), a name in `Context.berts`.
- `start`: "zeros" begins with transitions of 0.
- `before`: settings of a run on another corpus, whose BERT is fine-tuned.
- `teacher`: trains a teacher first: True with the same settings, or a dict of those that differ.
- `word_vectors`: True adds word vectors of PFR 1998-01.
"""

import random
from dataclasses import replace

from experiments.data import CLASSIFIED, sample_of, task_of_corpus
from experiments.results import trained

FOR_RUNNER = (
    "corpus",
    "sentences",
    "lengths",
    "masked",
    "start",
    "before",
    "teacher",
    "word_vectors",
    "bert",
)
DIVERGED = {
    "score": 0.0,
    "constrained_score": 0.0,
    "valid": [0.0],
    "losses": [1e9],
    "failed": 1,
    "illegal_above_legal": 1.0,
    "diverged": 1,
    "advice": "training diverged",
}


def train_and_score(run, context):
    """Trains a model and scores it on the test set.

    Args:
        run: The `Run`.
        context: The `Context`.

    Returns:
        A dict with `score`, the F1 or the metric of the corpus on the test set; `valid`, the same by epoch on the
        validation set; `losses` by epoch; `failed`, 1 if the score is that of a constant answer or lower; for a CRF
        `illegal_above_legal`, a fraction of the illegal transitions, `size_over_gap`, `multiplier` and the `advice` of
        the monitor; with `masked`, `constrained_score`, with illegal transitions forbidden in decoding only. A run
        that diverges has `diverged` 1 and the score 0.
    """
    from kcrf.runs import DivergedError

    settings = run.settings
    parts = _parts(context, settings, run.seed)
    user = settings_of(run, **_files_of(run, parts, context))
    more = {"progress": _zero_start()} if settings.get("start") == "zeros" else {}
    try:
        tagger, scores, _ = trained(user, parts, context.folder / "run", **more)
    except DivergedError:
        return dict(DIVERGED)
    return _measures(settings, tagger, scores, parts, context.folder / "run")


def _parts(context, settings, seed):
    """Training, validation and test set of a run."""
    lengths = settings.get("lengths")
    parts = sample_of(context.data, settings["corpus"], settings.get("sentences"), seed, lengths and tuple(lengths))
    return [part[: context.most] for part in parts]


def settings_of(run, **files):
    """The `kcrf.runs.Settings` of a run, with the files that the runner made for it."""
    from kcrf.runs import Settings

    corpus = run.settings["corpus"]
    values = {name: value for name, value in run.settings.items() if name not in FOR_RUNNER}
    metric = {"metric": CLASSIFIED[corpus][-1]} if corpus in CLASSIFIED else {}
    values = {"augment": 0, **values}  # no copies unless a claim asks for some, whatever the size of the data
    return Settings(task=task_of_corpus(corpus), seed=run.seed, **metric, **values, **files)


def _files_of(run, parts, context):
    """The BERT, the teacher and the vectors of a run by the names of their settings, as paths."""
    files, settings = {}, run.settings
    if "bert" in settings:
        files["bert"] = str(context.berts[settings["bert"]])
    if "before" in settings:
        files["bert"] = str(_intermediate(run, context))
    if settings.get("word_vectors"):
        files["vectors"] = str(_word_vectors(context))
    if teacher := settings.get("teacher"):
        above = run if teacher is True else replace(run, settings={**settings, **teacher})
        files["teacher"] = str(_run_before(settings_of(above, **files), parts, context.folder / "teacher"))
    return files


def _intermediate(run, context):
    """The folder of a run on another corpus."""
    before = replace(run, settings=run.settings["before"])
    parts = _parts(context, before.settings, run.seed)
    settings = settings_of(before, bert=str(context.berts[before.settings["bert"]]))
    return _run_before(settings, parts, context.folder / "before")


def _run_before(settings, parts, out):
    """The folder of a run that another one needs. An interrupted run resumes, a complete one is used as it is."""
    from kcrf.runs.replacement import is_complete

    if not is_complete(out):
        trained(settings, parts, out)
    return out


def _word_vectors(context):
    """The path of word vectors of PFR 1998-01, made once for all runs of a claim."""
    from gensim.models import Word2Vec

    from kcrf.corpora import read_segmented

    path = context.folder.parent / "words.bin"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = read_segmented(context.data / "cws/pfr199801/train.utf8")
        model = Word2Vec(text, vector_size=100, sg=1, min_count=5, epochs=5, seed=0, workers=1)
        aside = context.folder.parent / f"{random.getrandbits(32)}.bin"  # another process may make them too
        model.wv.save_word2vec_format(aside, binary=True)
        aside.replace(path)
    return path


def _zero_start():
    """A callback that begins training with transitions of 0."""
    import numpy as np

    from kcrf.backend import keras, ops
    from kcrf.networks.tagging import crf_of

    class ZeroStart(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            layer = crf_of(self.model)
            if int(ops.convert_to_numpy(self.model.optimizer.iterations)) == 0:  # else the run is resumed
                layer.set_weights([np.zeros_like(weight) for weight in layer.get_weights()])

        def report(self, row):
            """Shows nothing."""

    return ZeroStart()


def _measures(settings, tagger, scores, parts, folder):
    from kcrf.runs import read_run

    corpus = settings["corpus"]
    record, metric = read_run(folder), CLASSIFIED[corpus][-1] if corpus in CLASSIFIED else "f"
    score = scores["test"][metric] or 0.0
    measures = {
        "score": round(score, 5),
        "valid": [round(row[f"valid_{metric}"], 5) for row in record.log],
        "losses": [round(row["loss"], 5) for row in record.log],
        "failed": int(score <= _constant_score(metric, parts[-1])),
    }
    if corpus in CLASSIFIED:
        return measures
    last = record.log[-1]
    if "transition_size" in last:
        measures |= {
            "emission_gap": round(last["emission_gap"], 4),
            "size_over_gap": round(last["transition_size"] / last["emission_gap"], 4),
            "illegal_above_legal": round(last["illegal_above_legal"] / _illegal(tagger.scheme), 4),
            "multiplier": last["lr_multiplier"],
            "advice": tagger.advice,
        }
    if not settings.get("masked"):
        return measures
    constrained = _constrained(tagger, folder).scores(parts[-1])["f"] or 0.0
    return {**measures, "constrained_score": round(constrained, 5)}


def _illegal(scheme):
    """The number of transitions that a scheme forbids."""
    return int((~scheme.allowed_transitions).sum())


def _constant_score(metric, test):
    """The best score of a constant answer."""
    if metric in ("f", "accuracy") and not hasattr(test[0], "text"):
        labels = sorted(example[-1] for example in test)
        share = labels.count(labels[-1]) / len(labels)
        return max(share, 1 - share) if metric == "accuracy" else 2 * share / (1 + share)
    return 0.0


def _constrained(tagger, folder):
    """The tagger with illegal transitions forbidden in decoding; without a CRF, its transitions are 0."""
    import numpy as np

    from kcrf.networks.keras_networks import KerasTaggingNetwork
    from kcrf.networks.tagging import build_network, crf_of
    from kcrf.runs import RunFolder
    from kcrf.runs.setup import load_setup
    from kcrf.taggers.load import TAGGERS

    setup = load_setup(RunFolder(folder))
    config = replace(setup.config.model, head="crf", constraints=True, crf_lr_multiplier=1.0)
    model = build_network(config, tagger.scheme, setup.reader)
    for layer, source in zip(_below_crf(model), _below_crf(tagger.model), strict=True):
        layer.set_weights(source.get_weights())
    trained_crf = crf_of(tagger.model)
    scores = np.zeros((len(tagger.scheme),) * 2) if trained_crf is None else _transitions(trained_crf)
    crf_of(model).set_weights([scores])
    network = KerasTaggingNetwork(model, tagger.scheme)
    return TAGGERS[setup.config.task.name].of(network, setup.reader, setup.config)


def _below_crf(model):
    """The layers with weights but the CRF."""
    from kcrf.networks.tagging import crf_of

    return [layer for layer in model.layers if layer.weights and layer is not crf_of(model)]


def _transitions(layer):
    from kcrf.backend import ops

    return ops.convert_to_numpy(layer.trans)
