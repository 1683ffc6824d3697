"""Tests of kcrf.serving.

A server process and a client: answers, batches, limits, malformed requests, clients that leave, SIGTERM.
"""

import json
import random
import signal
import socket
import string
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict

import pytest
from chromium import Page
from prometheus_client.parser import text_string_to_metric_families
from servers import ROOT, Server

from kcrf.corpora import load_mini
from kcrf.runs import Settings
from kcrf.serving.server import open_socket
from kcrf.taggers import EntityRecognizer, TextClassifier, WordSegmenter
from kcrf.taggers.open_model import built_in_segmenter
from kcrf.training import train_classifier, train_tagger

BACKENDS = ["torch"]
QUICK = {"width": 16, "depth": 1, "batch_size": 8, "learning_rate": 0.01, "epochs": 1, "character_width": 8}
LIMITS = {"--max-waiting": 80, "--max-length": 20_000, "--max-texts": 20, "--max-body": 400_000}
SENTENCES = ["".join(words) for words in load_mini().test[:12]]
SLOW = {"texts": ["研究生命的起源。" * 1500], "k_best": 20}  # computes for a second or two


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Small models by their names: words, people, kinds of texts, pairs of texts, and the one in the package."""
    folder = tmp_path_factory.mktemp("runs")
    kinds = [(text, "question" if "吗" in text else "other") for text in ("好吗", "好的", "来吗", "来了")] * 4
    train_classifier(Settings(task="classify", **QUICK), kinds, kinds[:4], out=folder / "kinds")
    corpus = load_mini()
    network = {"width": 16, "depth": 1, "batch_size": 8, "epochs": 2, "learning_rate": 0.02}
    train_tagger(Settings(**network), corpus.train[:60], corpus.valid[:12], out=folder / "words")
    people = load_mini("ner")
    train_tagger(Settings(task="ner", encoder="linear"), people.train, people.valid, out=folder / "people")
    pairs = [(text, "好", label) for text, label in kinds]
    train_classifier(Settings(task="classify", **QUICK), pairs, pairs[:4], out=folder / "pairs")
    return {
        "words": folder / "words",
        "people": folder / "people",
        "kinds": folder / "kinds",
        "pairs": folder / "pairs",
        "ready": built_in_segmenter(),
    }


@pytest.fixture(scope="module")
def servers(runs, tmp_path_factory):
    """A list for the server that runs, which ends with the module."""
    started = []
    yield started
    for server in started:
        server.stop()


@pytest.fixture
def server(servers, runs, tmp_path_factory):
    """The server; a new one if a test has stopped it."""
    if not servers or servers[-1].process.poll() is not None:
        limits = [f"{name}={value}" for name, value in LIMITS.items()]
        models = [f"{name}={folder}" for name, folder in runs.items()]
        servers.append(Server([*models, *limits], tmp_path_factory.mktemp("server")))
    return servers[-1]


def close(a, b):
    """Whether two answers are the same up to the last digits of probabilities."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) < 1e-4
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b


# -- answers


def test_words_are_those_of_the_tagger_with_their_places(server, runs):
    texts = [*SENTENCES, "今天 天气\n真好", "", " \u3000", "Python3 和 3.14", "👨\u200d👩\u200d👧 好", "好" * 300]
    segmenter = WordSegmenter(runs["words"])
    status, found, _ = server.post("/segment", texts=texts, k_best=3)
    assert (status, found["model"]) == (200, "words")
    expected = segmenter(texts)
    best = segmenter.k_best_batch(texts, 3)
    for text, result, words, ways in zip(texts, found["results"], expected, best, strict=True):
        assert close(result["words"], [span.as_dict() for span in words])
        ours = [(way["words"], way["probability"]) for way in result["alternatives"]]
        assert close(ours, [([span.as_dict() for span in spans], p) for spans, p in ways])
        for row in [result["words"], *(way["words"] for way in result["alternatives"])]:
            assert [text[word["start"] : word["end"]] for word in row] == [word["text"] for word in row]
            assert [word["start"] for word in row] == sorted({word["start"] for word in row})


def test_an_exported_file_is_served_too(server, runs):
    status, found, _ = server.post("/segment", texts=SENTENCES, model="ready")
    expected = [[span.as_dict() for span in spans] for spans in WordSegmenter(runs["ready"])(SENTENCES)]
    assert status == 200 and close([result["words"] for result in found["results"]], expected)


