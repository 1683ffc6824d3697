"""Tests of kcrf.serving.

An application that is built before its server forks, as `gunicorn --preload` does, answers in each process.
"""

import http.client
import json
import os
import subprocess
import sys
import time

import pytest
from servers import ROOT
from small_runs import RUNS as SMALL
from small_runs import train_small_runs

BACKENDS = ["torch"]
pytestmark = pytest.mark.slow
RUNS = {
    "keras": str(SMALL / "words"),
    "onnx": str(ROOT / "examples" / "segmenter.onnx"),
}
APP = """
from kcrf.serving import build_app, load_models
app = build_app(load_models({runs}))
"""
FORKING = f"""
import os, signal, sys, uvicorn
from kcrf.serving.server import open_socket
{APP.format(runs=RUNS)}
warm_models = load_models({RUNS})
for model in warm_models.values():
    model.warm_up()
warm = build_app(warm_models)
processes = []
for forked, lifespan in ((app, "on"), (app, "off"), (warm, "on")):
    bound = open_socket("127.0.0.1", 0)
    processes.append(os.fork())
    if processes[-1] == 0:
        uvicorn.Server(uvicorn.Config(forked, log_level="warning", lifespan=lifespan)).run(sockets=[bound])
        os._exit(0)
    print(bound.getsockname()[1], flush=True)
sys.stdin.read()
for process in processes:
    os.kill(process, signal.SIGKILL)
"""


def ask(port, model, seconds=60):
    """`(status, content)`; waits for the server to listen, and no longer than `seconds` for its answer."""
    end = time.monotonic() + seconds
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
        try:
            body = json.dumps({"texts": ["今天天气真好。"], "model": model})
            connection.request("POST", "/segment", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.1)
        finally:
            connection.close()


@pytest.fixture(scope="module")
def ports():
    """Of three forks: with a lifespan, without one, and of an application whose models were used before the fork."""
    train_small_runs()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("OMP_NUM_THREADS", None)  # a backend with threads, as users have it
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", FORKING], env=environment, **pipes) as process:
        yield [int(process.stdout.readline()) for _ in range(3)]


@pytest.mark.parametrize("place", [0, 1], ids=["lifespan", "no-lifespan"])
@pytest.mark.parametrize("model", RUNS)
def test_a_fork_answers(ports, model, place):
    status, content = ask(ports[place], model)
    assert status == 200 and "".join(word["text"] for word in content["results"][0]["words"]) == "今天天气真好。"


@pytest.mark.parametrize("model", RUNS)
def test_a_model_that_was_used_before_the_fork_is_refused_at_once(ports, model):
    status, content = ask(ports[2], model)
    assert status == 503 and f"The model {model} was loaded before the process forked" in content["error"]


def test_the_workers_of_uvicorn_answer(tmp_path):
    (tmp_path / "served.py").write_text(APP.format(runs=RUNS))
    command = [sys.executable, "-m", "uvicorn", "served:app", "--workers", "2", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = next(line for line in process.stderr if "running on" in line)
            port = int(line.rpartition(":")[2].split()[0])
            assert [ask(port, model, 180)[0] for model in [*RUNS] * 2] == [200] * 4
        finally:  # leaving the context waits for the process
            process.terminate()
            process.stderr.read()
