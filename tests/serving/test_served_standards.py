"""kcrf.serving: A model of several segmentation standards is served: a request names the standard."""

import pytest
from servers import Server

from kcrf.corpora import load_mini
from kcrf.runs import Settings
from kcrf.taggers import WordSegmenter
from kcrf.taggers.open_model import built_in_segmenter
from kcrf.training import train_segmenter

BACKENDS = ["torch"]
CORPUS = load_mini()
TEXTS = ["".join(words) for words in CORPUS.test[:5]]


def parts(sentences):
    return {"whole": sentences, "single": [list("".join(words)) for words in sentences]}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "both"
    settings = Settings(encoder="linear", epochs=1)
    train_segmenter(settings, parts(CORPUS.train[:100]), parts(CORPUS.valid[:20]), out=folder)
    return folder


@pytest.fixture(scope="module")
def server(run, tmp_path_factory):
    server = Server([run, f"ready={built_in_segmenter()}"], tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.mark.parametrize("standard", ["whole", "single"])
@pytest.mark.parametrize("model", ["both", None])
def test_a_request_names_the_standard(server, run, standard, model):
    status, found, _ = server.post("/segment", texts=TEXTS, standard=standard, model=model)
    assert (status, found["model"]) == (200, f"both:{standard}")
    words = [[word["text"] for word in result["words"]] for result in found["results"]]
    assert words == WordSegmenter(run, standard=standard).segment_batch(TEXTS)
    assert server.post("/segment", texts=TEXTS, model=f"both:{standard}")[1] == found


def test_a_request_without_its_standard_is_refused_with_the_standards(server):
    for body in ({"model": "both"}, {}, {"model": "both", "standard": "msr"}):
        status, found, _ = server.post("/segment", texts=TEXTS, **body)
        received = body.get("standard", "none")
        assert status == 422
        assert found["error"] == f"`standard` must be whole, single for the model both. Received: {received}"
    status, found, _ = server.post("/segment", texts=TEXTS, model="ready", standard="whole")
    assert (status, found["error"]) == (422, "`standard` must be omitted for the model ready. Received: whole")
    assert server.post("/segment", texts=TEXTS, model="ready")[0] == 200


def test_the_server_lists_the_standards(server):
    models = server.ask("GET", "/models")[1]["models"]
    assert [(model["name"], model.get("standard")) for model in models] == [
        ("both:whole", "whole"),
        ("both:single", "single"),
        ("ready", None),
    ]