def test_words_of_a_dictionary_are_words(server, runs):
    texts = ["研究生命的起源", "今天 天气真好"]
    for model in ("words", "ready"):
        status, found, _ = server.post("/segment", texts=texts, model=model, words=["究生命", "气真"], k_best=2)
        expected = WordSegmenter(runs[model], words=["究生命", "气真"], force_words=True)(texts)
        assert status == 200 and "究生命" in [word.text for word in expected[0]]
        assert close([result["words"] for result in found["results"]], [[w.as_dict() for w in row] for row in expected])
        for way in found["results"][0]["alternatives"]:
            assert "究生命" in [word["text"] for word in way["words"]]
    plain = WordSegmenter(runs["ready"])(texts)
    found = server.post("/segment", texts=texts, model="ready")[1]["results"]  # no request changes the next one
    assert close([result["words"] for result in found], [[word.as_dict() for word in row] for row in plain])


def test_entities_have_at_least_the_probability_that_is_asked_for(server, runs):
    texts = ["".join(sentence.text) for sentence in load_mini("ner").test[:12]]
    counts = []
    for least in (0.05, None, 0.99):
        options = {} if least is None else {"min_probability": least}
        expected = EntityRecognizer(runs["people"], **options)(texts)
        status, found, _ = server.post("/tag", texts=texts, **options)
        entities = [result["entities"] for result in found["results"]]
        assert status == 200 and close(entities, [[span.as_dict() for span in row] for row in expected])
        counts.append(sum(map(len, entities)))
    assert counts[0] > counts[1] > counts[2]


def test_entities_are_those_of_the_recognizer(server, runs):
    texts = ["".join(sentence.text) for sentence in load_mini("ner").test[:12]]
    recognizer = EntityRecognizer(runs["people"])
    status, found, _ = server.post("/tag", texts=texts, k_best=2)
    expected = [[span.as_dict() for span in row] for row in recognizer.recognize_batch(texts)]
    assert status == 200 and sum(map(len, expected)) > 5
    assert close([result["entities"] for result in found["results"]], expected)
    for result, ways in zip(found["results"], recognizer.k_best_batch(texts, 2), strict=True):
        spans = [([(entity.start, entity.end, entity.label) for entity in row], p) for row, p in ways]
        ours = [
            ([(entity["start"], entity["end"], entity["label"]) for entity in way["entities"]], way["probability"])
            for way in result["alternatives"]
        ]
        assert close(ours, spans)


def test_labels_are_those_of_the_classifier_and_models_are_chosen_by_name(server, runs):
    for name, texts in (("kinds", ["好吗", "好的"]), ("pairs", [["好吗", "好"], ["来了", "好"]])):
        status, found, _ = server.post("/classify", texts=texts, model=name)
        expected = TextClassifier(runs[name]).predict([t if name == "kinds" else tuple(t) for t in texts])
        assert (status, found["model"]) == (200, name)
        assert close(found["results"], list(map(asdict, expected)))
    assert server.post("/classify", texts=["好"])[1]["model"] == "kinds"  # the first one for the path


def test_the_server_lists_its_models_and_is_healthy(server):
    status, found, _ = server.ask("GET", "/models")
    assert status == 200 and found["limits"]["texts"] == 20
    assert [(model["name"], model["path"], model["labels"], model["pairs"]) for model in found["models"]] == [
        ("words", "/segment", [], False),
        ("people", "/tag", ["LOC", "ORG", "PER"], False),
        ("kinds", "/classify", ["other", "question"], False),
        ("pairs", "/classify", ["other", "question"], True),
        ("ready", "/segment", [], False),
    ]
    assert server.ask("GET", "/health")[:2][0] == 200


def test_the_paths_are_described_for_programs_and_the_page_needs_no_network(server):
    document = server.ask("GET", "/openapi.json")[1]
    paths = {"/segment", "/tag", "/pos", "/classify", "/models", "/health", "/metrics"}
    assert paths == document["paths"].keys()
    assert not any("deprecated" in operation for path in paths for operation in document["paths"][path].values())
    request = document["components"]["schemas"]["SegmentRequest"]["properties"]
    assert request["texts"]["maxItems"] == 20 and request["texts"]["items"]["maxLength"] == 20_000
    status, text, headers = server.ask("GET", "/")
    assert status == 200 and headers.get_content_type() == "text/html"
    assert "http://" not in text and "https://" not in text and "<script>" not in text
    assert "script-src 'self'" in headers["Content-Security-Policy"]


