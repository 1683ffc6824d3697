"""Adam and AdamW for fine-tuning BERT: optional bias correction, learning-rate multipliers per variable, weight decay.

Formulas: Kingma and Ba, https://arxiv.org/abs/1412.6980 (Algorithm 1); google-research/bert `optimization.py`. Without
bias correction, fine-tuning on small datasets is unstable: Zhang et al., https://arxiv.org/abs/2006.05987.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from kcrf.backend import Optimizer, backend_name, keras, ops, path_of
from kcrf.optimizers.variables import (
    USUAL_EXCLUSIONS,
    ExcludesFromDecay,
    PathAware,
    as_patterns,
    check_numbers,
    copy_of,
    load_report,
    matches_any,
    multipliers,
)


@keras.saving.register_keras_serializable(package="kcrf")
class Adam(PathAware, Optimizer):
    """Adam with optional bias correction and with learning-rate multipliers for chosen variables.

    If `bias_correction=True`, this is Algorithm 1 of Kingma and Ba, with epsilon after the corrections, as in
    bert4keras, PyTorch and optax. If `False`, it is the Adam of Google BERT, whose steps are longer by (1 - beta_1^t) /
    sqrt(1 - beta_2^t):

    >>> [round((1 - 0.9**t) / (1 - 0.999**t) ** 0.5, 2) for t in (1, 12, 1000)]
    [3.16, 6.57, 1.26]

    Args:
        learning_rate: A number, or a schedule of the optimizer step. Defaults to 0.001.
        beta_1, beta_2: Decay rates of the moments. Default to 0.9 and 0.999.
        epsilon: Added to the square root of the second moment. Defaults to 1e-6.
        bias_correction: Whether to correct the moments for their initialization at zero. Defaults to True.
        lr_multipliers: A dict from patterns (regular expressions, searched in the variable path) to factors of the
            update and the decay. The factors of all matching patterns are multiplied; a pattern that matches no path is
            an error that lists the paths. Defaults to None.
        **kwargs: `global_clipnorm`, `gradient_accumulation_steps`, `use_ema`, ... as for every Keras optimizer. `lr` is
            the Keras 2 name of `learning_rate`.

    Example: the head gets the learning rate 5e-3, and BERT gets 5e-5. Both share the schedule and the clipping norm.

    ```python
    Adam(5e-5, lr_multipliers={"CRF|BiLSTM": 100}, global_clipnorm=1.0)
    ```
    """

    _decay_rate = _prior_rate = 0.0

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = True,
        lr_multipliers: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs.get("weight_decay") is not None:
            needed = "`AdamWeightDecay(weight_decay_rate=...)`: `weight_decay` would ignore `lr_multipliers`"
            raise ValueError(f"Weight decay needs {needed}. Received: weight_decay={kwargs['weight_decay']}")
        learning_rate = kwargs.pop("lr", learning_rate)
        if not callable(learning_rate):
            learning_rate = float(learning_rate)
        clips = {name: kwargs.get(name) or 0 for name in ("clipnorm", "clipvalue", "global_clipnorm")}
        rate = 0 if callable(learning_rate) else learning_rate
        check_numbers({"learning_rate": rate, "epsilon": epsilon, **clips})  # Keras ignores what is below 0
        check_numbers({"beta_1": beta_1, "beta_2": beta_2}, below=1)
        super().__init__(learning_rate, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.bias_correction = bias_correction
        # Kept as pairs: host trackers wrap dicts.
        self._lr_multipliers = tuple((str(p), float(k)) for p, k in dict(lr_multipliers or {}).items())
        check_numbers({f"lr_multipliers[{pattern!r}]": factor for pattern, factor in self._lr_multipliers})

    @property
    def lr(self) -> Any:
        """The learning rate under its Keras 2 name: `K.set_value(optimizer.lr, 1e-5)`."""
        return self.learning_rate

    @lr.setter
    def lr(self, value: Any) -> None:
        self.learning_rate = value

    @property
    def lr_multipliers(self) -> dict[str, float] | None:
        """The dict from patterns to factors; None if there are no patterns."""
        return dict(self._lr_multipliers) or None

    def build(self, variables: Any) -> None:
        """Creates the moments and reads the settings of each variable by its path, which TensorFlow's steps lack."""
        if self.built:
            return
        settings = self._settings([path_of(v) for v in variables])
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])
        self._rates = [setting["multiplier"] for setting in settings]
        self._decays = [self._decay_rate * setting["decayed"] for setting in settings]
        self._priors = [
            self.add_variable_from_reference(v, name="prior", initializer=copy_of(v)) if setting["prior"] else None
            for v, setting in zip(variables, settings, strict=True)
        ]

    def _settings(self, paths: list[str]) -> list[dict[str, Any]]:
        rates = multipliers(dict(self._lr_multipliers), paths)
        return [{"multiplier": rate, "decayed": False, "prior": False} for rate in rates]

    def _rate_of(self, index: int) -> float:
        return self._rates[index]

    def _corrections(self) -> Any:
        """1 / (1 - beta^t) for both moments, 1 without correction. `expm1` is exact where beta^t is close to 1."""
        if not self.bias_correction:
            return 1.0, 1.0
        step = ops.cast(self.iterations, "float32") + 1
        logs = (math.log(beta) if beta else -math.inf for beta in (self.beta_1, self.beta_2))
        return tuple(-1 / ops.expm1(step * log) for log in logs)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        index = self._get_variable_index(variable)
        m, v, prior = self._momentums[index], self._velocities[index], self._priors[index]
        dtype = variable.dtype
        gradient = ops.cast(gradient, dtype)
        self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        first, second = (ops.cast(factor, dtype) for factor in self._corrections())
        update = m * first / (ops.sqrt(v * second) + self.epsilon)
        if self._decays[index]:
            update = update + self._decays[index] * variable
        if prior is not None:
            update = update + self._prior_rate * (variable - prior)
        self.assign_sub(variable, ops.cast(learning_rate, dtype) * self._rates[index] * update)

    def _backend_update_step(self, grads: Any, variables: Any, learning_rate: Any) -> Any:
        # PyTorch does not fuse operations, so one call updates all variables. Subclasses may have their own step.
        if backend_name() == "torch" and type(self).update_step is Adam.update_step:
            return self._torch_update_step(grads, variables, ops.convert_to_tensor(learning_rate))
        return super()._backend_update_step(grads, variables, learning_rate)

    def _torch_update_step(self, grads: Any, variables: Any, learning_rate: Any) -> None:
        import torch

        indices = [self._get_variable_index(variable) for variable in variables]
        weights = [variable.value for variable in variables]
        m, v = ([slots[i].value for i in indices] for slots in (self._momentums, self._velocities))
        grads = [g.to(w.dtype) for g, w in zip(grads, weights, strict=True)]
        with torch.no_grad():
            first, second = self._corrections()
            root = second**0.5
            torch._foreach_lerp_(m, grads, 1 - self.beta_1)
            torch._foreach_mul_(v, self.beta_2)
            torch._foreach_addcmul_(v, grads, grads, value=1 - self.beta_2)
            updates = torch._foreach_sqrt(v)
            epsilon = self.epsilon / root  # its factor is part of the rate below
            add = torch._foreach_add_ if isinstance(epsilon, float) else torch.ops.aten._foreach_add_.Tensor
            add(updates, epsilon)  # the usual name takes a tensor for a number, and waits for a GPU to read it
            updates = torch._foreach_div(m, updates)
            torch._foreach_mul_(updates, learning_rate * first / root)
            if pulled := [n for n, i in enumerate(indices) if self._priors[i] is not None]:
                priors = [self._priors[indices[n]].value for n in pulled]
                distances = torch._foreach_sub([weights[n] for n in pulled], priors)
                torch._foreach_mul_(distances, learning_rate * self._prior_rate)
                torch._foreach_add_([updates[n] for n in pulled], distances)
            self._torch_subtract(torch, indices, weights, updates, learning_rate)

    def _torch_subtract(self, torch: Any, indices: Any, weights: Any, updates: Any, learning_rate: Any) -> None:
        groups = defaultdict(list)
        for n, i in enumerate(indices):
            groups[self._rates[i], self._decays[i]].append(n)
        for (rate, decay), members in groups.items():
            group = [weights[n] for n in members]
            if decay:
                torch._foreach_mul_(group, 1 - learning_rate * (rate * decay))
            torch._foreach_add_(group, [updates[n] for n in members], alpha=-rate)

    def get_config(self) -> dict[str, Any]:
        names = ("beta_1", "beta_2", "epsilon", "bias_correction", "lr_multipliers")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@keras.saving.register_keras_serializable(package="kcrf")
