"""kcrf.readers.pieces: encoders with Unigram and byte-level BPE tokenizers in training, tagging and export."""

import json
import shutil

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tokenizers_of_tests import bpe, folder_of, unigram

from kcrf.backend import backend_name, keras
from kcrf.corpora import Sentence
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.readers import SubwordReader, encoder_reader
from kcrf.readers.padding import training_batch
from kcrf.runs import Settings
from kcrf.taggers import EntityRecognizer, TextClassifier, WordSegmenter
from kcrf.tokenizers import SubwordTokenizer
from kcrf.training import train_classifier, train_segmenter, train_tagger

KINDS = {"unigram": unigram, "bpe": bpe}
QUICK = {"epochs": 1, "batch_size": 8, "seed": 1}


@pytest.fixture(params=KINDS, scope="module")
def encoder(request, tmp_path_factory):
    """The folder of a small XLM-R with random weights."""
    folder = folder_of(KINDS[request.param](), tmp_path_factory.mktemp("encoder"))
    size = SubwordTokenizer.of_folder(folder).vocab_size
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    model = build_transformer_model(
        model="xlm-roberta", vocab_size=size, max_position=66, segment_vocab_size=1, pad_token_id=1, **sizes
    )
    save_pretrained(model, folder)
    return folder


def test_a_window_holds_the_first_piece_of_each_unit_and_is_padded_with_the_padding_token(encoder):
    reader = encoder_reader(encoder)
    assert isinstance(reader, SubwordReader) and reader.longest == 64
    texts = ["New York 今天天气", "man"]
    readings = reader.read(texts)
    tokenizer = reader.tokenizer
    for text, reading in zip(texts, readings, strict=True):
        (window,) = reading.windows
        pieces = [tokenizer.id_to_token(window.inputs["Input-Token"][i]) for i in window.positions]
        assert len(pieces) == len(reading.units) and len(set(window.positions)) == len(pieces)
        assert [text[start:end] for start, end in reading.units.tolist()][0] in ("New", "man")
    inputs, _ = training_batch([(r.windows[0].inputs, [0] * r.windows[0].length) for r in readings])
    row = inputs["Input-Token"][1]
    assert row[0] == 0 and row[len(readings[1].windows[0].inputs["Input-Token"]) :].tolist() == [1] * (
        len(row) - len(readings[1].windows[0].inputs["Input-Token"])
    )
    assert list(inputs) == ["Input-Token", "tagged"]  # there is one kind of segment


def test_pairs_and_whole_texts_have_the_ids_of_hugging_face(encoder):
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(encoder / "tokenizer.json"))
    reader = encoder_reader(encoder)
    first, second = "New York is big", "the man saw"
    (single, pair) = reader.read_texts([(first, None), (first, second)], 64)
    assert single.windows[0].inputs["Input-Token"] == theirs(first)["input_ids"]
    assert pair.windows[0].inputs["Input-Token"] == theirs(first, second)["input_ids"]
    (short,) = reader.read_texts([(first, second)], 9)
    assert len(short.windows[0].inputs["Input-Token"]) == 9


SENTENCES = [
    Sentence("New York is big", [(0, 8, "LOC")]),
    Sentence("the man saw a friend in New York", [(24, 32, "LOC")]),
    Sentence("今天 New York 真好", [(3, 11, "LOC")]),
    Sentence("he is here", []),
] * 4


@pytest.mark.filterwarnings("ignore")
def test_a_run_tags_in_characters_of_the_text_and_is_read_again(encoder, tmp_path):
    settings = Settings(task="ner", bert=str(encoder), learning_rate=1e-2, **{**QUICK, "epochs": 25})
    train_tagger(settings, SENTENCES, SENTENCES, out=tmp_path / "run")
    tagger = EntityRecognizer(tmp_path / "run")
    texts = ["New York is big", "今天   New York 真好"]
    found = [[(span.start, span.end, span.label) for span in row] for row in tagger.recognize_batch(texts)]
    alone = [[(span.start, span.end, span.label) for span in tagger.recognize(text)] for text in texts]
    assert found == alone  # padding changes nothing
    assert found == [[(0, 8, "LOC")], [(5, 13, "LOC")]]
    again = Settings(task="ner", bert=str(tmp_path / "run"), **QUICK)  # a run is the encoder of another run
    train_tagger(again, SENTENCES, SENTENCES, out=tmp_path / "again")


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_words_and_classes_train_with_subwords(encoder, tmp_path):
    words = [["今天", "天气", "真好"], ["New", "York", "真", "好"]] * 4
    train_segmenter(Settings(bert=str(encoder), **QUICK), words, words, out=tmp_path / "words")
    text = "今天天气真好"
    assert "".join(WordSegmenter(tmp_path / "words").segment(text)) == text
    rows = [("New York is big", "a"), ("the man saw", "b")] * 8
    train_classifier(Settings(task="classify", bert=str(encoder), **QUICK), rows, rows, out=tmp_path / "classes")
    assert TextClassifier(tmp_path / "classes").classify("the man saw").label in ("a", "b")


