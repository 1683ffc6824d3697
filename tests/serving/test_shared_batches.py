"""kcrf.serving: Requests that wait together are computed together, in order, and none is lost."""

import os
import threading
from concurrent.futures import CancelledError

import pytest
from fastapi.testclient import TestClient
from small_runs import RUNS, train_small_runs

from kcrf.serving import build_app, load_models
from kcrf.serving.batches import Batcher, QueueFull, Stopped

BACKENDS = ["torch"]


class Work:
    """Computes upper case once it may, and remembers what it was given."""

    def __init__(self):
        self.calls, self.may, self.has_begun = [], threading.Event(), threading.Event()

    def __call__(self, texts, options):
        self.calls.append((list(texts), options))
        self.has_begun.set()
        assert self.may.wait(10)
        if "bad" in texts:
            raise ValueError("bad")
        return [text.upper() for text in texts]


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def batcher(work):
    """A batcher of 4 texts, of which 6 may wait, that is computing "first"."""
    batcher = Batcher(work, waiting=6, batch=4)
    batcher.first = batcher.submit(["first"])
    assert work.has_begun.wait(10)
    yield batcher
    work.may.set()
    batcher.close()


def results(futures):
    return [future.result(10) for future in futures]


def test_requests_that_wait_share_batches_in_their_order(batcher, work):
    futures = [batcher.submit(texts) for texts in (["a"], ["b", "c"], ["d", "e"], ["f"])]
    work.may.set()
    assert results([batcher.first, *futures]) == [["FIRST"], ["A"], ["B", "C"], ["D", "E"], ["F"]]
    # 4 texts a batch: d and e no longer fit beside a, b and c, but f does.
    assert [texts for texts, _ in work.calls] == [["first"], ["a", "b", "c", "f"], ["d", "e"]]


def test_requests_with_other_options_wait_for_their_own_batch(batcher, work):
    futures = [batcher.submit([text], k) for text, k in (("a", 0), ("b", 3), ("c", 0), ("d", 3))]
    work.may.set()
    assert results(futures) == [["A"], ["B"], ["C"], ["D"]]
    assert work.calls[1:] == [(["a", "c"], 0), (["b", "d"], 3)]


def test_a_full_queue_refuses_at_once_and_takes_one_large_request(batcher, work):
    large = batcher.submit(["x" * 128 * 9])  # more than may wait, but nothing waits
    with pytest.raises(QueueFull):
        batcher.submit(["a"])
    assert batcher.waiting() == 9
    work.may.set()
    large.result(10)
    assert batcher.submit(["a"]).result(10) == ["A"] and batcher.waiting() == 0


def test_the_queue_counts_long_texts_by_their_length(batcher):
    batcher.submit(["x" * 129, ""])  # 2 + 1
    batcher.submit(["x", "y", "z"])
    with pytest.raises(QueueFull):
        batcher.submit(["a"])


def test_a_cancelled_request_is_not_computed(work):
    left = []
    batcher = Batcher(work, 6, 4, on_abandoned=lambda: left.append(1))
    batcher.submit(["first"])
    assert work.has_begun.wait(10)
    gone, kept = batcher.submit(["gone"] * 5), batcher.submit(["kept"])
    assert gone.cancel() and batcher.waiting() == 1 and left == [1]
    assert batcher.submit(["also gone"] * 5).cancel()  # there is room again
    work.may.set()
    assert kept.result(10) == ["KEPT"] and left == [1, 1]
    assert [texts for texts, _ in work.calls] == [["first"], ["kept"]]
    with pytest.raises(CancelledError):
        gone.result()
    batcher.close()


def test_an_error_reaches_the_request_that_causes_it_alone(batcher, work):
    good, bad, also_good = (batcher.submit([text]) for text in ("a", "bad", "b"))
    work.may.set()
    assert results([good, also_good]) == [["A"], ["B"]]
    with pytest.raises(ValueError, match="^bad$"):
        bad.result(10)
    assert batcher.is_alive() and batcher.submit(["c"]).result(10) == ["C"]


def test_a_batcher_that_is_closed_computes_what_it_took(batcher, work):
    futures = [batcher.submit([text]) for text in "abcde"]
    closing = threading.Thread(target=batcher.close)
    closing.start()
    while not batcher._is_closed:
        pass
    with pytest.raises(Stopped):
        batcher.submit(["late"])
    assert not any(future.done() for future in futures)
    work.may.set()
    closing.join(10)
    assert results(futures) == [["A"], ["B"], ["C"], ["D"], ["E"]] and not batcher.is_alive()
    batcher.open()
    assert batcher.submit(["again"]).result(10) == ["AGAIN"] and batcher.is_alive()


def test_what_was_computed_is_counted(work):
    seen = []
    batcher = Batcher(work, 6, 4, on_batch=lambda texts, requests: seen.append((texts, requests)))
    work.may.set()
    batcher.submit(["a", "b"]).result(10)
    batcher.close()
    assert seen == [(["a", "b"], 1)]


def test_a_fork_computes_with_a_thread_of_its_own(work):
    """The parent's thread is not in the fork; the parent's requests, and its wait for them, stay the parent's."""
    work.may.set()
    batcher = Batcher(work, waiting=6, batch=4)
    assert batcher.submit(["parent"]).result(10) == ["PARENT"]
    process = os.fork()
    if process == 0:
        try:
            answers = results([batcher.submit(["child"]), batcher.submit(["again"])])
            batcher.close()
            os._exit(0 if answers == [["CHILD"], ["AGAIN"]] and not batcher.is_alive() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert batcher.submit(["parent"]).result(10) == ["PARENT"]
    batcher.close()


def test_an_application_is_started_again_and_answers():
    train_small_runs()
    words = RUNS / "words"
    app = build_app(load_models({"words": str(words)}))
    for _ in range(2):
        with TestClient(app) as client:
            assert client.post("/segment", json={"texts": ["今天"]}).status_code == 200
