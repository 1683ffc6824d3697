"""Tests of kcrf.taggers.

Token tagging: from CoNLL-U to a run, from tokens to tags, on the command line, by a BERT and as an exported file.
"""

import json
import random
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from oracles import sentence as oracle

from kcrf import commands
from kcrf.backend import keras, ops
from kcrf.corpora import Sentence, tagged_sentence
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.readers import PieceReader
from kcrf.runs import RunFolder, SettingError, Settings, read_run
from kcrf.serving.models import Options, load_models
from kcrf.serving.schemas import RESPONSES
from kcrf.taggers import TokenTagger, load_tagger
from kcrf.tags import classes
from kcrf.training import resume_tagger, train_tagger

BACKENDS = ["torch"]
SMALL = {"task": "pos", "width": 32, "depth": 1, "batch_size": 8, "epochs": 4, "learning_rate": 1e-2, "dropout": 0.1}
WORDS = {
    "DET": ["the", "a", "this"],
    "NOUN": ["lamp", "dogs", "Leeds", "isn't", "1,000"],
    "VERB": ["reads", "saw", "is"],
    "PUNCT": [".", "!"],
}


def corpus(count, seed, unknown=0.0):
    """Sentences of determiner, noun, verb, noun and sign; "can" is a noun after a determiner, else a verb."""
    draw, sentences = random.Random(seed), []
    for _ in range(count):
        tags = ["DET", "NOUN", "VERB", *draw.choice([[], ["DET"]]), "NOUN", "PUNCT"]
        tokens = [draw.choice(WORDS[tag]) for tag in tags]
        tokens[1 if draw.random() < 0.5 else 2] = "can"
        hidden = [draw.random() < unknown for _ in tags]
        sentences.append((tokens, [None if hide else tag for hide, tag in zip(hidden, tags)]))
    return sentences


def sentences(count, seed, unknown=0.0):
    return [tagged_sentence(*pair) for pair in corpus(count, seed, unknown)]


TEST = corpus(20, 2)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens") / "run"
    train_tagger(Settings(**SMALL), sentences(80, 0), sentences(12, 1), sentences(20, 2), out=folder)
    return folder


def test_tags_depend_on_their_neighbors_and_scores_are_those_of_the_tags(run):
    tagger = TokenTagger(run)
    predicted = tagger.tag_batch([tokens for tokens, _ in TEST])
    right = [tag == gold for tags, (_, row) in zip(predicted, TEST) for tag, gold in zip(tags, row, strict=True)]
    scores = json.loads((run / "scores.json").read_text())["test"]
    assert scores["accuracy"] == np.mean(right) > 0.95 and scores["tokens"] == len(right)
    assert tagger.tag(["the", "can", "is", "a", "lamp", "."])[1] == "NOUN"
    assert tagger.tag(["the", "lamp", "can", "dogs", "."])[2] == "VERB"
    assert read_run(run).score == scores["accuracy"] and tagger.labels == ("DET", "NOUN", "PUNCT", "VERB")


def test_probabilities_are_those_of_all_paths(run):
    tagger, tokens = load_tagger(run), ["the", "can", "is", "a", "lamp", "."]
    transitions = np.asarray(ops.convert_to_numpy(tagger.crf.trans), "float64") / tagger.network.temperature
    emissions = tagger.decoder.emissions([" ".join(tokens)]) / tagger.network.temperature  # (time, tags)
    expected = oracle(emissions, [True] * len(tokens), transitions)
    best = expected["paths"][0][0]
    (spans,) = TokenTagger(run)([tokens])
    assert [span.label for span in spans] == [tagger.scheme.types[i] for i in best]
    np.testing.assert_allclose(
        [span.probability for span in spans], expected["marginals"][range(len(best)), best], rtol=1e-4
    )


def test_no_tag_is_forbidden_and_a_token_follows_its_like():
    scheme = classes(["A", "B"])
    assert scheme.allowed_transitions.all() and scheme.allowed_starts.all() and scheme.allowed_ends.all()
    assert scheme.decode([0, 0, 1]) == [(0, 1, "A"), (1, 2, "A"), (2, 3, "B")]
    assert scheme == scheme.from_config(scheme.get_config())


