"""A Keras callback that shows whether a CRF layer learns, and what to do about its learning rate."""

import csv as csv_files
import io
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf import crf
from kcrf.backend import JIT_PAYS_FOR_INFERENCE, keras, ops, path_of
from kcrf.extras import needs_extra
from kcrf.files import write_aside
from kcrf.layers import ConditionalRandomField, suggest_lr_multiplier
from kcrf.layers.chain_layer import real_positions
from kcrf.layers.checks import check_compiled, flat, warn_of_padding, warn_of_probabilities
from kcrf.metrics import advice, transition_report
from kcrf.metrics.transitions import is_forbidden
from kcrf.optimizers.variables import PathAware
from kcrf.reports import transition_heat_map
from kcrf.tags import TagScheme

__all__ = ["CRFMonitor"]

MOST_SENTENCES = 256
BATCH_SIZE = 32


class CRFMonitor(keras.callbacks.Callback):
    """Measures a CRF layer after every epoch of `fit`, and advises in one sentence what to do.

    If the learning rate of a CRF is too low, its transitions keep their initial values. Loss and accuracy do not show
    this. To change a tag, a transition must be larger than the gap between the two largest emission scores of a token.
    The monitor compares the transitions with this gap, and counts how often the transitions change a tag. If the
    learning rate is too high, the best paths have fewer correct tags than the largest emissions. If `data` contains
    tags, the monitor compares these accuracies.

    The monitor warns (`UserWarning`) if `data` look padded and the layer has no mask, or emissions are probabilities.

    Args:
        layer: A built or unbuilt `kcrf.layers.ConditionalRandomField`, or any layer with a matrix `trans`, a number
            `lr_multiplier` and emissions as outputs, such as the CRF of bert4keras.
        data: The inputs of the validation set: an array, or a list or dict of arrays; or a tuple `(inputs, tags)` with
            the tags `(sentences, time)`, negative if unknown. The monitor uses the first 256 sentences.
        scheme: The `kcrf.tags.TagScheme` that defines the legal transitions. Defaults to the constraints of the layer;
            without either, illegal transitions are not counted.
        log_dir: Folder for TensorBoard, with scalars and a heat map for each epoch. Needs TensorFlow and matplotlib.
            Defaults to None: off.
        csv: CSV file with a row for each epoch. Defaults to None: off.
        heat_maps: Folder for images of the transitions, `epoch-001.png`, ... Needs matplotlib. Defaults to None: off.
        verbose: If 1, prints the measurements and the advice after every epoch; 0 prints nothing. Defaults to 1.

    Attributes:
        history: A dict for each epoch: `epoch` (from 1), `transition_size` (standard deviation), `emission_gap` (median
            difference between the two largest scores of a token), `transition_change` (standard deviation of the change
            since the first `fit` began), `illegal_above_legal` and `illegal` (with a scheme), `viterbi_differs`
            (fraction of tokens whose tag on the best path does not have the largest emission), with tags
            `argmax_accuracy`, `viterbi_accuracy` and `one_tag_accuracy` (of the most frequent tag), the current
            `learning_rate` and the highest one of this `fit`, `highest_learning_rate`, `lr_multiplier` (of the layer,
            times the optimizer's), `suggested_lr_multiplier`, and `advice`, a sentence: see
            `kcrf.metrics.advice`.
        transitions: The transition matrix after each epoch, NumPy `(tags, tags)`.

    All numbers except `epoch` and `illegal` are also added to the `logs` of Keras. `fit` returns them in its history,
    and the callbacks after this one (CSVLogger, TensorBoard, EarlyStopping) receive them.

    Raises:
        ImportError: `log_dir` without TensorFlow, or `log_dir` or `heat_maps` without matplotlib.
        ValueError: The layer has no `trans` or `lr_multiplier`, or `data` has no sentences or another form; or in
            `fit`: the model does not have the layer or does not output its emissions, or has another number of inputs;
            the scheme or the tags do not fit its number of tags, or the model has a loss of Keras or of another CRF.

    >>> layer = ConditionalRandomField(lr_multiplier=100)                             # doctest: +SKIP
    >>> monitor = CRFMonitor(layer, (valid_words, valid_tags), scheme=bmes())         # doctest: +SKIP
    >>> model.fit(words, tags, epochs=3, callbacks=[monitor, CSVLogger("log.csv")])   # doctest: +SKIP
    epoch 1: transitions 0.62, emission gap 3.21, illegal above legal 4 of 8, Viterbi differs from argmax at 0.4% ...
    """

    def __init__(
        self,
        layer: Any,
        data: Any,
        scheme: TagScheme | None = None,
        log_dir: str | PathLike[str] | None = None,
        csv: str | PathLike[str] | None = None,
        heat_maps: str | PathLike[str] | None = None,
        verbose: int = 1,
    ) -> None:
        super().__init__()
        if not hasattr(layer, "lr_multiplier") or not hasattr(type(layer), "trans") and not hasattr(layer, "trans"):
            raise ValueError(f"`layer` needs `trans` and `lr_multiplier`, as a CRF layer has them. Received: {layer!r}")
        if isinstance(data, tuple) and len(data) != 2:
            raise ValueError(f"`data` must be inputs, or a tuple (inputs, tags). Received: a tuple of {len(data)}")
        inputs, tags = data if isinstance(data, tuple) else (data, None)
        self._inputs = _first_sentences(inputs)
        if not all(len(part) for part in flat(self._inputs)):
            raise ValueError("`data` needs at least one sentence. Received: none")
        self._tags = None if tags is None else _array(tags)[:MOST_SENTENCES]
        if self._tags is not None and self._tags.ndim != 2:
            raise ValueError(f"`data` needs tags of shape (sentences, time). Received: shape={self._tags.shape}")
        self._layer, self._scheme = layer, scheme or getattr(layer, "constraints", None)
        self._csv, self._heat_maps = (Path(path) if path else None for path in (csv, heat_maps))
        self._verbose = verbose
        self._board = _Board(log_dir) if log_dir else None
        if heat_maps or log_dir:
            transition_heat_map({"": np.zeros((1, 1))}, None, io.BytesIO())  # raises now, not after an epoch
        self.history, self.transitions, self._first = [], [], None

    def on_train_begin(self, logs: Any = None) -> None:
        """Makes the model that gives the emissions; called by Keras."""
        check_compiled(self.model)
        _check_is_trained(self.model, self._layer)
        expected, given = getattr(self.model, "inputs", None), flat(self._inputs)
        if expected and not isinstance(self._inputs, dict) and len(given) != len(expected):
            raise ValueError(
                f"`data` needs as many arrays as the model has inputs, {len(expected)}; inputs with tags are a tuple "
                f"(inputs, tags). Received: {len(given)} arrays"
            )
        if self._layer.built:
            self._check_tags(len(self._scores()))
        self._emissions = _model_of_emissions(self.model, self._layer)
        self._updates_before, self._epochs_before = self._updates(), len(self.history)
        self._steps, self._highest_rate = None, 0.0
        if self._first is None and self._layer.built:
            self._first = self._scores()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Measures, prints and writes; called by Keras."""
        last = self.history[-1]["epoch"] if self.history else 0
        record = {"epoch": max(epoch, last) + 1}  # with `fit(epochs=1)` in a loop, `epoch` is always 0
        self.transitions.append(self._scores())
        record.update(self._measure())
        record.update(self._rates())
        if logs is not None:
            logs.update({name: value for name, value in record.items() if name not in ("epoch", "illegal")})
        record["advice"] = advice(record)
        self.history.append(record)
        if self._verbose:
            print(_line(record), flush=True)
        self._write(record)

    def _check_tags(self, count: int) -> None:
        """Raises ValueError if the scheme or the tags do not fit the number of tags of the layer."""
        if self._scheme is not None and len(self._scheme) != count:
            raise ValueError(f"`scheme` must have the {count} tags of the layer. Received: {self._scheme.labels}")
        if self._tags is not None and self._tags.size and self._tags.max() >= count:
            raise ValueError(f"`data` needs tags below {count}, the number of tags. Received: {self._tags.max()}")

    def _scores(self) -> Any:
        return np.array(ops.convert_to_numpy(self._layer.trans))

    def _emissions_and_mask(self) -> tuple[np.ndarray, np.ndarray]:
        """The emissions, `(batch, time, tags)`, and which positions are real, `(batch, time)`, both checked."""
        self._check_tags(len(self.transitions[-1]))
        emissions = self._emissions.predict(self._inputs, batch_size=BATCH_SIZE, verbose=0)
        if np.ndim(emissions) != 3 or emissions.shape[-1] != len(self.transitions[-1]):
            raise ValueError(
                f"`CRFMonitor` needs a model that gives the emissions of `{self._layer.name}`, (batch, time, "
                f"{len(self.transitions[-1])}). Received: outputs of shape {np.shape(emissions)}"
            )
        if self._tags is not None and self._tags.shape != emissions.shape[:2]:
            raise ValueError(
                f"`data` needs a tag, or -1, for each of {emissions.shape[:2]} (sentences, time). "
                f"Received: shape={self._tags.shape}"
            )
        real = ops.convert_to_numpy(real_positions(emissions))
        if not real.any():
            raise ValueError(f"`data` needs a token that is not masked. Received: {len(real)} sentences without any")
        if isinstance(self._layer, ConditionalRandomField):
            if real.all():
                warn_of_padding(self._layer, self._inputs, self._tags)
            warn_of_probabilities(self._layer, emissions[real])
        return emissions, real

    def _measure(self) -> dict[str, Any]:
        """The numbers of an epoch that describe transitions, emissions and tags."""
        emissions, real = self._emissions_and_mask()
        if hasattr(self._layer, "decode"):
            decoded = ops.convert_to_numpy(self._layer.decode(emissions))  # (batch, time)
        else:
            decoded = ops.convert_to_numpy(crf.viterbi(emissions, real, self._layer.trans))
        report = transition_report(self.transitions[-1], self._scheme, emissions[real], decoded[real])
        measures = {"transition_size": report["size"], "emission_gap": report["gap"]}
        measures["viterbi_differs"] = report["differs"]
        if self._first is not None:
            change = (self.transitions[-1] - self._first)[~is_forbidden(self._first)]  # (allowed transitions,)
            measures["transition_change"] = float(np.std(change, dtype="float64"))
        measures.update({name: report[name] for name in ("illegal_above_legal", "illegal") if name in report})
        if self._tags is not None and (labeled := real & (self._tags >= 0)).any():
            gold = self._tags[labeled]
            paths = {"argmax_accuracy": np.argmax(emissions, axis=-1), "viterbi_accuracy": decoded}
            measures.update({name: float(np.mean(path[labeled] == gold)) for name, path in paths.items()})
            measures["one_tag_accuracy"] = float(np.bincount(gold.astype("int64")).max() / len(gold))
        return measures

    def _rates(self) -> dict[str, Any]:
        """The current rates, and the multiplier that is suggested for as many updates as `fit` will make."""
        layer = self._layer
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)  # mixed_float16 wraps it
        epochs = len(self.history) - self._epochs_before + 1
        steps = max(1, (self._updates() - self._updates_before) // epochs * self.params["epochs"])
        rate = optimizer.learning_rate
        rate = rate(optimizer.iterations) if callable(rate) else rate  # legacy optimizers return the schedule
        rate = float(ops.convert_to_numpy(rate))
        if steps != self._steps:  # the highest rate of a schedule takes a hundred calls
            self._steps, self._highest_rate = steps, max(self._highest_rate, _highest_rate(optimizer, steps))
        self._highest_rate = highest = max(self._highest_rate, rate)
        present = float(layer.lr_multiplier) * _factor_of(optimizer, self.model, layer)
        return {
            "learning_rate": rate,
            "highest_learning_rate": highest,
            "lr_multiplier": present,
            "suggested_lr_multiplier": suggest_lr_multiplier(highest, steps) if highest else present,
        }

    def _updates(self) -> int:
        return int(ops.convert_to_numpy(self.model.optimizer.iterations))

    def _write(self, record: dict[str, Any]) -> None:
        name = f"epoch-{record['epoch']:03}.png"
        if self._csv:
            text = io.StringIO(newline="")
            writer = csv_files.DictWriter(text, self.history[0])
            writer.writeheader()
            writer.writerows(self.history)
            self._csv.parent.mkdir(parents=True, exist_ok=True)
            write_aside(self._csv, lambda aside: aside.write_bytes(text.getvalue().encode("utf-8")))
        if not (self._heat_maps or self._board):
            return
        picture = io.BytesIO()
        transition_heat_map({f"epoch {record['epoch']}": self.transitions[-1]}, self._scheme, picture)
        if self._heat_maps:
            self._heat_maps.mkdir(parents=True, exist_ok=True)
            write_aside(self._heat_maps / name, lambda path: path.write_bytes(picture.getvalue()))
        if self._board:
            self._board.write(record, picture.getvalue())


def _first_sentences(inputs: Any) -> Any:
    """The first 256 sentences of an array, or of each array of a list or dict."""
    if isinstance(inputs, dict):
        return {name: _first_sentences(part) for name, part in inputs.items()}
    if isinstance(inputs, (list, tuple)):
        return [_first_sentences(part) for part in inputs]
    return _array(inputs)[:MOST_SENTENCES]


def _array(data: Any) -> Any:
    """An array, a tensor or a list as a NumPy array; raises ValueError for a dataset, a number, or a ragged list."""
    array: Any = None
    try:
        array = np.asarray(data) if isinstance(data, list) or hasattr(data, "__array__") else None
    except ValueError:  # rows that differ in length
        pass
    if not np.ndim(array):
        raise ValueError(
            "`data` must be arrays, or a tuple (inputs, tags) of arrays: pad lists of numbers, and take the arrays of "
            f"a dataset. Received: {type(data).__name__}"
        )
    return array


def _check_is_trained(model: Any, layer: Any) -> None:
    """Raises ValueError if a model has neither a layer nor its weights, as after the model was built again."""
    if any(layer is other for other in model._flatten_layers()):
        return
    variables = {id(variable) for variable in model.variables}
    if not any(id(variable) in variables for variable in layer.variables):
        raise ValueError(f"`CRFMonitor` needs a layer of the model that is trained. Received: `{layer.name}`")


def _model_of_emissions(model: Any, layer: Any) -> Any:
    """A model that outputs the layer's emissions, or the model itself if Keras knows no graph that leads to them."""
    try:
        emissions = keras.Model(model.input, layer.output)
    except (AttributeError, TypeError, ValueError):  # a subclassed model, or one around the model of the layer
        return model
    emissions.compile(jit_compile=JIT_PAYS_FOR_INFERENCE)
    return emissions


