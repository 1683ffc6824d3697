"""Named entities from 50 labeled sentences to a target: how good is the model, how many sentences are missing?

Two questions that need no labeled test set. `estimate` computes expected precision, recall and F1 on unlabeled texts
from the probabilities of a model. `learning_curve` trains models on growing parts of the labeled sentences, and says
how many the target needs; `suggest` names the next ones. This repeats until the expected F1 is above the target. The
corpus plays the annotator, and its test set shows how far the expected scores can be trusted. The last lines are the
bill. The sentences are made up (`load_mini("ner")`); in practice the commands are `kcrf estimate`, `kcrf curve` and
`kcrf suggest`.
"""

from kcrf.corpora import load_mini
from kcrf.taggers import EntityRecognizer
from kcrf.training import Settings, learning_curve, train_tagger

TARGET, FIRST, COUNT, ROUNDS = 0.8, 50, 50, 4

corpus = load_mini("ner")
pool = list(corpus.train)
labeled, unlabeled = pool[:FIRST], pool[FIRST:]
settings = Settings(task="ner", encoder="linear", augment=0)
for number in range(ROUNDS):
    run = f"runs/until_{number}"
    train_tagger(settings, labeled, out=run, overwrite=True)
    recognizer = EntityRecognizer(run)
    texts = [sentence.text for sentence in unlabeled]
    expected, real = recognizer.estimate(texts).all.f, recognizer.scores(corpus.test)["f"]
    print(
        f"{len(labeled)} sentences: expected F1 {expected.value:.3f} ({expected.low:.3f} to {expected.high:.3f}), "
        f"on the test set {real:.3f}"
    )
    if expected.value >= TARGET or len(unlabeled) < COUNT:
        break
    needed = learning_curve(settings, labeled).size(TARGET)
    print("target out of reach" if needed is None else f"the target needs about {needed.value:.0f} sentences")
    chosen = {s.index for s in recognizer.suggest(texts, COUNT, labeled=[s.text for s in labeled])}
    labeled += [unlabeled[index] for index in sorted(chosen)]
    unlabeled = [sentence for index, sentence in enumerate(unlabeled) if index not in chosen]

characters, spans = sum(len(s.text) for s in labeled), sum(len(s.spans) for s in labeled)
print(
    f"the bill: {len(labeled)} sentences, {characters} characters, {spans} entities were labeled in {number + 1} rounds"
)
print(f"F1 on the test set: {real:.4f}")
