"""Patterns over variable paths (regular expressions, searched), layer-wise learning rates, a table of the settings."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import zip_longest
from math import inf, prod
from numbers import Real
from typing import Any

from kcrf.backend import backend_name, keras, ops, path_of

USUAL_EXCLUSIONS = ("Norm", "bias")  # usual in bert4keras scripts; need not match, as in a model without LayerNorm

_ORIGINS = ("loaded", "reinitialized")
# (numbered layers, what lies below them). Anchored: layer 1 is not layer 10.
_KERAS_HUB = (
    r"(^|/)(?:transformer|disentangled_attention_encoder|f_net)_layer_(\d+)/",
    r"(^|/)((token|position|segment|token_and_position|rel)_embedding|embeddings_layer_norm|embeddings?_projection)/",
)
_Mixin: Any = object  # mixed into optimizers of Keras, which have no hints


class ExcludesFromDecay(_Mixin):
    """Mixin for optimizers with patterns of the variables that are not decayed."""

    _undecayed: tuple[str, ...]

    def exclude_from_weight_decay(self, var_list: Any = None, var_names: Any = None) -> None:
        """Excludes more variables, before the first step. As Keras' method, but saved with the optimizer.

        Args:
            var_list: Variables to exclude.
            var_names: Patterns to exclude, searched in the path.
        """
        if self.built:
            raise ValueError(
                "`exclude_from_weight_decay` must be called before the optimizer is built. Received: a built one"
            )
        exact = tuple(f"^{re.escape(path_of(v))}$" for v in var_list or ())
        self._undecayed = (*self._undecayed, *exact, *(var_names or ()))


class PathAware(_Mixin):
    """Mixin for optimizers: schedules count optimizer steps, gradients are dense, and `variable_table` works."""

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """Keras' `apply` on dense gradients: Keras would clip by the norm of slices, one per token of an embedding."""
        dense = [ops.add(gradient, 0.0) if hasattr(gradient, "dense_shape") else gradient for gradient in grads]
        return super().apply(dense, trainable_variables)

    def _clip_gradients(self, grads: Any) -> Any:
        """Keras' clipping, on torch by few kernels that wait for nothing: Keras starts up to ten for a gradient."""
        limit = self.clipnorm or self.global_clipnorm
        if backend_name() != "torch" or not limit:
            return super()._clip_gradients(grads)
        import torch

        norms = torch.stack(torch._foreach_norm(grads))
        norms = norms if self.clipnorm else norms.norm()
        rates = limit / norms.clamp(min=limit) + (norms - norms)  # NaN for an infinite norm, as in Keras
        return torch._foreach_mul(grads, rates.unbind() if self.clipnorm else rates)

    def finalize_variable_values(self, var_list: Any) -> None:
        """Called by Keras at the end of `fit`: with `use_ema`, copies of the averages become the weights."""
        super().finalize_variable_values(var_list)
        if self.use_ema:  # without a copy they share buffers, and on JAX the next `fit` fails
            for variable in var_list:
                variable.assign(ops.copy(variable))

    def _get_current_learning_rate(self) -> Any:
        # Keras counts batches here, even those that only accumulate gradients.
        if isinstance(self._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
            return self._learning_rate(self.iterations)
        return super()._get_current_learning_rate()

    def _rate_of(self, index: int) -> float:
        return 1.0

    def variable_settings(self, paths: list[str]) -> list[dict[str, Any]]:
        """One dict per path: `multiplier` of the learning rate, `decayed`, and `prior` (decay to the initial value)."""
        return self._settings(paths)

    def _settings(self, paths: list[str]) -> list[dict[str, Any]]:
        """The settings before bert4keras' extensions, which change a variable after its step."""
        return [{"multiplier": 1.0, "decayed": bool(self.weight_decay), "prior": False} for _ in paths]


def as_patterns(patterns: Any) -> tuple[str, ...]:
    """A tuple of patterns from a list, from a single pattern, or from None."""
    return (patterns,) if isinstance(patterns, str) else tuple(patterns or ())


def check_numbers(numbers: Mapping[str, Any], below: float = inf) -> None:
    """Refuses what is no number, is negative, or is not below a limit."""
    for name, value in numbers.items():
        number: Any = value if isinstance(value, Real) else -1
        if not 0 <= number < below:
            raise ValueError(f"`{name}` must be at least 0 and below {below:g}. Received: {name}={value}")


def matches_any(patterns: Iterable[str], paths: list[str], argument: str, may_miss: Collection[str] = ()) -> list[bool]:
    """For each path, whether a pattern matches it. A pattern that matches none, and is not in `may_miss`, raises."""
    matches = [_matches(pattern, paths, argument, may_miss) for pattern in patterns]
    return [any(of_pattern[i] for of_pattern in matches) for i in range(len(paths))]


def multipliers(factors: Mapping[str, float], paths: list[str], argument: str = "lr_multipliers") -> list[float]:
    """For each path, the product of the factors of all patterns that match it. Raises as `matches_any`."""
    matches = [(_matches(pattern, paths, argument), factor) for pattern, factor in factors.items()]
    return [prod(factor for of_pattern, factor in matches if of_pattern[i]) * 1.0 for i in range(len(paths))]


def _matches(pattern: str, paths: list[str], argument: str, may_miss: Collection[str] = ()) -> list[bool]:
    try:
        matches = [re.search(pattern, path) is not None for path in paths]
    except re.error as error:
        raise ValueError(f"`{argument}` needs regular expressions. Received: {pattern!r} ({error})") from None
    if not any(matches) and pattern not in may_miss:
        listing = "".join(f"\n  {path}" for path in paths)
        raise ValueError(
            f"`{argument}` needs patterns that occur in the path of a trainable variable. "
            f"Received: {pattern!r}, which occurs in none of:{listing}"
        )
    return matches


def layerwise_decay(model: Any, decay: float, decay_top: bool = True) -> dict[str, float]:
    """Learning-rate multipliers for `lr_multipliers` that decrease from the top layer to the embeddings.

    With n layers, numbered 0 to n - 1 from the bottom:

    | | head (CRF, pooler, MLM, ...) | layer i | embeddings |
    |---|---|---|---|
    | `decay_top=True`, as in timm and Zhang et al. | 1 | decay ** (n - i) | decay ** (n + 1) |
    | `decay_top=False`: the top layer has the full learning rate | 1 | decay ** (n - 1 - i) | decay ** n |

    Args:
        model: A model with the layer names of bert4keras or of keras-hub; or a list of groups from the bottom to the
            top. A group is a regular expression, a layer, or a list of these. Encoders with different values of
            `prefix` in one model decay each by its own depth.
        decay: Factor from one layer to the next lower layer, in (0, 1].
        decay_top: Whether the factor also applies to the top layer. Defaults to True.

    Returns:
        A dict from patterns to factors, to which others can be added: `{**layerwise_decay(model, 0.9), "CRF": 100}`.

    Reference: Zhang et al., Revisiting Few-sample BERT Fine-tuning, https://arxiv.org/abs/2006.05987

    Example:

    >>> layerwise_decay(["Embedding", "Block-0-", "Block-1-"], 0.5)
    {'Embedding': 0.125, 'Block-0-': 0.25, 'Block-1-': 0.5}
    """
    if not 0 < decay <= 1:
        raise ValueError(f"`decay` must be in (0, 1]. Received: decay={decay}")
    groups = model if isinstance(model, (list, tuple)) else _depth_groups(model)
    top = 1 if decay_top else 0
    factors = {}
    for depth, group in enumerate(reversed(groups), start=top):
        for member in group if isinstance(group, (list, tuple)) else [group]:
            pattern = member if isinstance(member, str) else f"(^|/){re.escape(member.name)}/"
            factors[pattern] = decay**depth
    return dict(reversed(factors.items()))


def _depth_groups(model: Any) -> list[list[str]]:
    """Patterns from the embeddings up to the top layer; a group without trainable variables is an empty list."""
    paths = [path_of(v) for v in model.weights]
    trained = [path_of(v) for v in model.trainable_variables]
    stacks = []
    hits = (re.search(r"(^|/)([^/]*)Transformer-\d+-", path) for path in paths)
    prefixes = dict.fromkeys(re.escape(hit.group(2)) for hit in hits if hit)
    of_bert4keras = [(rf"(^|/){p}Transformer-(\d+)-", rf"(^|/){p}Embedding-") for p in prefixes]
    for layer_pattern, below in of_bert4keras or [_KERAS_HUB]:
        hits = (re.search(layer_pattern, path) for path in paths)
        numbers = {int(hit.group(2)) for hit in hits if hit}
        layers = [layer_pattern.replace(r"(\d+)", str(number)) for number in sorted(numbers)]
        groups = [[p] if any(re.search(p, path) for path in trained) else [] for p in (below, *layers)]
        if numbers:
            stacks.append(reversed(groups))
    if stacks:  # the top layers of all encoders are one group, whatever their depths
        return [sum(level, []) for level in zip_longest(*stacks, fillvalue=[])][::-1]
    listing = "".join(f"\n  {path}" for path in paths)
    raise ValueError(
        "`layerwise_decay` needs numbered layers, `Transformer-0-...` or `transformer_layer_0/...` (ALBERT has none: "
        f"its layers share one set of weights), or a list of groups. Received a model with the variables:{listing}"
    )


class VariableTable(list):
    """Rows of `variable_table`: a list of dicts that `print` and `rich.print` show as a table."""

    caption: str | None = None

    def __rich__(self) -> Any:  # a `rich.table.Table`
        from rich.table import Table

        table = Table(caption=self.caption, caption_justify="left")
        for name in ("path", "shape", "multiplier", "decayed", "prior", "origin"):
            table.add_column(name, justify="right" if name == "multiplier" else "left", overflow="fold")
        for row in self:
            rate = "frozen" if row["multiplier"] is None else f"{row['multiplier']:.4g}"
            flags = ["yes" if row[name] else "" for name in ("decayed", "prior")]
            table.add_row(row["path"], str(row["shape"]), rate, *flags, row["origin"] or "")
        return table

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=120)
        with console.capture() as capture:
            console.print(self)
        return capture.get()


