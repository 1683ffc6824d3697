"""Pretrains a masked language model on unlabeled text, from scratch or from a BERT, and resumes pretraining."""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf import checkpoints
from kcrf.backend import backend_name, keras, set_random_seed
from kcrf.checkpoints.configs import encoder_settings
from kcrf.corpora.lines import check_is_file
from kcrf.extras import needs_extra
from kcrf.files import read_json
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.models.encoders import encoder_record
from kcrf.optimizers import AdamWeightDecay
from kcrf.pretraining.batches import MaskedBatches, masked_language_model, start_positions
from kcrf.pretraining.folder import PretrainingFolder
from kcrf.pretraining.windows import Windows, iterate_lines, learn_vocabulary, word_splitter, write_tokens
from kcrf.progress_bars import bar, print_note
from kcrf.readers import PieceReader
from kcrf.readers.pieces import EncoderReader
from kcrf.runs import RunWriter
from kcrf.runs.formats import log_text
from kcrf.runs.lock import locked
from kcrf.runs.names import LOG
from kcrf.runs.pretraining import PretrainingSettings
from kcrf.taggers.encoder_of_run import open_bert, reader_of
from kcrf.tasks import SettingError
from kcrf.training.callbacks import EpochBatches, Interruption
from kcrf.training.history import TrainingHistory
from kcrf.training.progress import fit_with_progress
from kcrf.training.rates import learning_rate, precision
from kcrf.training.state import load_history, load_state, save_state

_MOST_EPOCHS = 200  # if the user does not set `steps`
HELD_OUT = 500  # windows of the validation set; a twentieth if there are fewer than 10,000 windows
_HEAD = "cls/predictions"
_DROPOUT = ("dropout_rate", "attention_dropout_rate")


def pretrain(
    settings: PretrainingSettings, texts: Iterable[str | PathLike[str]], out: str | PathLike[str], progress: Any = None
) -> list[dict[str, Any]]:
    """Pretrains a masked language model.

    `build_transformer_model`, `kcrf train --bert` and Hugging Face's `transformers` load the model.
    The text is split into full windows. A twentieth of the windows, at most 500, is the validation set. The weights
    with the lowest validation loss are kept. The folder `pretraining` inside `out` contains the log. Until pretraining
    is complete, it also contains the tokens of the text and the state for `resume_pretraining`.

    Args:
        settings: `PretrainingSettings`.
        texts: Paths of UTF-8 files: sentences, paragraphs or documents, one per line. They may be larger than memory.
        out: The folder of the model. It is created if it does not exist.
        progress: A Keras callback that shows progress. Its method `report(record)` is called after each evaluation.
            Defaults to None.

    Returns:
        The log: a list of dicts with `step`, `loss` and `accuracy` of the masked tokens, `valid_loss` and
        `valid_accuracy` on the validation set, and `seconds`.

    Raises:
        FileExistsError: `out` is not empty.
        FileNotFoundError: A file of the text or of the BERT does not exist.
        BlockingIOError: Another process writes into `out`.
        ImportError: Without tokenizers for a new vocabulary, jieba for Chinese words or TensorFlow for Google's format.
        TypeError: `texts` is a path.
        ValueError: The text is too short, a line is not UTF-8, or the loss is no longer finite.
    """
    if isinstance(texts, (str, PathLike)):
        raise TypeError(f"`texts` must be a list of files. Received: {str(texts)!r}")
    folder = PretrainingFolder(out)
    folder.check_is_free()
    if settings.google_checkpoint:
        with needs_extra("tensorflow", "`google_checkpoint`"):
            import_module("tensorflow")
    given_steps, settings, paths = settings.steps, settings.completed(), [Path(path).absolute() for path in texts]
    for path in paths:
        check_is_file(path)
    with locked(folder.path):
        folder.work.path.mkdir(exist_ok=True)
        try:
            return _run(folder, settings, _prepare(folder, settings, paths), progress, given_steps is not None)
        except Exception:  # not KeyboardInterrupt: an interrupted run is kept and can be resumed
            if not folder.has_weights():
                folder.remove()
            raise


