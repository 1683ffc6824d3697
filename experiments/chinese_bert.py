r"""The pretraining text of a small Chinese BERT: the corpora without the sentences of their test sets.

    python experiments/chinese_bert.py --data FOLDER --out runs/chinese/text.txt
    kcrf pretrain --text runs/chinese/text.txt --out runs/chinese/short --length 16 --positions 128 --batch-size 128 \
        --learning-rate 1e-3 --schedule constant --steps 4000 --dropout 0 --precision bfloat16
    kcrf pretrain --text runs/chinese/text.txt --bert runs/chinese/short --out runs/chinese/long --length 128 \
        --batch-size 16 --learning-rate 5e-4 --steps 8000 --dropout 0 --precision bfloat16
    kcrf pretrain --text runs/chinese/text.txt --bert runs/chinese/long --out runs/chinese/longer --length 128 \
        --batch-size 16 --learning-rate 5e-4 --steps 12000 --dropout 0 --precision bfloat16
    kcrf pretrain --text runs/chinese/text.txt --bert runs/chinese/longer --out runs/chinese/longest --length 128 \
        --batch-size 16 --learning-rate 5e-4 --steps 16000 --dropout 0 --precision bfloat16

experiments/chinese_bert.json contains the logs of all four stages, `pretraining/log.csv`. On one core of a Xeon with
AMX and other load, the stages took 28, 46, 72 and 90 minutes; the last stage was stopped after 6,000 steps and resumed.
The logs of an earlier attempt, with dropout and twice the batch size in the second stage, are there too. Its two stages
took 57 and 162 minutes on one core of an EPYC.

FOLDER contains the corpora in TEXTS and TESTS. A sentence ends with 。, ！, ？, ； or its line. Sentences of SHORTEST
characters or more that also occur in a test set, of any corpus, are removed from their line. Labels, spaces between
words and repeated lines are removed too.
"""

import argparse
import re
from pathlib import Path

TEXTS = (
    "cws/pfr199801-02/all.utf8",
    "cws/ud_gsd/train.conll",
    "ner/people_daily/example.train",
    "ner/weibo/weiboNER_2nd_conll.train",
    "classification/ChnSentiCorp/train.tsv",
)
TESTS = (
    "cws/sighan2005/pku_test_gold.utf8",
    "cws/sighan2005/msr_test_gold.utf8",
    "cws/ud_gsd/test.conll",
    "ner/people_daily/example.test",
    "ner/weibo/weiboNER_2nd_conll.test",
    "classification/ChnSentiCorp/test.tsv",
)
SHORTEST = 8  # characters; shorter ones, such as greetings, stand everywhere
SENTENCE = re.compile(r"[^。！？；]+[。！？；]*")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    tested = {sentence for name in TESTS for text in read(options.data / name) for sentence in sentences(text)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", encoding="utf-8") as out:
        for name in TEXTS:
            texts = dict.fromkeys(read(options.data / name))
            lines = ["".join(part for part in sentences(text) if not is_tested(part, tested)) for text in texts]
            out.writelines(f"{line}\n" for line in lines if line)
            left_out = sum(map(len, texts)) - sum(map(len, lines))
            print(f"{name}: {sum(map(len, lines)):,} characters, {left_out:,} left out")


def read(path):
    """The texts of a file, without blanks and labels."""
    from kcrf.corpora import read_conll, read_lines, read_segmented

    if path.name.endswith(".tsv"):
        texts = (max(line.split("\t"), key=len) for line in read_lines(path))  # the other cells: label, number
        return ["".join(text.split()) for text in texts]
    if "ud_gsd" in path.parts or path.suffix == ".utf8":
        return ["".join(words) for words in read_segmented(path)]
    return ["".join(sentence.text.split()) for sentence in read_conll(path, repair=True)]


def sentences(text):
    return SENTENCE.findall(text)


def is_tested(sentence, tested):
    return len(sentence) >= SHORTEST and sentence in tested


if __name__ == "__main__":
    main()
