"""Sets of characters, by script."""

import re

# Chinese, Japanese, Thai, Lao, Burmese, Khmer: the inside of a set of characters in a regular expression.
WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u3000\u3003-\u3007\u3021-\u30ff\u3105-\u312f\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
CJK = re.compile(  # Chinese and Japanese, their punctuation and full-width forms
    "[\u2e80-\u30ff\u3105-\u312f\u31f0-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
