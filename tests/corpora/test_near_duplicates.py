"""kcrf.corpora.splits: Near-duplicates, by their definition."""

from hypothesis import given
from hypothesis import strategies as st

from kcrf.corpora.splits import NearDuplicates

BACKENDS = ["torch"]
TEXTS = st.lists(st.text("aAb 中", max_size=12), max_size=8)


def grams(text):
    text = "".join(c.lower() for c in text if not c.isspace())
    return {text[i : i + 3] for i in range(len(text) - 2)} or {text}


@given(TEXTS, st.text("aAb 中", max_size=12))
def test_half_of_the_trigrams_are_shared(texts, text):
    is_near = any(2 * len(grams(text) & grams(other)) >= len(grams(text) | grams(other)) for other in texts)
    assert (text in NearDuplicates(texts)) == is_near


def test_texts_that_are_added_count():
    seen = NearDuplicates()
    assert "今天天气真好" not in seen
    seen.add("今天天气真好")
    assert "今天 天气真好。" in seen
    assert "今天下雨" not in seen
