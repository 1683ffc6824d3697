"""Tests of kcrf.taggers.

Words with their classes in one model: from tagged lines to a run, from text to words, in every format.
"""

import json
import random
from itertools import combinations, product

import numpy as np
import oracles
import pytest
from conftest import few

from kcrf.backend import keras, ops
from kcrf.commands.main import main
from kcrf.corpora import Sentence, tagged_sentence
from kcrf.export import export_model
from kcrf.runs import RunFolder, SettingError, Settings, read_run
from kcrf.serving.models import Options, load_models
from kcrf.serving.schemas import RESPONSES
from kcrf.taggers import WordSegmenter, load_tagger
from kcrf.taggers.open_model import built_in_segmenter
from kcrf.tags import bmes
from kcrf.tasks import task_of
from kcrf.training import resume_tagger, train_tagger

BACKENDS = ["torch"]
SETTINGS = {
    "linear": {"task": "cws-pos", "encoder": "linear", "epochs": 4},
    "cnn": {"task": "cws-pos", "width": 32, "depth": 1, "batch_size": 8, "epochs": 4, "learning_rate": 1e-2},
}
WORDS = {
    "n": ["天气", "图书馆", "人", "公园", "起源"],
    "v": ["喜欢", "去", "研究", "看"],
    "r": ["我", "他们", "这"],
    "w": ["。", "！"],
}
PATTERNS = ["r v n w", "n v n w", "r v n v n w", "n w"]


def corpus(count, seed):
    """Sentences as lists of (word, class); 研究 is a verb before a noun, and a noun before a sign."""
    draw, sentences = random.Random(seed), []
    for _ in range(count):
        tags = draw.choice(PATTERNS).split()
        pairs = [(draw.choice(WORDS[tag]), tag) for tag in tags]
        if draw.random() < 0.5:
            pairs[-2:-1] = [("研究", "n")]
        sentences.append(pairs)
    return sentences


PARTS = [corpus(80, 0), corpus(12, 1), corpus(20, 2)]
TEST = PARTS[2]
TEXTS = ["".join(word for word, _ in pairs) for pairs in TEST]


@pytest.fixture(scope="module", params=few("linear", "cnn", rest="slow"))
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("words") / request.param
    train_tagger(Settings(**SETTINGS[request.param]), *PARTS, out=folder)
    return folder


def test_words_and_classes_and_their_scores(run):
    segmenter = WordSegmenter(run)
    found = pairs_of(segmenter(TEXTS))
    scores = json.loads((run / "scores.json").read_text())["test"]
    gold_spans, found_spans = (
        {
            (i, len("".join(w for w, _ in pairs[:j])), *pairs[j])
            for i, pairs in enumerate(rows)
            for j in range(len(pairs))
        }
        for rows in (TEST, found)
    )
    right = len(gold_spans & found_spans)
    assert scores["joint_f"] == 2 * right / (len(gold_spans) + len(found_spans)) > 0.9
    words = [{span[:3] for span in spans} for spans in (gold_spans, found_spans)]
    assert scores["f"] == 2 * len(words[0] & words[1]) / sum(map(len, words))
    assert scores["f"] >= scores["joint_f"] and scores["types"].keys() <= set(segmenter.labels) == set(WORDS)
    assert read_run(run).score == scores["joint_f"] and read_run(run).metric == "joint_f"
    assert segmenter.segment_batch(TEXTS) == [[word for word, _ in pairs] for pairs in found]
    assert segmenter.segment_lines(TEXTS[:1]) == [" ".join(map("/".join, found[0]))]
    (spans,) = segmenter(["他们 研究天气。"])
    assert [span.key for span in spans] == [(0, 2, "r"), (3, 5, "v"), (5, 7, "n"), (7, 8, "w")]


def pairs_of(found):
    """The words of each text with their classes."""
    return [[(span.text, span.label) for span in spans] for spans in found]


def all_analyses(tagger, text):
    """Every analysis of a text with its probability: an enumeration of all paths that the scheme allows."""
    scheme, size = tagger.scheme, len(tagger.scheme)
    if tagger.crf is None:
        transitions = tagger.model.transitions
    else:
        transitions = np.asarray(ops.convert_to_numpy(tagger.crf.trans), "float64")
    temperature = tagger.network.temperature
    emissions = tagger.decoder.emissions([text]) / temperature
    rows, logs = {}, []
    for path in product(range(size), repeat=len(text)):
        if not scheme.violations(path):
            value = oracles.score(emissions, path, transitions / temperature, np.zeros(size), np.zeros(size))
            rows[path] = value
            logs.append(value)
    log_z = oracles.log_sum(logs)
    return {tuple(scheme.decode(path)): float(np.exp(value - log_z)) for path, value in rows.items()}