@pytest.mark.slow
def test_a_run_is_resumed_with_the_same_weights(run, tmp_path):
    class Stop(Exception):
        pass

    class Progress(keras.callbacks.Callback):
        def report(self, row):
            if row["epoch"] == 2:
                raise Stop

    parts = [sentences(80, 0), sentences(12, 1), sentences(20, 2)]
    with pytest.raises(Stop):
        train_tagger(Settings(**SMALL), *parts, out=tmp_path / "run", progress=Progress())
    _, scores = resume_tagger(tmp_path / "run", *parts)
    assert scores["test"] == json.loads((run / "scores.json").read_text())["test"]


def test_the_command_line_tags_scores_and_reports(run, tmp_path, capsys):
    gold, lines = tmp_path / "gold.conllu", []
    for tokens, tags in TEST:
        rows = (f"{i}\t{token}\t_\t{tag}\tX{tag}" + "\t_" * 5 for i, (token, tag) in enumerate(zip(tokens, tags), 1))
        lines += ["# text = none", *rows, ""]
    gold.write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "text.txt").write_text("\n".join(" ".join(tokens) for tokens, _ in TEST), encoding="utf-8")
    scores = []
    for output in ("conll", "json"):
        found = tmp_path / f"found.{output}"
        tag = ["tag", "--model", run, tmp_path / "text.txt", "--output", output, "--out", found]
        assert commands.main(list(map(str, tag))) == 0
        capsys.readouterr()
        score = ["score", "--task", "pos", "--gold", gold, "--pred", found, "--json", "--column", "UPOS"]
        assert commands.main(list(map(str, score))) == 0
        scores.append(json.loads(capsys.readouterr().out))
    assert scores[0] == scores[1]
    stored = json.loads((run / "scores.json").read_text())["test"]
    assert {name: stored[name] for name in scores[0]} == scores[0]
    assert commands.main(["score", "--pred", str(run / "predictions.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == stored["accuracy"]
    assert commands.main(["report", str(run), "--out", str(tmp_path / "report.html")]) == 0
    assert "gold \\ predicted" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "text"], "a run of --task pos needs --input tokens or conll. Received: --input text"),
        (["--k-best", "2"], "--k-best needs a run of --task ner. Received: --task pos"),
    ],
)
def test_options_of_other_tasks_are_refused(run, tmp_path, capsys, arguments, message):
    (tmp_path / "text.txt").write_text("the lamp\n")
    assert commands.main(["tag", "--model", str(run), *arguments, str(tmp_path / "text.txt")]) == 2
    assert message in capsys.readouterr().err


def test_a_string_and_sentences_without_tokens_are_refused(run, tmp_path):
    with pytest.raises(TypeError, match="must be a list of strings; split the text"):
        TokenTagger(run).tag("the lamp")
    with pytest.raises(ValueError, match="needs tokens to be tagged"):
        TokenTagger(run).tag(Sentence("the lamp", []))
    with pytest.raises(ValueError, match="sentence 1: needs tokens, each with its tag"):
        train_tagger(Settings(**SMALL), [Sentence("the lamp", [(0, 3, "DET")])], [], out=tmp_path / "run")
    with pytest.raises(SettingError, match="constraints"):
        Settings(**SMALL, constraints=True)


@pytest.mark.slow
def test_pairs_of_token_and_tag_train_as_well(run, tmp_path):
    parts = [[list(zip(*pair)) for pair in corpus(*size)] for size in ((80, 0), (12, 1), (20, 2))]
    _, scores = train_tagger(Settings(**SMALL), *parts, out=tmp_path / "run")
    assert scores["test"] == json.loads((run / "scores.json").read_text())["test"]