def resume_pretraining(out: str | PathLike[str], progress: Any = None) -> list[dict[str, Any]]:
    """Resumes an interrupted `pretrain` from its last saved state. On a CPU, the resulting weights are the same.

    Args:
        out, progress: As for `pretrain`.

    Returns:
        As `pretrain`.

    Raises:
        FileNotFoundError: `out` contains no interrupted pretraining.
        BlockingIOError: The process of the pretraining is still running.
        ValueError: The Keras backend has changed, or a file is damaged.
    """
    folder = PretrainingFolder(out)
    if not folder.has_begun():
        raise FileNotFoundError(f"{out}: needs a pretraining that was interrupted. Received: a folder without one")
    with locked(folder.path):
        if folder.is_complete():
            folder.clear()
            raise FileNotFoundError(f"{out}: needs a pretraining that was interrupted. Received: one that is complete")
        about = folder.read_about()
        if about["backend"] != backend_name():
            raise ValueError(
                f"{out}: needs the backend that it began with: KERAS_BACKEND={about['backend']}. "
                f"Received: {backend_name()}"
            )
        settings = PretrainingSettings(**about["settings"])
        reader = folder.read_tokenizer(about["config"])
        return _run(folder, settings, reader, progress)


def _prepare(folder: PretrainingFolder, settings: Any, texts: list[Path]) -> EncoderReader:
    """Writes the tokens, the vocabulary and the settings into the folder, for `_run`. Returns the reader."""
    reader = _make_reader(settings, texts)
    lines, split_words = _shown(iterate_lines(texts), "lines"), None if settings.mask == "tokens" else word_splitter()
    count = write_tokens(folder.tokens, lines, reader, split_words)
    if count < 2 * settings.length:
        raise ValueError(f"Pretraining needs a text of at least {2 * settings.length} tokens. Received: {count}")
    folder.save_tokenizer(reader)
    about = {"settings": asdict(settings), "texts": list(map(str, texts)), "backend": backend_name()}
    folder.save_about({**about, "config": reader.config, "is_complete": False})
    return reader


def _shown(lines: Iterable[str], title: str) -> Iterator[str]:
    with bar() as shown:
        yield from shown.track(lines, description=title)


def _make_reader(settings: Any, texts: list[Path]) -> EncoderReader:
    """The reader of the BERT, or a new reader with a vocabulary learned from the text."""
    if settings.bert is not None:
        reader = reader_of(settings.bert, lower_case=settings.lower_case)
        _check_bert(settings, reader)
        return reader
    pipe = next((path for path in texts if not path.is_file()), None)
    if pipe is not None:
        raise ValueError(f"{pipe}: needs a regular file for a new vocabulary. Received: a pipe")
    vocabulary = learn_vocabulary(_shown(iterate_lines(texts), "vocabulary"), settings.vocab_size, settings.lower_case)
    config = {
        "model_type": "bert",
        "vocab_size": len(vocabulary),
        "hidden_size": settings.width,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.width // 64,
        "intermediate_size": 4 * settings.width,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": settings.positions or settings.length,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
    }
    return PieceReader(config, {token: number for number, token in enumerate(vocabulary)}, settings.lower_case)


def _check_bert(settings: Any, reader: EncoderReader) -> None:
    """Raises ValueError if a BERT cannot predict masked tokens, or cannot read windows of this length."""
    if "transformers" in reader.config:
        kind = reader.config["model_type"]
        raise ValueError(f"{settings.bert}: needs an encoder with layers in kcrf to pretrain. Received: {kind!r}")
    if reader.config.get("model_type") == "electra":
        raise ValueError(f"{settings.bert}: needs a model that predicts hidden tokens. Received: an ELECTRA")
    if "mask" not in reader.ids:
        raise ValueError(f"{settings.bert}: needs a mask token, as [MASK]. Received: {reader.size} others")
    if settings.length > reader.positions:
        needed = f"must be at most {reader.positions}, the positions of {settings.bert}"
        raise SettingError("length", needed, settings.length)


