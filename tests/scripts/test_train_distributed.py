"""The example that trains in several processes: the losses of one process, and the same after SIGKILL."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from kcrf.backend import backend_name

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "train_distributed.py"
EPOCHS = 3
TOLERANCE = {"rtol": 1e-4}  # float32, added up in another order

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(backend_name() == "torch", reason="Keras distributes on TensorFlow and JAX only"),
]

# An epoch as plain Keras trains on real sentences alone, in batches that are not filled up, on one device.
PLAIN = """
import runpy, sys
from kcrf.backend import keras
example, folder, epochs = sys.argv[1:]
sys.argv[:] = [example, folder, "0"]
names = runpy.run_path(example)
if keras.backend.backend() == "jax":
    keras.distribution.set_distribution(None)
model = names["build"]()
for epoch in range(int(epochs)):
    losses = []
    for characters, tags, weights in names["batches"](epoch):
        model.reset_metrics()
        losses.append(float(model.train_on_batch(characters[weights > 0], tags[weights > 0])))
    print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.6f}", flush=True)
"""


def environment(**more):
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    flags = {"XLA_FLAGS": ""}  # those of `make test` compile slow programs
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **flags, **more}


def free_ports(count):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in sockets]


def of_process(index, ports):
    """The variables that tell a process of the others."""
    if backend_name() == "jax":
        return {
            "KERAS_DISTRIBUTION_JOB_ADDRESSES": f"localhost:{ports[0]}",
            "KERAS_DISTRIBUTION_NUM_PROCESSES": str(len(ports)),
            "KERAS_DISTRIBUTION_PROCESS_ID": str(index),
        }
    workers = ", ".join(f'"localhost:{port}"' for port in ports)
    task = f'{{"type": "worker", "index": {index}}}'
    return {"TF_CONFIG": f'{{"cluster": {{"worker": [{workers}]}}, "task": {task}}}'}


def start_two(folder, epochs):
    """Two processes that train together."""
    ports, processes = free_ports(2), []
    for index in range(2):
        with open(f"{folder}.{index}.log", "ab") as log:
            command = [sys.executable, EXAMPLE, folder, str(epochs)]
            variables = environment(**of_process(index, ports))
            processes.append(subprocess.Popen(command, env=variables, stdout=log, stderr=log))
    return processes


def losses(output):
    """The losses by epoch."""
    found = re.findall(r"^epoch (\d+): loss ([\d.]+)$", output, re.MULTILINE)
    return {int(epoch): float(loss) for epoch, loss in found}


def run(code, *arguments, **variables):
    command = [sys.executable, *code, *map(str, arguments)]
    done = subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return losses(done.stdout)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The losses of plain training."""
    found = run(["-c", PLAIN], EXAMPLE, tmp_path_factory.mktemp("plain"), EPOCHS)
    assert list(found) == [1, 2, 3] and found[3] < found[1] / 1.5
    return found


def assert_equal_losses(found, expected):
    assert list(found) == list(expected)
    assert_allclose(list(found.values()), list(expected.values()), **TOLERANCE)


@pytest.mark.skipif(backend_name() != "jax", reason="tests/training/test_distribution.py has two devices of TensorFlow")
def test_two_devices_of_one_process_have_the_losses_of_one(tmp_path, plain):
    two = "--xla_force_host_platform_device_count=2"
    assert_equal_losses(run([EXAMPLE], tmp_path / "run", EPOCHS, XLA_FLAGS=two), plain)


def test_two_processes_have_the_losses_of_one_though_one_was_killed(tmp_path, plain):
    folder, log = tmp_path / "run", tmp_path / "run.0.log"
    processes = start_two(folder, EPOCHS)
    end = time.monotonic() + 600
    while 1 not in losses(log.read_text("utf-8")):
        assert all(process.poll() is None for process in processes) and time.monotonic() < end
        time.sleep(0.02)
    processes[1].send_signal(signal.SIGKILL)
    time.sleep(1)
    processes[0].send_signal(signal.SIGKILL)
    assert [process.wait() for process in reversed(processes)][0] == -signal.SIGKILL
    first = losses(log.read_text("utf-8"))
    assert 1 <= len(first) < EPOCHS and not (folder / "tagger.keras").exists()

    log.write_bytes(b"")
    processes = start_two(folder, EPOCHS)
    assert [process.wait(timeout=600) for process in processes] == [0, 0], log.read_text("utf-8")
    second = losses(log.read_text("utf-8"))
    assert min(second) in (len(first) + 1, len(first) + 2)  # an epoch is saved before its loss is printed
    assert max(second) == EPOCHS
    found = {**first, **second}
    assert_equal_losses(found, {epoch: plain[epoch] for epoch in found})
    assert (folder / "tagger.keras").exists()