def variable_table(model: Any, optimizer: Any = None) -> "VariableTable":
    """Lists the optimizer settings of each variable of a model, and the origin of its values.

    Args:
        model: A built Keras model.
        optimizer: An optimizer of `kcrf.optimizers`. Defaults to the optimizer that the model was compiled with.

    Returns:
        A list, which `print` shows as a table, with one dict per variable: `path`, `shape`, `multiplier` (None if the
        variable is frozen), `decayed`, `prior` (whether it decays towards its initial value), and `origin`: "loaded",
        "re-initialized" or "new"; None if no checkpoint was loaded.
    """
    optimizer = optimizer or getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # mixed_float16 wraps it
    if not isinstance(optimizer, PathAware):
        raise ValueError(f"`variable_table` needs an optimizer of kcrf.optimizers. Received: optimizer={optimizer}")
    trained = [path_of(v) for v in model.trainable_variables]
    settings = dict(zip(trained, optimizer.variable_settings(trained), strict=True))
    frozen = {"multiplier": None, "decayed": False, "prior": False}
    report = load_report(model)
    origins, rest = {}, None if report is None else "new"
    if report is not None:
        origins = dict.fromkeys(report["reinitialized"], "re-initialized") | dict.fromkeys(report["loaded"], "loaded")
    rows = VariableTable(
        {"path": path, "shape": tuple(v.shape), **settings.get(path, frozen), "origin": origins.get(path, rest)}
        for path, v in zip(map(path_of, model.weights), model.weights, strict=True)
    )
    factors = getattr(optimizer, "lr_multipliers", None) or {}
    rows.caption = "\n".join(f"x{factor:.4g}  {pattern}" for pattern, factor in factors.items()) or None
    return rows