def _run(
    folder: PretrainingFolder, settings: Any, reader: EncoderReader, progress: Any, any_steps: bool = True
) -> list[dict[str, Any]]:
    """Trains to the end. Returns the log. Without `any_steps`, many epochs over a short text are refused."""
    set_random_seed(settings.seed)
    windows = Windows(folder.tokens, settings.length, reader.ids["start"], reader.ids["pad"])
    train, valid = _split(len(windows))
    every = min(settings.every, settings.steps)
    rounds = math.ceil(settings.steps / every)
    batches = MaskedBatches(windows, train, settings, reader, every * settings.accumulate)
    held_out = MaskedBatches(windows, valid, settings, reader)
    if not any(held_out[step][-1].any() for step in range(len(held_out))):
        raise ValueError("Pretraining needs known tokens. Received: a text whose tokens are nearly all unknown")
    resumes = folder.work.has_state()  # then the folder of the BERT is no longer needed
    epochs = rounds * len(batches) * settings.batch_size / len(train)
    if epochs > _MOST_EPOCHS and not any_steps:
        requirement = f"is needed for so little text: the default, {settings.steps:,}, is {epochs:,.0f} epochs over it"
        raise SettingError("steps", requirement, f"{len(train):,} windows of {settings.length} tokens")
    if progress:
        print_note(
            f"{len(train):,} windows of {settings.length} tokens, {len(valid)} windows in the validation set: "
            f"{rounds * every:,} steps, {epochs:.1f} epochs"
        )
    with precision(settings.precision):
        transformer = _build(settings, reader, folder.path if resumes else settings.bert)
        model = masked_language_model(transformer)
    _compile(model, settings, rounds * every)
    history = TrainingHistory(rounds, settings.patience, "valid_loss", least=True)
    state = load_history(folder.work, history)
    random = load_state(folder.work.path, state, model) if state else None
    with Interruption() as interruption:
        if not history.is_done():
            rounds_done = RoundEnd(folder, transformer.model, history, every, progress)
            callbacks = [EpochBatches(batches, random), rounds_done, *([progress] if progress else []), interruption]
            fit_with_progress(model, batches, rounds, len(history.rows), callbacks, progress, held_out)
    if settings.google_checkpoint:
        transformer.load_weights_from_checkpoint(folder.path)  # the best weights; the last ones are in memory
        transformer.save_weights_as_checkpoint(folder.path / "bert_model.ckpt")
        RunWriter(folder.path).save_json("bert_config.json", read_json(folder.path / "config.json"))
    folder.save_about({**folder.read_about(), "is_complete": True})
    folder.clear()
    return history.rows


def _split(count: int) -> tuple[np.ndarray, np.ndarray]:
    held_out = np.unique(np.linspace(0, count - 1, min(HELD_OUT, max(1, count // 20)) + 2).astype(int)[1:-1])
    return np.setdiff1d(np.arange(count), held_out), held_out


def _build(settings: Any, reader: EncoderReader, bert: Any) -> Any:
    """The `Transformer` with its head. If a BERT's checkpoint lacks them, the head is new and the pooler is omitted."""
    model = reader.config.get("model_type", "bert")
    if bert is None:
        transformer = _transformer(settings, reader.config, model)
        start_positions(transformer)
        return transformer
    with open_bert(bert) as path:
        names = checkpoints.google_names(checkpoints.open_checkpoint(path), model)
        pooler = any("pooler" in name for name in names)
        transformer = _transformer(settings, reader.config, model, with_pool=pooler)
        has_head = any(name.startswith(_HEAD) for name in names)
        transformer.load_weights_from_checkpoint(path, skip=() if has_head else ("^MLM-",))
        return transformer


def _transformer(settings: Any, config: dict[str, Any], model: str, **options: Any) -> Any:
    rates: dict[str, Any] = {} if settings.dropout is None else dict.fromkeys(_DROPOUT, settings.dropout)
    options |= {"with_mlm": "linear", "return_keras_model": False}
    transformer = build_transformer_model(config, model=model, **rates, **options)
    configured = encoder_settings(config, model, {})
    encoder_record(transformer.model).config |= {name: configured[name] for name in rates}
    return transformer


def _compile(model: Any, settings: Any, updates: int) -> None:
    rate = learning_rate(settings.learning_rate, settings.schedule, settings.warmup, updates)
    optimizer = AdamWeightDecay(
        rate,
        weight_decay_rate=settings.weight_decay,
        exclude_from_weight_decay=("Norm", "bias"),
        global_clipnorm=1.0,
        gradient_accumulation_steps=settings.accumulate if settings.accumulate > 1 else None,
    )
    model.compile(
        optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight"),
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )


class RoundEnd(keras.callbacks.Callback):
    """Logs an evaluation, keeps the encoder with the lowest validation loss, saves the state, and stops training."""

    def __init__(
        self, folder: PretrainingFolder, encoder: Any, history: TrainingHistory, every: int, progress: Any
    ) -> None:
        super().__init__()
        self._folder, self._encoder, self._history = folder, encoder, history
        self._every, self._progress = every, progress

    def on_train_begin(self, logs: Any = None) -> None:
        self._start = time.perf_counter() - self._history.seconds()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        record: dict[str, Any] = {"epoch": epoch + 1, "step": (epoch + 1) * self._every}
        for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
            record[name.replace("val_", "valid_")] = round(float(logs[name]), 6)
        record["seconds"] = round(time.perf_counter() - self._start, 1)
        if not math.isfinite(record["loss"]):
            raise ValueError(f"Pretraining needs a finite loss; use a lower learning rate. Received: {record['loss']}")
        if self._history.add(record):
            save_pretrained(self._encoder, self._folder.path)
        self._folder.work.save_text(LOG, log_text(self._history.rows))
        save_state(self._folder.work, self.model, self._history)
        if self._progress:
            self._progress.report(record)
        self.model.stop_training = self._history.is_done()