def test_metrics_are_text_of_prometheus(server):
    status, text, headers = server.ask("GET", "/metrics")
    assert status == 200 and headers.get_content_type() == "text/plain"
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {"kcrf_requests", "kcrf_request_seconds", "kcrf_texts", "kcrf_waiting"} <= families.keys()
    assert families["kcrf_request_seconds"].type == "histogram" and families["kcrf_waiting"].type == "gauge"
    refused = [sample.labels["model"] for sample in families["kcrf_refused"].samples if sample.name.endswith("_total")]
    assert refused == ["words", "people", "kinds", "pairs", "ready"]  # 0 before the first one


# -- batches and limits


def test_requests_that_arrive_together_share_batches_and_get_their_own_answers(server, runs):
    expected = WordSegmenter(runs["words"]).segment_batch(SENTENCES)
    names = "batches_total", "batched_requests_total", "texts_total"
    before = [server.metric(name, model="words") for name in names]
    with ThreadPoolExecutor(24) as pool, occupied(server) as slow:
        answers = list(pool.map(lambda text: server.post("/segment", texts=[text]), SENTENCES))
        assert slow.result()[0] == 200
    found = [[word["text"] for word in answer["results"][0]["words"]] for _, answer, _ in answers]
    assert found == expected
    batches, requests, texts = (server.metric(name, model="words") - old for name, old in zip(names, before))
    assert (requests, texts) == (13, 13) and batches == 2  # the slow one, and one for the twelve


@contextmanager
def occupied(server):
    """A context in which the model of words computes for a while; gives the future of what it computes."""
    wait_until(lambda: server.metric("computing", model="words") == 0)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(server.post, "/segment", **SLOW)
        wait_until(lambda: server.metric("computing", model="words") > 80)
        yield slow


def wait_until(holds, seconds=20):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_full_queue_answers_503_at_once_and_the_server_goes_on(server):
    with ThreadPoolExecutor(1) as pool, occupied(server) as slow:
        second = pool.submit(server.post, "/segment", texts=SLOW["texts"])
        wait_until(lambda: server.metric("waiting", model="words") > 80)
        start = time.perf_counter()
        status, found, headers = server.post("/segment", texts=["好"])
        assert (status, headers["Retry-After"]) == (503, "1") and "wait" in found["error"]
        assert time.perf_counter() - start < 1 and not slow.done()
        assert server.post("/tag", texts=["好"])[0] == 200  # another model has a queue of its own
        assert [slow.result()[0], second.result()[0]] == [200, 200]
    assert server.metric("refused_total", model="words") >= 1
    assert server.post("/segment", texts=["好"])[0] == 200


@pytest.mark.slow
def test_a_client_that_leaves_takes_its_request_out_of_the_queue(server):
    before, texts = (server.metric(name, model="words") for name in ("abandoned_total", "texts_total"))
    with occupied(server) as slow:
        connection = server.connect()
        connection.request("POST", "/segment", '{"texts": ["gone"]}', {"Content-Type": "application/json"})
        wait_until(lambda: server.metric("waiting", model="words") == 1)
        connection.close()
        assert slow.result()[0] == 200
    wait_until(lambda: server.metric("abandoned_total", model="words") == before + 1)
    assert server.metric("texts_total", model="words") == texts + 1
    assert server.metric("requests_total", path="/segment", status="499") >= 1