BERT = {
    **{"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32},
    **{"vocab_size": 40, "max_position_embeddings": 128, "hidden_act": "gelu", "type_vocab_size": 2},
}
TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a this lamp dog ##s leeds isn ' t 1 , 000 reads saw is can . !".split()


def test_the_units_of_a_bert_are_the_tokens():
    reader = PieceReader(BERT, {token: i for i, token in enumerate(TOKENS)}, True).with_tokens()
    sentence = tagged_sentence(["isn't", "1,000", "\u200b", "dogs"], ["A", "B", "C", "D"])
    (reading,) = reader.read([sentence.text], [sentence.tokens])
    assert reading.units.tolist() == [list(sentence.tokens[i]) for i in (0, 1, 3)]
    (window,) = reading.windows
    pieces = np.array(window.inputs["Input-Token"])[window.positions].tolist()
    assert [TOKENS[piece] for piece in pieces] == ["isn", "1", "dog"]
    again = PieceReader.from_config(reader.get_config(), reader.vocabulary)
    assert again.read([sentence.text], [sentence.tokens])[0].units.tolist() == reading.units.tolist()


def test_two_tokens_in_one_piece_are_one_unit():
    vocabulary = {token: i for i, token in enumerate([*TOKENS, "上海", "大"])}
    reader = PieceReader(BERT, vocabulary, True, tokenize_chinese_chars=False, by_tokens=True)
    (reading,) = reader.read(["上海 大"], [[(0, 1), (1, 2), (3, 4)]])
    assert reading.units.tolist() == [[0, 1], [3, 4]]
    assert [list(window.positions) for window in reading.windows] == [[1, 2]]


def test_a_bert_tags_the_tokens_of_the_data(tmp_path):
    (tmp_path / "bert").mkdir()
    model = build_transformer_model({**BERT, "vocab_size": len(TOKENS)}, None, return_keras_model=True)
    with redirect_stdout(StringIO()):
        save_pretrained(model, tmp_path / "bert")
    (tmp_path / "bert" / "config.json").write_text(
        json.dumps({**BERT, "vocab_size": len(TOKENS), "model_type": "bert"})
    )
    (tmp_path / "bert" / "vocab.txt").write_text("\n".join(TOKENS))
    settings = Settings(task="pos", bert=str(tmp_path / "bert"), epochs=1, batch_size=8)
    train_tagger(settings, sentences(16, 0), sentences(8, 1), out=tmp_path / "run")
    tagger = TokenTagger(tmp_path / "run")
    assert [len(tags) for tags in tagger.tag_batch([tokens for tokens, _ in TEST])] == [len(t) for t, _ in TEST]
    assert tagger.tag(["can", "\u200b"])[1] == "?"
    assert RunFolder(tmp_path / "run").read_config().config.data.units == "words"


def test_unknown_tags_are_learned_from_the_others(tmp_path):
    parts = sentences(80, 0, unknown=0.5), sentences(12, 1), sentences(20, 2, unknown=0.3)
    _, scores = train_tagger(Settings(**SMALL), *parts, out=tmp_path / "run")
    known = sum(len(sentence.spans) for sentence in parts[2])
    assert scores["test"]["tokens"] == known < sum(len(sentence.tokens) for sentence in parts[2])
    assert scores["test"]["accuracy"] > 0.85


@pytest.mark.slow
def test_a_softmax_head_ignores_unknown_tags(tmp_path):
    settings = Settings(**SMALL, head="softmax")
    _, scores = train_tagger(settings, sentences(80, 0, unknown=0.3), sentences(12, 1), out=tmp_path / "run")
    assert scores["valid"]["accuracy"] > 0.8


def test_a_linear_model_tags_tokens_and_is_exported(tmp_path):
    settings = Settings(task="pos", encoder="linear", epochs=8)
    parts = sentences(80, 0, unknown=0.2), sentences(12, 1), sentences(20, 2)
    _, scores = train_tagger(settings, *parts, out=tmp_path / "run")
    assert scores["test"]["accuracy"] > 0.95
    assert commands.main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "tags.npz")]) == 0
    run, exported = (TokenTagger(tmp_path / name) for name in ("run", "tags.npz"))
    tokens = [tokens for tokens, _ in TEST]
    assert exported(tokens) == run(tokens)


def test_the_server_answers_with_tokens_and_their_places(run):
    texts = [" ".join(tokens) for tokens, _ in TEST[:3]] + [" the  can ", ""]
    model = load_models({"tags": run})["tags"]
    assert (model.path, model.labels) == ("/pos", ["DET", "NOUN", "PUNCT", "VERB"])
    answers = model.compute(texts, Options())
    RESPONSES["/pos"].model_validate({"model": "tags", "results": answers})
    for text, answer in zip(texts, answers, strict=True):
        (expected,) = TokenTagger(run)([text.split()])
        for token, span in zip(answer["tokens"], expected, strict=True):
            assert (token["label"], token["text"]) == (span.label, span.text)
            assert token["probability"] == pytest.approx(span.probability, abs=1e-5)
        assert [text[token["start"] : token["end"]] for token in answer["tokens"]] == text.split()