@pytest.mark.slow
@pytest.mark.skipif(backend_name() != "tensorflow", reason="only TensorFlow exports")
def test_an_exported_file_has_the_tokenizer(encoder, tmp_path):
    from kcrf.export import export_model

    settings = Settings(task="ner", bert=str(encoder), learning_rate=1e-2, **{**QUICK, "epochs": 4})
    train_tagger(settings, SENTENCES, SENTENCES, out=tmp_path / "run")
    export_model(tmp_path / "run", tmp_path / "model.onnx")
    texts = ["New York is big", "the man saw 今天 New York", "a"]
    ours, theirs = (
        EntityRecognizer(path).recognize_batch(texts) for path in (tmp_path / "run", tmp_path / "model.onnx")
    )
    assert [[span[:3] for span in map(_plain, row)] for row in ours] == [
        [span[:3] for span in map(_plain, row)] for row in theirs
    ]


def _plain(span):
    return (span.start, span.end, span.label)


@pytest.mark.once
def test_lower_case_and_a_folder_without_a_tokenizer_are_refused(encoder, tmp_path):
    with pytest.raises(ValueError, match="tokenizer.json decides on lower case. Received: lower_case=True"):
        encoder_reader(encoder, lower_case=True)
    (tmp_path / "config.json").write_text((encoder / "config.json").read_text())
    with pytest.raises(FileNotFoundError, match=r"needs vocab.txt or tokenizer.json, which `transformers` writes"):
        encoder_reader(tmp_path)
    config = json.loads((encoder / "config.json").read_text()) | {"vocab_size": 3}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer.json").write_text((encoder / "tokenizer.json").read_text())
    with pytest.raises(ValueError, match="whose vocab_size is 3. Received: "):
        encoder_reader(tmp_path)


@pytest.mark.skipif(backend_name() == "torch", reason="PyTorch has the layers of transformers")
def test_an_encoder_of_transformers_names_the_backend_that_has_it(encoder, tmp_path):
    pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    folder = shutil.copytree(encoder, tmp_path / "encoder")
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "deberta-v2"}
    (folder / "config.json").write_text(json.dumps(config))
    told = f"need PyTorch: set KERAS_BACKEND=torch before Keras is imported. Received: {backend_name()}"
    with pytest.raises(ValueError, match=f"encoder: kcrf has no layers for this model, .*{told}"):
        train_tagger(Settings(task="ner", bert=str(folder), **QUICK), SENTENCES, SENTENCES, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="TransformersEncoder` has them on PyTorch. Received: 'deberta-v2'"):
        build_transformer_model(folder)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_hidden_states_of_the_real_encoder_are_those_of_hugging_face(shared_data):
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    torch = pytest.importorskip("torch", reason="needs torch, which is not here")
    folder = shared_data / "checkpoints" / "e5_small_unigram"
    reader = encoder_reader(folder)
    readings = reader.read_texts([("今天天气真好", None), ("query: how big is New York?", None)], 64)
    inputs, _ = training_batch([(r.windows[0].inputs, 0) for r in readings], any_length=True)
    tokens = inputs["Input-Token"]
    mask = tokens != 1
    assert not mask.all() and (tokens[:, 0] == 0).all()
    with torch.no_grad():
        theirs = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        expected = theirs(torch.tensor(tokens).long(), torch.tensor(mask)).last_hidden_state.numpy()
    ours = build_transformer_model(folder)
    computed = keras.ops.convert_to_numpy(ours([tokens, np.zeros_like(tokens)]))
    assert_allclose(computed[mask], expected[mask], rtol=1e-4, atol=1e-5)
