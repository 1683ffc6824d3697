"""Every breakage of mutants.toml still fits the sources; `make mutants` tells whether tests notice it."""

import pytest
from mutate import MUTANTS, ROOT, mutated

BACKENDS = ["torch"]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant["id"] for mutant in MUTANTS])
def test_a_mutant_still_applies_and_its_tests_exist(mutant):
    text = (ROOT / "kcrf" / mutant["file"]).read_text(encoding="utf-8")
    assert mutated(mutant, text) != text
    compile(mutated(mutant, text), mutant["file"], "exec")
    assert mutant["tests"] and all((ROOT / "tests" / path).exists() for path in mutant["tests"])


def test_every_mutant_has_a_name_of_its_own():
    assert len({mutant["id"] for mutant in MUTANTS}) == len(MUTANTS)
