"""The code of the README prints what its comments say, and stands in the Chinese one, too."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BACKENDS = ["tensorflow", "torch", "jax"]  # TensorFlow trains an LSTM fastest

CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.once
def test_the_code_of_the_readme_prints_what_its_comments_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tagger, segmenter = CODE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    exec(tagger, {"__name__": "__main__"})
    assert score_in(capsys.readouterr().out) == pytest.approx(score_in(tagger), abs=0.02)
    exec(segmenter, {"__name__": "__main__"})
    promised = re.findall(r"# (\[.*\])$", segmenter, re.MULTILINE)
    assert len(promised) == 2 and capsys.readouterr().out.splitlines()[-2:] == promised


def score_in(text):
    """The F1 in the last line: printed, or in the comment that says what is printed."""
    return float(re.fullmatch(r".*Held-out F1: (0\.\d\d)", text.splitlines()[-1])[1])


@pytest.mark.once
def test_the_readme_in_chinese_has_the_same_code():
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")]
    ours, theirs = ([ast.dump(ast.parse(code)) for code in CODE.findall(text)] for text in texts)
    assert ours == theirs