def _factor_of(optimizer: Any, model: Any, layer: Any) -> float:
    paths = [path_of(variable) for variable in model.trainable_variables]
    transitions_path = path_of(layer.weights[0])
    if not isinstance(optimizer, PathAware) or transitions_path not in paths:
        return 1.0
    return optimizer.variable_settings(paths)[paths.index(transitions_path)]["multiplier"]


def _line(record: dict[str, Any]) -> str:
    """The line that is printed for an epoch."""
    line = "epoch {epoch}: transitions {transition_size:.2f}, emission gap {emission_gap:.2f}, "
    if record.get("illegal"):
        line += "illegal above legal {illegal_above_legal} of {illegal}, "
    elif "illegal" in record:
        line += "illegal ones forbidden, "
    if "viterbi_accuracy" in record:
        line += "accuracy {viterbi_accuracy:.1%} by Viterbi and {argmax_accuracy:.1%} by argmax, "
    line += "Viterbi differs from argmax at {viterbi_differs:.1%} of tokens, learning rate {learning_rate:.2g} "
    line += "x {lr_multiplier:g} (suggested x {suggested_lr_multiplier:g}): {advice}"
    return line.format(**record)


class _Board:
    """Writes scalars and pictures for TensorBoard, without `tf.summary.scalar`, which needs the package tensorboard."""

    def __init__(self, log_dir: Any) -> None:
        with needs_extra("tensorflow", "`log_dir`"):
            import tensorflow as tf
        self._tf, self._writer = tf, tf.summary.create_file_writer(str(log_dir))

    def write(self, record: dict[str, Any], picture: Any) -> None:
        width, height = (str(int.from_bytes(picture[at : at + 4], "big")) for at in (16, 20))  # in the header of a PNG
        with self._writer.as_default():
            for name, value in record.items():
                if not isinstance(value, str) and name != "epoch":
                    self._write("scalars", f"crf/{name}", np.float32(value), record["epoch"])
            self._write("images", "crf/transitions", [width, height, picture], record["epoch"])
        self._writer.flush()

    def _write(self, plugin: Any, tag: Any, value: Any, step: Any) -> None:
        metadata = self._tf.compat.v1.SummaryMetadata()
        metadata.plugin_data.plugin_name = plugin
        self._tf.summary.write(tag, value, step, metadata)


def _highest_rate(optimizer: Any, steps: int) -> float:
    schedule = optimizer._learning_rate
    if not isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
        return float(ops.convert_to_numpy(optimizer.learning_rate))
    seen = range(0, steps + 1, max(1, steps // 100))
    return max(float(ops.convert_to_numpy(schedule(float(step)))) for step in seen)
