"""Calls as users write them, for mypy, which must report only the lines with an expected error."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np

from kcrf import crf
from kcrf.backend.hints import Model, Tensor
from kcrf.corpora import Example, Sentence, read_classified, read_conll, read_segmented, split
from kcrf.export import export_model
from kcrf.layers import ConditionalRandomField, suggest_lr_multiplier
from kcrf.metrics import entity_scores, segmentation_scores
from kcrf.metrics.bootstrap import bootstrap_difference, span_counts
from kcrf.models import build_transformer_model
from kcrf.optimizers import AdamWeightDecay, WarmupLinearDecay, layerwise_decay, variable_table
from kcrf.pretraining import PretrainingSettings, pretrain
from kcrf.runs import RunFolder, RunWriter, read_run
from kcrf.serving import Limits, build_app, load_models
from kcrf.snippets import sequence_padding
from kcrf.taggers import Classification, EntityRecognizer, Span, TextClassifier, WordSegmenter
from kcrf.tags import TagScheme, bio, bmes, check_tags, tags_to_words, words_to_tags
from kcrf.tokenizers import Tokenizer, load_vocab
from kcrf.training import Settings, train_segmenter


def tags_and_scores() -> None:
    scheme = bio(["PER", "LOC"])
    assert_type(scheme, TagScheme)
    assert_type(scheme.encode([(0, 2, "PER")], length=3), list[int])
    scheme.encode([(0, 2, "PER")], length="3")  # type: ignore[arg-type]
    assert_type(words_to_tags(["今天", "好"]), list[int])
    assert_type(tags_to_words("今天好", np.array([1, 3, 0])), list[str])
    assert_type(check_tags([[0, 1, 3]], bmes()), list[list[int]])
    assert_type(segmentation_scores([["今天"]], [["今天"]], training_words={"今天"}), dict[str, Any])
    entity_scores([[(0, 2, "PER")]])  # type: ignore[call-arg]
    counts = span_counts([[(0, 1, "")]], [[(0, 1, "")]])
    assert_type(bootstrap_difference(counts, counts), tuple[float, float, float])


def files(path: Path) -> None:
    assert_type(read_segmented(path), list[list[str]])
    assert_type(read_conll(str(path), repair=True), list[Sentence])
    assert_type(read_classified(path, ["review", "label"]), list[Example])
    read_conll(path, colum=3)  # type: ignore[call-arg]
    train, valid = split(read_segmented(path), fraction=0.2)
    train_segmenter(Settings(epochs=2), train, valid, out=path)
    train_segmenter({"epochs": 2}, train, valid)  # type: ignore[arg-type]
    assert_type(pretrain(PretrainingSettings(), [path, "more.txt"], path), list[dict[str, Any]])
    assert_type(sequence_padding([[1, 2], [3]], length=4), np.ndarray)
    sequence_padding(inputs=3)  # type: ignore[arg-type]


def taggers(run: Path) -> None:
    segmenter = WordSegmenter(run, words={"石墨烯": 20, "云计算": None})
    words: list[str] = segmenter.segment("今天天气真好", spans=[(0, 2)])
    assert_type(segmenter(["今天天气真好"]), list[list[Span]])
    print(words)
    assert_type(segmenter.k_best("今天", k=2), list[tuple[list[Span], float]])
    segmenter.segment(3)  # type: ignore[arg-type]
    segmenter.segment("今天", confidence=True)  # type: ignore[call-arg]
    entities = EntityRecognizer("runs/people", min_probability=0.3).recognize("李雷")
    assert_type(entities, list[Span])
    assert_type(entities[0].probability, float | None)
    entities[0].conf  # type: ignore[attr-defined]  # noqa: B018
    assert_type(TextClassifier(str(run)).classify("好", "吗"), Classification)


def tokens(path: Path) -> None:
    tokenizer = Tokenizer(path, do_lower_case=True, token_end=None)
    assert_type(tokenizer.encode("好", maxlen=8), tuple[list[int], list[int]])
    assert_type(tokenizer.tokenize("好"), list[str])
    assert_type(tokenizer.rematch("好", ["好"]), list[list[int]])
    tokenizer.encode("好", max_len=8)  # type: ignore[call-arg]
    Tokenizer(load_vocab(path, simplified=True, startswith=["[PAD]"])[0])


def training(model: Any) -> None:
    layer = ConditionalRandomField(lr_multiplier=suggest_lr_multiplier(2e-5, 1000), constraints=bmes(), name="CRF")
    tags, scores = layer.top_k(np.zeros((1, 2, 4)), 3)
    print(tags, scores)
    assert_type(layer(np.zeros((1, 2, 4))), Tensor)
    assert_type(layer.decode(np.zeros((1, 2, 4))), Tensor)
    assert_type(layer.sparse_loss(np.zeros((1, 2)), np.zeros((1, 2, 4))), Tensor)
    layer.decod(np.zeros((1, 2, 4)))  # type: ignore[attr-defined]
    ConditionalRandomField(lr_multipler=3)  # type: ignore[call-arg]
    schedule = WarmupLinearDecay(2e-5, warmup=100, total=1000)
    assert_type(suggest_lr_multiplier(2e-5, 1000), float)
    optimizer = AdamWeightDecay(schedule, lr_multipliers={**layerwise_decay(model, 0.95), "CRF": 100})
    rows: list[Any] = variable_table(model, optimizer)
    print(rows)
    assert_type(build_transformer_model(Path("bert_config.json"), "model.safetensors", skip_top_layers=2), Model)
    build_transformer_model("bert_config.json", skip_top_layers="2")  # type: ignore[arg-type]


def functions(scores: np.ndarray, mask: np.ndarray) -> None:
    crf.viterbi(scores, mask, np.zeros((4, 4)))
    crf.top_k_paths(scores, 3, mask, np.zeros((4, 4)), end=np.zeros(4))
    chain = crf.Chain(scores, mask, np.zeros((4, 4))).divided(2.0).constrained(bmes())
    assert_type(chain, crf.Chain)
    chain.divided("2")  # type: ignore[arg-type]
    assert_type(crf.top_k_paths(chain, 3), tuple[Tensor, Tensor])
    assert_type(crf.log_likelihood(scores, np.zeros((1, 2)), mask, np.zeros((4, 4))), Tensor)


def production(run: Path) -> None:
    export_model(run, "words.onnx", int8=True)
    export_model(run, "words.onnx", int_8=True)  # type: ignore[call-arg]
    models = load_models({"words": run, "people": "people.onnx"})
    build_app(models, Limits(texts=8), hosts=["localhost"])
    build_app(run)  # type: ignore[arg-type]
    assert_type(RunFolder(run).read_settings(), Settings)
    assert_type(read_run(run).advice, str | None)
    with RunWriter.create(run, overwrite=True) as folder:
        folder.save_scores({"valid": {"f1": 0.9}})
        folder.save_scores(0.9)  # type: ignore[arg-type]
