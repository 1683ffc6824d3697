"""Batches of texts: requests that wait at the same time are computed together."""

import os
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from kcrf.serving.limits import pieces


class QueueFull(Exception):
    """Too many texts wait for a model."""


class Stopped(Exception):
    """The batcher is closed."""


@dataclass(eq=False)
class _Job:
    """The texts of a request, their options, and the future of their results."""

    texts: list
    options: object
    future: Future = field(default_factory=Future)

    def __post_init__(self):
        self.size = pieces(self.texts)


class Batcher:
    """A queue of requests and the thread that computes them, in the order in which they came.

    When the thread is free, it takes the request that has waited longest, and with it others that have the same
    options, as many as fit into a batch. So no request waits for a batch to fill. If a batch fails, its requests are
    computed one by one, and those that fail again get the error.

    The thread starts with the first request of a process: a fork keeps no thread but the one that forked.
    """

    def __init__(self, compute, waiting, batch, on_batch=lambda texts, requests: None, on_abandoned=lambda: None):
        self._compute, self._capacity, self._batch = compute, waiting, batch
        self._on_batch, self._on_abandoned = on_batch, on_abandoned
        self._is_closed, self._process = False, None
        self._begin_in_this_process()

    def _begin_in_this_process(self):
        """An empty queue without a thread, unless the queue is of this process: a fork copies no threads but locks."""
        if self._process != os.getpid():
            self._process, self._thread, self._changed = os.getpid(), None, threading.Condition()
            self._jobs, self._size, self._computing = deque(), 0, 0

    def submit(self, texts, options=None):
        """Adds a request."""
        job = _Job(texts, options)
        self._begin_in_this_process()
        with self._changed:
            if self._is_closed:
                raise Stopped
            if self._jobs and self._size + job.size > self._capacity:
                raise QueueFull
            self._jobs.append(job)
            self._size += job.size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kcrf-batches", daemon=True)
                self._thread.start()
            self._changed.notify()
        job.future.add_done_callback(lambda future: self._leave(job) if future.cancelled() else None)
        return job.future

    def _leave(self, job):
        """Removes a cancelled request, unless the thread has taken it."""
        with self._changed:
            if job not in self._jobs:
                return
            self._jobs.remove(job)
            self._size -= job.size
        self._on_abandoned()

    def waiting(self):
        """The number of waiting texts, in pieces of 128 characters."""
        return self._size

    def computing(self):
        """The number of texts that are being computed, counted the same way."""
        return self._computing

    def is_alive(self):
        """Whether requests are computed."""
        self._begin_in_this_process()
        return not self._is_closed if self._thread is None else self._thread.is_alive()

    def open(self):
        """Accepts requests again after `close`."""
        self._begin_in_this_process()
        with self._changed:
            self._thread, self._is_closed = None if self._is_closed else self._thread, False

    def close(self):
        """Accepts no further requests, and returns when the waiting requests are computed."""
        self._begin_in_this_process()
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self):
        while jobs := self._next_batch():
            started = [job for job in jobs if job.future.set_running_or_notify_cancel()]
            for _ in range(len(jobs) - len(started)):
                self._on_abandoned()
            if started:
                self._answer(started)
            self._computing = 0

    def _next_batch(self):
        """The requests to compute next; an empty list when the batcher is closed and nothing waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._is_closed)
            if not self._jobs:
                return []
            jobs, room = [self._jobs.popleft()], self._batch
            room -= jobs[0].size
            for job in list(self._jobs):
                if job.options == jobs[0].options and job.size <= room:
                    self._jobs.remove(job)
                    jobs.append(job)
                    room -= job.size
            self._computing = sum(job.size for job in jobs)
            self._size -= self._computing
            return jobs

    def _answer(self, jobs):
        texts = [text for job in jobs for text in job.texts]
        try:
            results = iter(self._compute(texts, jobs[0].options))
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(error)
            for job in jobs if len(jobs) > 1 else ():
                self._answer([job])
            return
        self._on_batch(texts, len(jobs))
        for job in jobs:
            job.future.set_result([next(results) for _ in job.texts])
