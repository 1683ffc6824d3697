"""Tests of kcrf.corpora and kcrf.runs: what fuzzing found is read, or refused by an error that names the file."""

import tracemalloc

import pytest
from fuzz_readers import MOST_MEMORY, Readers, corpus

BACKENDS = ["torch"]


@pytest.mark.slow
def test_the_corpus_of_the_fuzzer_is_read_or_refused(tmp_path):
    readers = Readers(tmp_path)
    tracemalloc.start()
    try:
        for data in corpus():
            tracemalloc.reset_peak()
            readers.read(data)
            assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY, data
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        b'\x0fvocabulary.json\n{"words": \xcf}',
        b"\x10log.csv\nepoch,loss\n1,\r0.5\n",
    ],
)
def test_what_fuzzing_found_is_refused_with_the_name_of_the_file(data, tmp_path):
    readers = Readers(tmp_path)
    with pytest.raises(ValueError, match=str(tmp_path)):
        readers.targets[data[0]](data[1:])