def load_report(model: Any) -> dict[str, Any] | None:
    """The paths of the variables that were `loaded` and `reinitialized`, a dict of sets; None if nothing was loaded."""
    records = [getattr(layer, "encoder_record", None) for layer in model._flatten_layers()]
    reports = [getattr(model, "kcrf_load_report", None), *(record.report for record in records if record)]
    reports = list({id(report): report for report in reports if report is not None}.values())
    if not reports:
        return None
    origins = {name: Counter(path for r in reports for path in getattr(r, name, ())) for name in _ORIGINS}
    for path, variables in Counter(map(path_of, model.weights)).items():
        counts = [origins[name][path] for name in _ORIGINS]
        if variables > 1 and any(0 < count < variables for count in counts):
            raise ValueError(
                "Encoders of one model need layer names of their own, if not all of them were loaded in the same way: "
                f"build each with a prefix. Received: {variables} variables with the path {path}"
            )
    return {name: set(origins[name]) for name in _ORIGINS}


def copy_of(variable: Any) -> Any:
    """An initializer that copies the current value of a model variable into an optimizer variable."""
    # A real copy: JAX donates the buffers of model and optimizer, and no buffer can be donated twice.
    return lambda shape, dtype=None: ops.stop_gradient(ops.copy(variable))


def copies_in(optimizer: Any, variable: Any) -> list[Any]:
    """The optimizer's slow weights, averages and priors of a model variable, which must be scaled with it.

    Of an optimizer that made no update yet, all variables that equal the model variable.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # mixed_float16 wraps it
    trained = optimizer._trainable_variables if optimizer is not None and optimizer.built else []
    index = next((index for index, other in enumerate(trained) if other is variable), None)
    if index is None:
        return []
    names = ("_slow", "_priors", "_averages", "_model_variables_moving_average")
    lists = [getattr(optimizer, name, None) or [] for name in names]
    copies = [slots[index] for slots in lists if len(slots) > index and slots[index] is not None]
    if int(ops.convert_to_numpy(optimizer.iterations)) == 0:
        value, identities = ops.convert_to_numpy(variable), {id(v) for v in copies}
        slots = [v for v in optimizer.variables if tuple(v.shape) == value.shape and id(v) not in identities]
        copies += [v for v in slots if value.any() and (ops.convert_to_numpy(v) == value).all()]
    return copies