class AdamWeightDecay(ExcludesFromDecay, Adam):
    """Adam with decoupled weight decay, and optional decay towards the initial (pretrained) weights.

    With the moments m and v, rate = learning_rate * multiplier, and all values from before the step:

        theta -= rate * (m / (sqrt(v) + epsilon) + weight_decay_rate * theta
                         + prior_weight_decay_rate * (theta - theta_0))

    With `bias_correction=False` and `global_clipnorm=1.0`, this is Google BERT's optimizer. On several devices under
    `tf.distribute`, Keras clips the gradients on each device before it sums them.

    Args:
        learning_rate, beta_1, beta_2, epsilon, bias_correction, lr_multipliers: As for `Adam`.
        weight_decay_rate: Fraction of the weight that is subtracted per step, times the learning rate. Defaults to
            0.01.
        exclude_from_weight_decay: Patterns of variables that are not decayed. Defaults to ("Norm", "bias"), as in
            Google BERT, for the layer names of bert4keras. With Keras' own names, exclude `("[Nn]orm", "bias")`.
        prior_weight_decay_rate: Strength of the decay towards theta_0, the values when the optimizer is built. Needs
            one additional copy of these variables. Defaults to 0.0: off.
        prior_variables: The variables that decay towards theta_0: a list of paths and patterns; or a model with a
            loaded checkpoint, or its load report, for the loaded variables. Defaults to None: all that are decayed.
        **kwargs: As for `Adam`.

    Example:

    ```python
    AdamWeightDecay(
        WarmupLinearDecay(2e-5, warmup=100, total=1000),
        lr_multipliers={**layerwise_decay(model, 0.95), "CRF": 100},
        prior_weight_decay_rate=0.01,
        prior_variables=model,
        global_clipnorm=1.0,
    )
    ```
    """

    decays = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = True,
        lr_multipliers: dict[str, float] | None = None,
        weight_decay_rate: float = 0.01,
        exclude_from_weight_decay: Iterable[str] = USUAL_EXCLUSIONS,
        prior_weight_decay_rate: float = 0.0,
        prior_variables: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, bias_correction, lr_multipliers, **kwargs)
        check_numbers({"weight_decay_rate": weight_decay_rate, "prior_weight_decay_rate": prior_weight_decay_rate})
        self._decay_rate = float(weight_decay_rate)
        self._undecayed = as_patterns(exclude_from_weight_decay)
        self._prior_rate = float(prior_weight_decay_rate)
        self._prior_variables = _prior_choice(prior_variables)

    def _settings(self, paths: list[str]) -> list[dict[str, Any]]:
        settings = super()._settings(paths)
        excluded = matches_any(self._undecayed, paths, "exclude_from_weight_decay", may_miss=USUAL_EXCLUSIONS)
        pulled = self._pulled(paths, excluded) if self._prior_rate else [False] * len(paths)
        for setting, out, pull in zip(settings, excluded, pulled, strict=True):
            setting["decayed"] = self._decay_rate > 0 and not out
            setting["prior"] = pull
        return settings

    def _pulled(self, paths: list[str], excluded: list[bool]) -> list[bool]:
        chosen = self._prior_variables
        if chosen is None:
            return [not out for out in excluded]
        if isinstance(chosen, dict):
            return [path in chosen["loaded"] for path in paths]
        # An entry that is the path of a variable means this variable alone.
        patterns = [f"^{re.escape(entry)}$" if entry in paths else entry for entry in chosen]
        return matches_any(patterns, paths, "prior_variables")

    def get_config(self) -> dict[str, Any]:
        chosen = self._prior_variables  # below as plain lists and dicts, without the wrappers of Keras
        return {
            **super().get_config(),
            "weight_decay_rate": self._decay_rate,
            "exclude_from_weight_decay": list(self._undecayed),
            "prior_weight_decay_rate": self._prior_rate,
            "prior_variables": {"loaded": list(chosen["loaded"])}
            if isinstance(chosen, dict)
            else chosen and list(chosen),
        }


def _prior_choice(chosen: Any) -> Any:
    """The patterns, None, or `{"loaded": paths}` from a load report or from a model that carries one."""
    if chosen is None or isinstance(chosen, (str, list, tuple)):
        return chosen and as_patterns(chosen)
    report = load_report(chosen) if isinstance(chosen, keras.Model) else chosen
    loaded = report.get("loaded") if isinstance(report, dict) else getattr(report, "loaded", None)
    if loaded is None:
        raise ValueError(
            "`prior_variables` needs patterns, or a model whose weights `build_transformer_model` loaded. "
            f"Received: prior_variables={chosen}"
        )
    return {"loaded": sorted(loaded)}