def test_probabilities_are_those_of_all_paths_that_keep_a_class_from_begin_to_end(run):
    segmenter, of_words, text = WordSegmenter(run), WordSegmenter(run, with_labels=False), "研究天气"
    analyses = all_analyses(segmenter, text)
    assert len(analyses) == sum(
        4 ** (cuts + 1) * n for cuts, n in enumerate((1, 3, 3, 1))
    )  # of 4 characters, 4 classes
    best = max(analyses, key=analyses.get)
    (found,) = segmenter([text])
    assert [span.key for span in found] == list(best)
    expected = [sum(p for spans, p in analyses.items() if span in spans) for span in best]
    np.testing.assert_allclose([span.probability for span in found], expected, rtol=1e-4)
    alone = [sum(p for spans, p in analyses.items() if span[:2] in [s[:2] for s in spans]) for span in best]
    (words,) = of_words([text])
    assert [span.key for span in words] == [span[:2] for span in best]
    np.testing.assert_allclose([span.probability for span in words], alone, rtol=1e-4)
    ordered = sorted(analyses.items(), key=lambda item: -item[1])[:3]
    k_best = segmenter.k_best(text, 3)
    assert [tuple(span.key for span in spans) for spans, _ in k_best] == [spans for spans, _ in ordered]
    np.testing.assert_allclose([p for _, p in k_best], [p for _, p in ordered], rtol=1e-3)
    by_words = {}
    for spans, p in sorted(analyses.items(), key=lambda item: -item[1])[:16]:
        key = tuple(span[:2] for span in spans)
        by_words[key] = by_words.get(key, 0.0) + p
    without = of_words.k_best(text, 2)
    assert len({tuple(spans) for spans, _ in without}) == len(without)
    np.testing.assert_allclose([p for _, p in without], sorted(by_words.values(), reverse=True)[:2], rtol=1e-3)


def test_a_known_word_leaves_its_class_open_and_a_known_class_does_not(run):
    tagger, segmenter, text = load_tagger(run), WordSegmenter(run), "研究天气"
    analyses = all_analyses(tagger, text)
    for known in ((1, 3), (1, 3, "r"), (0, 4, "v")):
        holds = {s: p for s, p in analyses.items() if known in [span[: len(known)] for span in s]}
        best, total = max(holds, key=holds.get), sum(holds.values())
        (found,) = segmenter.predict([text], spans=[[known]])
        assert [span.key for span in found] == list(best)
        expected = [sum(p for spans, p in holds.items() if span in spans) / total for span in best]
        np.testing.assert_allclose([span.probability for span in found], expected, rtol=1e-3)
    forced = WordSegmenter(run, words=["究天"], force_words=True)
    assert ("究天", "v") in pairs_of(forced.predict([text], spans=[[(1, 3, "v")]]))[0]
    assert forced.segment(text) == ["研", "究天", "气"]
    more = WordSegmenter(run, words={"究天": 5000})
    assert [span.text for span in more([text])[0]] == more.segment(text)


