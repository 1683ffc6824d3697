"""kcrf pretrain: pretrains a BERT on unlabeled text."""

import os
import shlex
from argparse import Namespace

from kcrf.commands.parsers import CommandParser, declare
from kcrf.commands.quiet import quiet_import
from kcrf.commands.training_options import add_settings, given_settings, refuse_beside_resume
from kcrf.runs.pretraining import PRETRAINING_FIELDS, PRETRAINING_RULES, PretrainingSettings

_USAGE = """kcrf pretrain --text FILE [FILE ...] --out FOLDER [OPTION ...]
       kcrf pretrain --resume FOLDER"""
EPILOG = """FILE is UTF-8 text: one sentence, paragraph or document per line. Defaults are in square brackets.

examples:
  kcrf pretrain --text news.txt --out pretrained/news
  kcrf pretrain --text notes.txt --bert chinese_L-12_H-768_A-12 --mask words --out pretrained/notes
  kcrf train --train words.txt --bert pretrained/news --out runs/words
  kcrf pretrain --resume pretrained/news"""
_OPTIONS = """
--text FILE+     Files with the text. They may be larger than memory.
--out FOLDER     Folder for the model: a new or an empty one.
--resume FOLDER  Resume an interrupted pretraining from its last saved state. Takes no other option.
"""


def add_options(parser: CommandParser) -> None:
    parser.usage = _USAGE
    model = add_settings(parser, PRETRAINING_FIELDS, PRETRAINING_RULES)["model"]
    declare(model, _OPTIONS)


def run(options: Namespace) -> None:
    if options.resume is not None:
        refuse_beside_resume(options, PRETRAINING_FIELDS, ("text", "out"))
    elif absent := [f"--{name}" for name in ("text", "out") if getattr(options, name) is None]:
        raise ValueError(f"needs {' and '.join(absent)}, or --resume FOLDER")
    out, settings = options.resume or options.out, PretrainingSettings(**given_settings(options, PRETRAINING_FIELDS))
    try:
        with quiet_import():
            from kcrf.pretraining import pretrain, resume_pretraining
            from kcrf.training.progress import TrainingProgress

        progress = TrainingProgress("pretraining")
        resumes = options.resume is not None
        log = resume_pretraining(out, progress) if resumes else pretrain(settings, options.text, out, progress)
    except KeyboardInterrupt:
        begun = os.path.exists(os.path.join(out, "pretraining", "about.json"))
        hint = f"continue with: kcrf pretrain --resume {shlex.quote(str(out))}"
        raise KeyboardInterrupt(hint if begun else "") from None
    best = min(log, key=lambda record: record["valid_loss"])
    print(
        f"{out}: validation loss {best['valid_loss']:.4f}, accuracy {best['valid_accuracy']:.4f} at step "
        f"{best['step']:,}"
    )
