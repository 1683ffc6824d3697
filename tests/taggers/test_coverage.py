"""Tests of kcrf.taggers.coverage: the guarantee in simulations, and candidates beside all spans."""

import json

import numpy as np
import pytest

from kcrf.commands.main import main
from kcrf.corpora import load_mini
from kcrf.runs import Settings
from kcrf.taggers import EntityRecognizer
from kcrf.taggers.coverage import conformal_threshold, threshold_of_run
from kcrf.training import train_tagger

BACKENDS = ["torch"]


def sentences(random, count):
    """The probabilities of the entities of sentences, of which hard ones have more."""
    numbers = random.integers(0, 5, count)
    return [random.beta(6 - number, 1, number).tolist() for number in numbers]


def holds(rows, coverage, limit):
    """The bound of conformal risk control, with losses that are shifted to be from 0 to `most`."""
    most = max(map(len, rows))
    losses = [sum(p < limit for p in row) - (1 - coverage) * (len(row) - most) for row in rows]
    return (sum(losses) + most) / (len(rows) + 1) <= (1 - coverage) * most + 1e-9


@pytest.mark.parametrize("coverage", [0.7, 0.9])
def test_the_threshold_is_the_highest_that_the_bound_allows(coverage):
    rows = sentences(np.random.default_rng(0), 60)
    threshold = conformal_threshold(rows, coverage)
    above = min(p for row in rows for p in row if p > threshold)
    assert holds(rows, coverage, threshold) and not holds(rows, coverage, above)


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_the_promised_fraction_is_found_on_average(coverage):
    random, missing, total = np.random.default_rng(1), 0, 0
    for _ in range(400):
        threshold, new = conformal_threshold(sentences(random, 80), coverage), sentences(random, 20)
        missing += sum(p < threshold for row in new for p in row)
        total += sum(map(len, new))
    assert 1 - coverage - 0.03 < missing / total <= 1 - coverage + 0.005  # the bound, and not far from it


def test_too_few_entities_and_models_that_miss_too_many_are_refused():
    with pytest.raises(ValueError, match="needs at least 18 entities in the held-out sentences. Received: 6"):
        conformal_threshold([[0.9, 0.9]] * 3, 0.9)
    with pytest.raises(ValueError, match="Received: 50.0%"):
        conformal_threshold([[0.9], [0.0]] * 40, 0.9)
    with pytest.raises(ValueError, match="needs at least 9 entities"):
        conformal_threshold([], 0.9)


@pytest.mark.parametrize(("sentences", "is_noted"), [(60, True), (600, False)])
def test_a_note_says_why_more_is_found_than_promised(sentences, is_noted, tmp_path, capsys):
    random, spans = np.random.default_rng(3), [[place, place + 1, "A"] for place in range(12)]
    counts = [12, *[2] * (sentences - 1)]
    rows = [{"text": "x" * 12, "gold": spans[:n], "found": [], "likely": random.random(n).tolist()} for n in counts]
    (tmp_path / "predictions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    threshold = threshold_of_run(None, tmp_path, 0.8)
    likely = [p for row in rows for p in row["likely"]]
    found, shown = sum(p >= threshold for p in likely) / len(likely), capsys.readouterr().err
    assert (found > 0.82) is is_noted is ("candidates" in shown)
    assert not is_noted or f"about {found:.1%} of the real entities will be found instead of 80.0%" in shown


def test_candidates_of_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    corpus = load_mini("ner")
    settings = Settings(task="ner", encoder="linear", augment=0)
    train_tagger(settings, corpus.train[:60], corpus.valid, corpus.test, out="run")
    sure, wide = EntityRecognizer("run", coverage=0.5), EntityRecognizer("run", coverage=0.9)
    assert sure.decoder.min_probability > wide.decoder.min_probability
    held_out = list(map(json.loads, (tmp_path / "run/predictions.jsonl").read_text(encoding="utf-8").splitlines()))
    texts, golds = [row["text"] for row in held_out], [{tuple(span) for span in row["gold"]} for row in held_out]
    for recognizer, coverage in ((sure, 0.5), (wide, 0.9)):
        found = [{span.key for span in row} for row in recognizer.predict(texts)]
        assert sum(len(a & b) for a, b in zip(found, golds)) >= coverage * sum(map(len, golds))
    limit = wide.decoder.min_probability
    alone = EntityRecognizer("run", min_probability=limit).predict(texts)
    for row, of_best in zip(wide.predict(texts), alone):
        assert {span.key for span in of_best} <= {span.key for span in row}
        assert all(span.probability >= limit for span in row)
    (tmp_path / "texts.txt").write_text(texts[0] + "\n", encoding="utf-8")
    assert main(["tag", "--model", "run", "--coverage", "0.9", "texts.txt"]) == 0
    shown = json.loads(capsys.readouterr().out)["entities"]
    assert [(e["start"], e["end"], e["label"]) for e in shown] == [span.key for span in wide.predict(texts[:1])[0]]
    for arguments in (["--coverage", "1"], ["--coverage", "0.9", "--min-probability", "0.5"]):
        assert main(["tag", "--model", "run", *arguments, "texts.txt"]) == 2
    assert "--coverage" in capsys.readouterr().err