def test_a_client_that_leaves_within_its_body_harms_nobody(server):
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(b"POST /segment HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    assert server.post("/segment", texts=["好"])[0] == 200


def test_answers_do_not_wait_for_acknowledgements(server):
    connection = server.connect()
    times = []
    for _ in range(30):
        start = time.perf_counter()
        connection.request("GET", "/health")
        connection.getresponse().read()
        times.append(time.perf_counter() - start)
    connection.close()
    assert sorted(times)[15] < 0.03  # 0.044 without TCP_NODELAY, on whatever machine
    with open_socket("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP


# -- what is refused

GOOD = '{"texts": ["好"]}'
MALFORMED = [  # path, body, status, what the reason says
    ("/segment", "", 422, "body: "),
    ("/segment", "{", 400, "needs JSON"),
    ("/segment", GOOD[:-1], 400, "needs JSON"),
    ("/segment", GOOD + "x", 400, "needs JSON"),
    ("/segment", b"\xff\xfe{}", 400, "body: needs JSON"),
    ("/segment", b'{"texts": ["\xe4\xbd"]}', 400, "not nested deeply. Received: text that is not UTF-8"),
    ("/segment", "[" * 100_000, 400, "body: needs JSON in UTF-8, not nested deeply. Received: JSON that is nested too"),
    ("/segment", '{"texts": ' * 5000, 400, "Received: JSON that is nested too deeply"),
    ("/segment", "9" * 10_000, 400, "Received: a number with too many digits"),
    ("/segment", "null", 422, "body: "),
    ("/segment", "3", 422, "body: "),
    ("/segment", "NaN", 422, "body: "),
    ("/segment", '"texts"', 422, "body: "),
    ("/segment", '["好"]', 422, "body: "),
    ("/segment", "{}", 422, "texts: "),
    ("/segment", '{"texts": null}', 422, "texts: "),
    ("/segment", '{"texts": "好"}', 422, "texts: "),
    ("/segment", '{"texts": {"0": "好"}}', 422, "texts: "),
    ("/segment", '{"texts": ["好", 3]}', 422, "texts[1]: "),
    ("/segment", '{"texts": [null]}', 422, "texts[0]: "),
    ("/segment", '{"texts": [["好", "好"]]}', 422, "texts[0]: "),
    ("/segment", '{"texts": ["\\ud800"]}', 422, "texts[0]: "),
    ("/segment", '{"texts": ["好"], "\\ud800": 1}', 422, ""),
    ("/segment", '{"texts": ["好"], "text": "好"}', 422, "text: "),
    ("/segment", '{"texts": ["好"], "k_best": -1}', 422, "k_best: "),
    ("/segment", '{"texts": ["好"], "k_best": 21}', 422, "k_best: "),
    ("/segment", '{"texts": ["好"], "k_best": "3"}', 422, "k_best: "),
    ("/segment", '{"texts": ["好"], "k_best": 2.5}', 422, "k_best: "),
    ("/segment", '{"texts": ["好"], "k_best": true}', 422, "k_best: "),
    ("/segment", '{"texts": ["好"], "k_best": 1e400}', 422, "k_best: "),
    ("/segment", '{"texts": ["好"], "model": 3}', 422, "model: "),
    ("/segment", '{"texts": ["好"], "words": "好"}', 422, "words: "),
    ("/segment", '{"texts": ["好"], "words": ["好", "a b"]}', 422, "words[1]: Needs a word without white space"),
    ("/segment", json.dumps({"texts": ["好"], "words": ["好"] * 1001}), 422, "words: "),
    ("/tag", '{"texts": ["好"], "min_probability": 1}', 422, "min_probability: "),
    ("/tag", '{"texts": ["好"], "min_probability": NaN}', 422, "min_probability: "),
    ("/segment", '{"texts": ["好"], "model": "people"}', 404, "`model` must be one of words, ready"),
    ("/segment", '{"texts": ["好"], "model": "../words"}', 404, "`model` must be one of words, ready"),
    ("/segment", '{"texts": ["好"], "model": "\\ud800"}', 404, "`model` must be one of words, ready"),
    ("/segment", json.dumps({"texts": ["好"] * 21}), 422, "texts: "),
    ("/segment", json.dumps({"texts": ["x" * 20_001]}), 422, "texts[0]: "),
    ("/segment", json.dumps({"texts": ["x" * 400_000]}), 413, "400,000 bytes"),
    ("/classify", '{"texts": ["好"], "k_best": 2}', 422, "k_best: "),
    ("/pos", '{"texts": ["好"], "k_best": 2}', 422, "k_best: "),
    ("/classify", '{"texts": ["好"], "model": "pairs"}', 422, "texts[0]: "),
    ("/classify", '{"texts": [["好", "好"]], "model": "kinds"}', 422, "texts[0]: "),
    ("/classify", '{"texts": [["好"]], "model": "pairs"}', 422, "texts[0]"),
    ("/classify", '{"texts": [["好", "好", "好"]], "model": "pairs"}', 422, "texts[0]"),
    ("/classify", '{"texts": [["好", null]], "model": "pairs"}', 422, "texts[0]"),
]


def check_refusal(server, path, body, status, reason):
    body = body.encode() if isinstance(body, str) else body
    got, found, _ = server.ask("POST", path, body, {"Content-Type": "application/json"})
    assert got == status and reason in found["error"], (path, body[:80], got, found)
    assert_says_nothing_of_the_machine(json.dumps(found))


def assert_says_nothing_of_the_machine(text):
    for secret in ("Traceback", "/tmp", "\\", str(ROOT), ".py", sys.prefix, "pydantic"):
        assert secret not in text.replace("\\ud800", ""), text


def test_malformed_requests_are_refused_with_a_reason(server):
    for row in MALFORMED:
        check_refusal(server, *row)
    assert server.post("/segment", texts=["好"])[0] == 200


def test_other_requests_are_refused_with_a_reason(server):
    rows = [
        ("POST", "/nothing", GOOD, {}, 404),
        ("GET", "/segment", None, {}, 405),
        ("PUT", "/segment", GOOD, {}, 405),
        ("GET", "/../../etc/passwd", None, {}, 404),
        ("GET", "/page.html", None, {}, 404),
        ("POST", "/segment", GOOD, {"Content-Type": "text/plain"}, 422),  # what a form of another site can send
        ("POST", "/segment", GOOD, {}, 422),
        ("GET", "/health", None, {"Host": "elsewhere.example"}, 400),
    ]
    for method, path, body, headers, status in rows:
        got, found, _ = server.ask(method, path, body and body.encode(), headers)
        assert got == status, (method, path, got)
        if status == 404:
            assert (
                "POST /segment, POST /tag, POST /pos, POST /classify" in found["error"]
                and "GET /health" in found["error"]
            )
        if status == 405:
            assert found["error"] == f"/segment needs POST. Received: {method}"
        assert_says_nothing_of_the_machine(json.dumps(found))


def test_another_host_is_refused_and_this_machine_is_not(server):
    for host in ("elsewhere.example", "", "[::1", "localhost.elsewhere.example:8000"):
        status, found, _ = server.ask("GET", "/health", headers={"Host": host})
        assert (status, found) == (400, {"error": "The header Host must name this machine, as in localhost"})
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "[::1]"):
        assert server.ask("GET", "/health", headers={"Host": host})[0] == 200


IMPATIENT = (
    "import kcrf.serving.server as server; server._CONNECTIONS, server._SILENCE = 3, 0.5; "
    "from kcrf.commands import main; raise SystemExit(main())"
)


def test_silent_connections_are_closed_and_too_many_are_answered_as_json(tmp_path):
    server = Server([f"words={built_in_segmenter()}"], tmp_path, program=("-c", IMPATIENT))
    try:
        silent = [socket.create_connection((server.host, server.port)) for _ in range(3)]
        silent[0].sendall(b"POST /segment HTTP/1.1\r\nHost: localhost\r\n")  # its headers never end
        silent[1].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent[1].recv(1 << 16)
        silent[1].sendall(b"G")  # neither does the line of its second request
        status, found, headers = server.ask("GET", "/health")
        assert (status, found) == (503, {"error": "Too many connections; try again later"})
        assert headers["Retry-After"] == "1"
        for connection in silent:
            connection.settimeout(10)
            while connection.recv(1 << 16):
                pass
            connection.close()
        slow = server.connect()  # silence is what counts, not the time of a connection
        for _ in range(3):
            slow.request("GET", "/health")
            assert slow.getresponse().read() and time.sleep(0.3) is None
        slow.close()
        assert server.ask("GET", "/health")[0] == 200
    finally:
        server.stop()


def test_a_forgotten_content_type_is_named(server):
    for headers in ({}, {"Content-Type": "application/x-www-form-urlencoded"}):
        status, found, _ = server.ask("POST", "/segment", GOOD.encode(), headers)
        assert (status, found) == (422, {"error": "body: needs the header Content-Type: application/json"})


def test_the_place_of_an_error_is_that_of_the_text_or_the_pair_that_was_sent(server):
    check_refusal(server, "/classify", '{"texts": [["好"]]}', 422, "texts[0]: List should have at least 2 items")
    check_refusal(server, "/classify", '{"texts": [["好", 3]]}', 422, "texts[0][1]: Input should be a valid string")
    check_refusal(server, "/classify", '{"texts": ["好", 3]}', 422, "texts[1]: Input should be a valid string")


def test_head_is_answered_as_get_without_a_body(server):
    for path in ("/", "/health", "/metrics"):
        connection = server.connect()
        connection.request("HEAD", path)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
        connection.close()


def test_a_host_without_an_address_is_named():
    with pytest.raises(OSError, match="^no host: "):
        open_socket("no host", 0)


def test_a_body_in_chunks_is_bounded_too(server):
    def chunks():
        for _ in range(50):
            yield b" " * 10_000

    connection = server.connect()
    try:
        connection.request("POST", "/segment", chunks(), {"Content-Type": "application/json"}, encode_chunked=True)
    except OSError:
        pass  # the server has answered and closed
    status = connection.getresponse().status
    connection.close()
    assert status == 413


@pytest.mark.slow
def test_a_thousand_malformed_bodies_are_refused(server):
    rng, good = random.Random(0), json.dumps({"texts": ["今天", "好"], "k_best": 2, "model": "words"})
    refused = 0
    for _ in range(1000):
        body = bytearray(good.encode())
        for _ in range(rng.randint(1, 6)):
            start = rng.randrange(len(body) + 1)
            end = start + rng.choice([0, 0, 1, 5])
            put = rng.choice([b"", rng.randbytes(2), rng.choice(string.punctuation).encode() * rng.randint(1, 9)])
            body[start:end] = put
        status, found, _ = server.ask("POST", "/segment", bytes(body), {"Content-Type": "application/json"})
        assert status in (200, 400, 404, 422), (body, status)
        refused += status != 200
        assert status == 200 or found["error"]
    assert refused > 900 and server.post("/segment", texts=["好"])[0] == 200


# -- the page


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    page = Page(tmp_path_factory.mktemp("chromium"))
    yield page
    page.close()


TYPED = "研究生命的起源"
SHOWN = "[...document.querySelectorAll('#result .piece span')].map(x => x.textContent)"


def choose(page, name):
    page.value(f"document.querySelector('[data-name={name}]').click(); document.getElementById('text').focus()")


def test_the_page_shows_words_their_probability_and_alternatives_while_one_types(server, runs, page):
    segmenter = WordSegmenter(runs["words"])
    page.open(f"{server.url}/", 1200)
    page.wait("document.querySelectorAll('#models button').length == 5")
    assert page.value("document.activeElement.id") == "text"
    for text in (TYPED, TYPED + "👍 <b>好</b>"):  # what was typed before is still there
        page.type(text.removeprefix(page.value("document.getElementById('text').value")))
        (words,) = segmenter([text])
        page.wait(f"{SHOWN}.join(' ') == {json.dumps(' '.join(span.text for span in words))}")
    shown = page.value("[...document.querySelectorAll('#result .piece small')].map(x => parseFloat(x.textContent))")
    assert shown == pytest.approx([100 * span.probability for span in words], abs=0.06)
    best = segmenter.k_best(text, 4)[1:]
    rows = page.value(
        "[...document.querySelectorAll('#alternatives li')].map(x => [...x.children].map(y => y.textContent))"
    )
    found = {(span.start, span.end) for span in words}
    changed = [[span.text for span in spans if (span.start, span.end) not in found] for spans, _ in best]
    assert [set(of_row) <= set(row[1].split()) for of_row, row in zip(changed, rows, strict=True)] == [True] * len(best)
    assert page.errors == []


def paste(page, text):
    page.value("document.getElementById('text').value = ''; document.getElementById('text').focus()")
    page.paste(text)


def test_the_page_shows_the_probability_of_the_whole_analysis(server, runs, page):
    page.open(f"{server.url}/", 1200)
    page.wait("document.querySelectorAll('#models button').length == 5")
    page.type(TYPED)
    page.wait("document.getElementById('probability').textContent != ''")
    words, probability = WordSegmenter(runs["words"]).k_best(TYPED, 1)[0]
    assert page.value(SHOWN) == [span.text for span in words]
    assert page.value(
        "document.getElementById('probability').textContent"
    ) == f"the whole analysis: {probability:.1%}".replace("%", " %")


@pytest.mark.parametrize(("path", "is_open"), [("", False), ("docs", True)])
def test_docs_is_the_page_opened_at_its_examples(server, page, path, is_open):
    page.open(f"{server.url}/{path}", 1200)
    page.wait("document.querySelectorAll('#models button').length == 5")
    assert page.value("document.querySelector('details').open") is is_open


def test_a_paste_that_is_too_long_is_named_and_not_cut(server, page):
    page.open(f"{server.url}/", 400)
    page.wait("document.querySelectorAll('#models button').length == 5")
    paste(page, "👍" * 20_001)  # as many code points; twice as many in JavaScript
    page.wait("document.getElementById('status').textContent.includes('has 20,001 characters')")
    assert page.value("Array.from(document.getElementById('text').value).length") == 20_001
    assert "accepts 20,000" in page.value("document.getElementById('status').textContent")
    assert page.value(SHOWN) == []


def test_a_word_without_ink_is_shown_by_its_code_point(server, runs, page):
    text = "今天\u200b天气"
    words = WordSegmenter(runs["words"]).segment(text)
    assert "\u200b" in words
    page.open(f"{server.url}/", 1200)
    page.wait("document.querySelectorAll('#models button').length == 5")
    paste(page, text)
    page.wait("document.querySelectorAll('#result .piece').length > 1")
    assert page.value(SHOWN) == ["U+200B" if word == "\u200b" else word for word in words]


def test_an_example_is_tried_with_a_click(server, runs, page):
    page.open(f"{server.url}/", 400)
    page.wait("document.querySelectorAll('#examples button').length > 1")
    page.value("document.querySelector('#examples button').click()")
    text = page.value("document.querySelector('#examples button').textContent")
    page.wait(f"{SHOWN}.join(' ') == {json.dumps(' '.join(WordSegmenter(runs['words']).segment(text)))}")
    choose(page, "pairs")
    page.value("document.querySelector('#examples button').click()")
    assert page.value("[...document.querySelectorAll('textarea')].map(x => x.value).join(' / ')") == page.value(
        "document.querySelector('#examples button').textContent"
    )
    assert page.value("document.documentElement.scrollWidth") == 400
    assert page.errors == []


def test_the_page_shows_entities_labels_and_pairs(server, runs, page):
    text = "".join(load_mini("ner").test[0].text)
    page.open(f"{server.url}/", 360)
    page.wait("document.querySelectorAll('#models button').length == 5")
    choose(page, "people")
    page.type(text)
    entities = EntityRecognizer(runs["people"]).recognize(text)
    page.wait("document.getElementById('heading').textContent == 'Entities'")
    assert page.value(SHOWN) == [entity.text for entity in entities] != []
    choose(page, "pairs")
    page.wait("document.querySelectorAll('.bars progress').length == 2")
    found = TextClassifier(runs["pairs"]).classify(text, "")
    assert page.value("document.querySelector('.bars .best').textContent") == found.label
    assert page.value("document.documentElement.scrollWidth") == 360  # nothing to scroll sideways
    assert page.errors == []


# -- its end


@pytest.mark.slow
def test_sigterm_under_load_answers_what_was_taken_and_exits_with_0(server, runs):
    expected = WordSegmenter(runs["words"]).segment_batch(SENTENCES)
    before = server.metric("texts_total", model="words")
    with ThreadPoolExecutor(16) as pool, occupied(server) as slow:
        answers = [pool.submit(server.post, "/segment", texts=[text]) for text in SENTENCES]
        wait_until(lambda: server.metric("waiting", model="words") == len(SENTENCES))
        assert server.metric("texts_total", model="words") == before and not slow.done()
        server.process.send_signal(signal.SIGTERM)
        assert slow.result()[0] == 200
        answers = [future.result() for future in answers]
    found = [[word["text"] for word in answer["results"][0]["words"]] for _, answer, _ in answers]
    assert found == expected
    assert server.process.wait(20) == 0
    assert "Traceback" not in server.errors.read_text()