def test_a_word_of_a_user_dictionary_has_its_class(run, tmp_path, capsys):
    tagger, text = load_tagger(run), "研究天气"
    analyses = all_analyses(tagger, text)
    for label in "nrvw":
        holds = {s: p for s, p in analyses.items() if (1, 3, label) in s}
        best, total = max(holds, key=holds.get), sum(holds.values())
        for words in ({"究天": label}, {"究天": (7, label)}):
            own = WordSegmenter(run, words=words, force_words=True)
            (found,) = own([text])
            assert [span.key for span in found] == list(best)
            expected = [sum(p for spans, p in holds.items() if span in spans) / total for span in best]
            np.testing.assert_allclose([span.probability for span in found], expected, rtol=1e-3)
            assert own.segment_lines([text]) == [" ".join(f"{text[a:b]}/{of}" for a, b, of in best)]
    (tmp_path / "words.txt").write_text("究天\tr\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text(f"{text}\n", encoding="utf-8")
    command = ["segment", "--model", str(run), "--words", str(tmp_path / "words.txt"), str(tmp_path / "text.txt")]
    assert main([*command, "--force-words", "--labels"]) == 0
    assert "究天/r" in capsys.readouterr().out.split()
    with pytest.warns(UserWarning, match="1 classes that the model lacks, such as 'NOUN'.* Its classes are n, r, v, w"):
        other = WordSegmenter(run, words={"究天": "NOUN"}, force_words=True)
    assert other([text]) == WordSegmenter(run, words=["究天"], force_words=True)([text])
    assert "究天" in WordSegmenter(words={"究天": "r"}, force_words=True).segment(text)  # without classes
    tagged = WordSegmenter(words={"究天": "PROPN"}, force_words=True, with_labels=True)
    assert ("究天", "PROPN") in pairs_of(tagged([text]))[0]
    for words, message in (({"究天": ""}, "classes of `words` must be strings"), ({"究天": (0, "n")}, "counts of `wo")):
        with pytest.raises(ValueError, match=message):
            WordSegmenter(run, words=words)


def test_what_a_model_without_classes_cannot_do_is_refused(run):
    plain, segmenter = WordSegmenter(built_in_segmenter()), WordSegmenter(run)
    assert plain.labels == () and segmenter.labels == ("n", "r", "v", "w")
    with pytest.raises(ValueError, match="`with_labels` needs a model of `kcrf train --task cws-pos`"):
        WordSegmenter(built_in_segmenter(), with_labels=True)
    with pytest.raises(ValueError, match=r"`spans` needs \(start, end\). Received: \(0, 1, 'n'\)"):
        plain.segment("好", spans=[(0, 1, "n")])
    with pytest.raises(ValueError, match=r"\(start, end\) or \(start, end, label\), with a label of .* \(0, 1, 'x'\)"):
        segmenter.segment("好", spans=[(0, 1, "x")])


@pytest.mark.slow
def test_a_run_is_resumed_with_the_same_scores(run, tmp_path):
    class Stop(Exception):
        pass

    class Progress(keras.callbacks.Callback):
        def report(self, row):
            if row["epoch"] == 2:
                raise Stop

    with pytest.raises(Stop):
        train_tagger(Settings(**SETTINGS[run.name]), *PARTS, out=tmp_path / "run", progress=Progress())
    _, scores = resume_tagger(tmp_path / "run", *PARTS)
    assert scores["test"] == json.loads((run / "scores.json").read_text())["test"]


def test_the_command_line_trains_segments_scores_and_reports(run, tmp_path, capsys):
    def write(name, lines):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(tmp_path / name)

    rows = [[" ".join(map("/".join, pairs)) for pairs in part] for part in PARTS]
    train, gold = write("train.txt", rows[0]), write("test.txt", rows[2])
    text, words = write("text.txt", TEXTS), write("words.txt", [word for pairs in PARTS[0] for word, _ in pairs])
    new = str(tmp_path / "new")
    options = ["--task", "cws-pos", "--encoder", "linear", "--epochs", "2"]
    assert main(["train", *options, "--train", train, "--test", gold, "--out", new]) == 0
    with_class = json.loads((tmp_path / "new" / "scores.json").read_text())["test"]
    assert with_class["f"] >= with_class["joint_f"] > 0.8
    predicted, expected = [], json.loads((run / "scores.json").read_text())["test"]
    for number, options in enumerate(([], ["--json"], ["--json", "--probabilities"])):
        predicted.append(str(tmp_path / f"pred{number}"))
        main(["segment", "--model", str(run), "--labels", "--no-keep-latin", text, "--out", predicted[-1], *options])
    for path in (*predicted, str(run / "predictions.jsonl")):
        gold_options = [] if path.endswith("jsonl") else ["--task", "cws-pos", "--gold", gold]
        capsys.readouterr()
        main(["score", "--pred", path, "--words", words, "--json", *gold_options])
        assert json.loads(capsys.readouterr().out) == expected
    main(["segment", "--model", str(run), "--labels", "--probabilities", text])
    word, label, probability = capsys.readouterr().out.split()[0].split("/")
    assert (word, label) == pairs_of(WordSegmenter(run)(TEXTS[:1]))[0][0] and 0 < float(probability) <= 1
    main(["segment", "--model", str(run), "--labels", "--k-best", "2", text])
    assert capsys.readouterr().out.splitlines()[0].split("\t")[1] == WordSegmenter(run).segment_lines(TEXTS[:1])[0]
    main(["report", str(run), "--out", str(tmp_path / "report.html")])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "F1 with class" in page and "Words that were not found count as ?" in page


def test_a_segmenter_without_classes_is_asked_for_classes_on_the_command_line(run, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("好\n", encoding="utf-8")
    assert main(["segment", "--labels", "--model", str(built_in_segmenter()), str(tmp_path / "text.txt")]) == 2
    assert "--labels needs a run of --task cws-pos. Received: " in capsys.readouterr().err


def test_the_server_answers_with_classes(run):
    model = load_models({"joint": run})["joint"]
    assert (model.path, model.labels) == ("/segment", ["n", "r", "v", "w"])
    answer = model.compute(["他们 研究天气。"], Options(k_best=2))[0]
    assert [(w["text"], w["start"], w["label"]) for w in answer["words"]] == [
        ("他们", 0, "r"), ("研究", 3, "v"), ("天气", 5, "n"), ("。", 7, "w")
    ]  # fmt: skip
    assert len(answer["alternatives"]) == 2 and "probability" not in answer["alternatives"][0]["words"][0]
    RESPONSES["/segment"](model="joint", results=[answer])


def test_an_exported_linear_model_gives_the_same(run, tmp_path):
    if run.name != "linear":
        pytest.skip("of a linear model")
    export_model(run, tmp_path / "joint.npz")
    own, exported = WordSegmenter(run), WordSegmenter(tmp_path / "joint.npz")
    assert own(TEXTS) == exported(TEXTS)


def test_a_student_learns_from_a_teacher_of_the_same_classes(run, tmp_path):
    if run.name == "linear":
        pytest.skip("a neural model is the teacher")
    settings = Settings(**{**SETTINGS["linear"], "epochs": 2, "teacher": str(run)})
    _, scores = train_tagger(settings, *PARTS, out=tmp_path / "student", unlabeled=["他们研究天气。", "我 去公园！"])
    assert scores["test"]["joint_f"] > 0.8
    fewer = [[pair for pair in pairs if pair[1] != "r"] for pairs in PARTS[0]]
    with pytest.raises(ValueError, match="a teacher needs the tags of its student"):
        train_tagger(settings, [pairs for pairs in fewer if pairs], PARTS[1], out=tmp_path / "other")


# -- data


@pytest.mark.parametrize(
    "name, lines, column",
    [
        ("a.txt", ["今天/t 天气/n 好/a", "我/r 去/v"], -1),
        ("b.txt", ["今天_t 天气_n 好_a", "我_r 去_v"], -1),
        ("c.conll", ["今天 t", "天气 n", "好 a", "", "我 r", "去 v"], -1),
        ("d.conll", ["今天\tt\tx", "天气\tn\tx", "好\ta\tx", "", "我\tr\tx", "去\tv\tx"], 1),
        (
            "e.jsonl",
            [
                '{"words": ["今天", "天气", "好"], "tags": ["t", "n", "a"]}',
                '{"tokens": ["我", "去"], "tags": ["r", "v"]}',
            ],
            -1,
        ),
    ],
)
def test_files_of_every_format_give_the_same_sentences(tmp_path, name, lines, column):
    (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sentences = task_of("cws-pos").read_file(str(tmp_path / name), {"column": column})
    assert [(s.text, s.spans) for s in sentences] == [
        ("今天天气好", [(0, 2, "t"), (2, 4, "n"), (4, 5, "a")]),
        ("我去", [(0, 1, "r"), (1, 2, "v")]),
    ]


def test_latin_words_have_no_spaces_between_them_and_classes_need_no_letters(tmp_path):
    conllu = [f"{i}\t{word}\t_\t{upos}\t{xpos}" + "\t_" * 5 for i, (word, upos, xpos) in enumerate(
        [("用", "ADP", "IN"), ("Visual Studio", "X", "FW"), ("Code", "X", "FW"), ("。", "PUNCT", ".")], 1)]  # fmt: skip
    (tmp_path / "a.conllu").write_text("\n".join([*conllu, "", ""]), encoding="utf-8")
    (sentence,) = task_of("cws-pos").read_file(str(tmp_path / "a.conllu"), {"column": "XPOS"})
    assert sentence.text == "用VisualStudioCode。" and sentence.spans[1:] == [
        (1, 13, "FW"),
        (13, 17, "FW"),
        (17, 18, "."),
    ]
    (tmp_path / "b.txt").write_text("好/A ，/, 走/V ！/. （/( 去/V\n", encoding="utf-8")
    (sentence,) = task_of("cws-pos").read_file(str(tmp_path / "b.txt"), {"column": -1})
    assert sentence.text == "好，走！（去" and [label for *_, label in sentence.spans] == ["A", ",", "V", ".", "(", "V"]


def test_items_of_users_are_checked():
    task, of_spaces = task_of("cws-pos"), tagged_sentence(["用", "Visual", "Studio"], ["P", "X", "?"])
    sentences = task.check(
        "train", [[("今天", "t"), ("好", None)], of_spaces, Sentence("他去", [(0, 1, "r"), (1, 2, "v")])]
    )
    assert [(s.text, s.spans, s.unknown) for s in sentences] == [
        ("今天好", [(0, 2, "t")], [(2, 3)]),
        ("用VisualStudio", [(0, 1, "P"), (1, 7, "X")], [(7, 13)]),
        ("他去", [(0, 1, "r"), (1, 2, "v")], []),
    ]
    assert task.check("train", sentences) == sentences
    for item, message in (
        (["今天", "好的"], r"`valid`, sentence 1: needs pairs \(word, class\) of .* Received: \['今天', '好的'\]"),
        (Sentence("他去了", [(0, 1, "r"), (1, 2, "v")]), "sentence 1: needs words that cover the text"),
        (Sentence("他去", [(0, 2, "r")], [(0, 1), (1, 2)]), "sentence 1: needs words that cover the text"),
        ([("好", "?")], "needs at least one word whose class is known. Received: 1 sentences"),
    ):
        with pytest.raises(ValueError, match=message):
            task.check("valid", [item])


def test_training_sums_over_a_class_that_is_not_known(tmp_path):
    parts = [
        [[(w, None if i % 3 == 0 and tag == "n" else tag) for w, tag in pairs] for i, pairs in enumerate(part)]
        for part in PARTS
    ]
    _, scores = train_tagger(Settings(**SETTINGS["linear"]), *parts, out=tmp_path / "run")
    known = sum(tag is not None for pairs in parts[2] for _, tag in pairs)
    assert scores["test"]["true_words"] == known and scores["test"]["joint_f"] > 0.9
    predictions = read_run(tmp_path / "run").predictions
    assert sum(len(row["gold"]) for row in predictions) == known


def test_the_best_epoch_may_be_chosen_by_words_alone(tmp_path):
    settings = Settings(**SETTINGS["linear"], metric="f")
    train_tagger(settings, *PARTS, out=tmp_path / "run")
    assert (
        "valid_f" in RunFolder(tmp_path / "run").file("log.csv").read_text()
        and read_run(tmp_path / "run").metric == "f"
    )
    with pytest.raises(SettingError, match="`metric` is one of .'joint_f', 'f'. for cws-pos. Received: 'accuracy'"):
        Settings(task="cws-pos", metric="accuracy")


def test_the_scheme_of_many_classes_is_that_of_one_word_after_the_other():
    scheme = bmes(["n", "v"])
    legal = {path for path in product(range(8), repeat=4) if not scheme.violations(path)}
    assert {tuple(scheme.encode(scheme.decode(path), 4)) for path in legal} == legal
    words = [
        [(a, b, label) for (a, b), label in zip(zip([0, *cuts], [*cuts, 4]), labels)]
        for count in range(4)
        for cuts in combinations(range(1, 4), count)
        for labels in product("nv", repeat=count + 1)
    ]
    assert sorted(map(scheme.decode, legal)) == sorted(words)
    assert scheme.decode([1, 6, 7, 0]) == [(0, 3, "n"), (3, 4, "n")]  # of an illegal path, the class of the first tag
    assert scheme.encode([(1, 2, "v")], 3) == [-1, 4, -1] and scheme.repair([1, 6, 7]) == [1, 2, 3]
    assert scheme == scheme.from_config(scheme.get_config()) != bmes()
