"""Time of the tokenizer per character, compared with bert4keras' and with the Rust library's own pipeline.

    python benchmarks/tokenizer_speed.py vocab.txt text.txt [--lines 4000] [--rounds 5]

`text.txt` holds one text per line (`--joined` removes blanks between words). bert4keras runs under the
interpreter named by BERT4KERAS_PYTHON (default: .venv-bert4keras next to the package). Each round runs every contender
once, in turn; the best round counts. Times are processor times, so other load on the machine matters less.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BERT4KERAS = os.environ.get("BERT4KERAS_PYTHON", str(ROOT / ".venv-bert4keras/bin/python"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocab")
    parser.add_argument("text")
    parser.add_argument("--lines", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--joined", action="store_true")
    parser.add_argument("--host", default="kcrf", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host == "bert4keras":
        print(json.dumps(measured(bert4keras(options), options)))
        return
    results = measured(ours(options), options) | measured_under_bert4keras()
    slowest = results.get("bert4keras encode, one by one")
    for name, nanoseconds in results.items():
        times = f"{slowest / nanoseconds:6.1f} x bert4keras" if slowest else ""
        print(f"{name:40s}{nanoseconds:8.1f} ns a character {times}")


def measured(contenders, options):
    """The best time of each contender in nanoseconds a character, all of them in turn in every round."""
    texts = read(options)
    characters, best = sum(map(len, texts)), dict.fromkeys(contenders, float("inf"))
    for _ in range(options.rounds + 1):  # the first one warms up
        for name, work in contenders.items():
            start = time.process_time()
            work(texts)
            best[name] = min(best[name], (time.process_time() - start) * 1e9 / characters)
    return best


def read(options):
    lines = Path(options.text).read_text(encoding="utf-8").splitlines()[: options.lines]
    return [(line.replace(" ", "") if options.joined else line)[:510] for line in lines if line.strip()]


def ours(options):
    sys.path.insert(0, str(ROOT))
    from kcrf.tokenizers import Tokenizer

    tokenizer = Tokenizer(options.vocab, do_lower_case=True)
    return {
        "kcrf encode_batch, all at once": tokenizer.encode_batch,
        "kcrf encode_batch, 32 texts": lambda ts: [
            tokenizer.encode_batch(ts[i : i + 32]) for i in range(0, len(ts), 32)
        ],
        "kcrf encode, one by one": lambda texts: [tokenizer.encode(text) for text in texts],
        "tokenizers, BERT's pipeline, a batch": library(options),
    }


def library(options):
    """The Rust library alone with its own normalizer, whose results differ in rare characters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    from kcrf.tokenizers import load_vocab

    tokenizer = Tokenizer(models.WordPiece(load_vocab(options.vocab), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(texts)]


def bert4keras(options):
    from bert4keras.tokenizers import Tokenizer

    tokenizer = Tokenizer(options.vocab, do_lower_case=True)
    return {"bert4keras encode, one by one": lambda texts: [tokenizer.encode(text) for text in texts]}


def measured_under_bert4keras():
    if not Path(BERT4KERAS).exists():
        return {}
    hosts = {"TF_KERAS": "1", "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [BERT4KERAS, "-W", "ignore", __file__, *sys.argv[1:], "--host", "bert4keras"]
    done = subprocess.run(command, env={**os.environ, **hosts}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
