"""The code of the README prints what its comments say, and stands in the Chinese one, too."""

import ast
import re
from pathlib import Path

import pytest

from kcrf.metrics import segmentation_scores
from kcrf.taggers import WordSegmenter
from kcrf.tags import tags_to_words

ROOT = Path(__file__).parents[2]
BACKENDS = ["tensorflow", "torch", "jax"]  # TensorFlow trains an LSTM fastest

CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.once
def test_the_code_of_the_readme_does_what_the_readme_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tagger, segmenter = CODE.findall(text)
    names = {"__name__": "__main__"}
    exec(tagger, names)
    sentences = names["corpus"].test
    found = [tags_to_words("".join(words), path[path >= 0]) for words, path in zip(sentences, names["paths"])]
    promised = float(re.search(r"F1 on the test set is about (0\.\d\d)\.", text)[1])
    assert segmentation_scores(sentences, found)["f"] == pytest.approx(promised, abs=0.02)
    exec(segmenter, {"__name__": "__main__"})
    promised = re.findall(r"# (\[.*\])$", segmenter, re.MULTILINE)
    assert len(promised) == 2 and capsys.readouterr().out.splitlines()[-2:] == promised


@pytest.mark.once
def test_the_first_command_line_of_the_readme(capsys):
    """`echo 研究生命的起源 | kcrf segment     # 研究 生命 的 起源`"""
    text, words = re.search(
        r"^echo (\S+) \| kcrf segment +# (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE
    ).groups()
    assert WordSegmenter().segment(text) == words.split()


@pytest.mark.once
def test_the_readme_in_chinese_has_the_same_code():
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")]
    ours, theirs = ([ast.dump(ast.parse(code)) for code in CODE.findall(text)] for text in texts)
    assert ours == theirs
