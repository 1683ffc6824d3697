"""`Chain`: the scores of a CRF as one value, the argument of all functions of `kcrf.crf`."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from importlib.util import find_spec
from inspect import Parameter, Signature, signature
from types import ModuleType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np

from kcrf.backend import TensorLike, backend_name, exports_onnx, graph, ops, uncompiled
from kcrf.chains import FORBIDDEN
from kcrf.tags import TagScheme

Others = ParamSpec("Others")
Result = TypeVar("Result", covariant=True)
_MOST_TAGS = 256  # of the kernels in Triton
_HAS_TRITON = backend_name() == "torch" and find_spec("triton") is not None
_AXES = {  # the number of leading axes that are batch and time
    "emissions": 2,
    "mask": 2,
    "tags": 2,
    "allowed": 2,
    "expected_tags": 2,
    "expected_steps": 1,
}


@dataclass(frozen=True, eq=False)
class Chain:
    """The scores of a conditional random field for a batch of sentences: a distribution over tag sequences for each.

    Args:
        emissions: `(batch, time, tags)`.
        mask: `(batch, time)` bool, True = real; None if all positions are.
        transitions: `(tags, tags)`, `[i, j]` is the score of going from tag i to tag j.
        start: The scores of the first tag, `(tags,)`. Defaults to None: all tags have the same score.
        end: The scores of the last tag, `(tags,)`. Defaults to None: all tags have the same score.

    >>> from kcrf import crf
    >>> chain = Chain([[[4.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])
    >>> [round(float(crf.log_likelihood(each, [[0]])[0]), 3) for each in (chain, chain.divided(4.0))]
    [-0.018, -0.313]
    """

    emissions: TensorLike
    mask: TensorLike | None
    transitions: TensorLike
    start: TensorLike | None = None
    end: TensorLike | None = None

    def divided(self, temperature: float) -> "Chain":
        """The chain with all scores divided by a temperature. Above 1, probabilities are less extreme.

        Forbidden scores stay forbidden; allowed ones would become as low below a temperature of 0.0001.
        """
        if isinstance(temperature, (int, float, np.number)) and not 1e-4 <= temperature < np.inf:
            raise ValueError(f"`temperature` must be a finite number of at least 0.0001. Received: {temperature}")
        if temperature == 1:
            return self
        names = [name for name in ("emissions", "transitions", "start", "end") if getattr(self, name) is not None]
        return replace(self, **{name: _divided(getattr(self, name), temperature) for name in names})

    def constrained(self, scheme: TagScheme | None) -> "Chain":
        """The chain without the starts, transitions and ends that a scheme does not allow; unchanged for None."""
        if scheme is None:
            return self
        if len(scheme) != self.transitions.shape[-1]:
            raise ValueError(
                f"The constraints must be a scheme of as many tags as there are scores, {self.transitions.shape[-1]}. "
                f"Received: {scheme.name} with {len(scheme)} tags"
            )
        return replace(
            self,
            transitions=_forbidden(self.transitions, scheme.allowed_transitions),
            start=_forbidden(self.start, scheme.allowed_starts),
            end=_forbidden(self.end, scheme.allowed_ends),
        )

    def check_shapes(self) -> None:
        """Raises a ValueError that names the array whose shape does not fit the others."""
        shape = tuple(self.emissions.shape)
        if len(shape) != 3:
            raise ValueError(f"`crf` needs emissions of shape (batch, time, tags). Received: shape={shape}")
        if self.mask is not None and len(self.mask.shape) != 2:
            raise ValueError(f"`crf` needs a mask of shape (batch, time). Received: shape={self.mask.shape}")
        for name, expected in {"transitions": shape[2:] * 2, "start": shape[2:], "end": shape[2:]}.items():
            scores = getattr(self, name)
            if scores is not None and tuple(scores.shape) != expected:
                raise ValueError(f"`crf` needs `{name}` of shape {expected}. Received: shape={tuple(scores.shape)}")


def _divided(scores: TensorLike, temperature: float) -> TensorLike:
    scores = ops.convert_to_tensor(scores)
    return ops.where(scores > FORBIDDEN / 2, scores / temperature, scores)


def _forbidden(scores: TensorLike | None, allowed: np.ndarray) -> TensorLike:
    return ops.where(ops.convert_to_tensor(allowed), 0.0 if scores is None else scores, FORBIDDEN)


class ChainFunction(Protocol[Others, Result]):
    """A function that `takes_chain` decorates."""

    @overload
    def __call__(self, chain: Chain, /, *args: Others.args, **kwargs: Others.kwargs) -> Result: ...

    @overload
    def __call__(self, emissions: TensorLike, /, *args: Any, **kwargs: Any) -> Result: ...


def takes_chain(
    *time_axes: int | None,
) -> Callable[[Callable[Concatenate[Chain, Others], Result]], ChainFunction[Others, Result]]:
    """Decorator: `f(chain, other)` may also be called `f(emissions, other, mask, transitions, start=None, end=None)`.

    It runs as a compiled graph, or as the function of this name of `kernels_for`, also without sentences or positions.
    `time_axes` has the time axis of each output, or None.
    """

    def decorate(function: Callable[Concatenate[Chain, Others], Result]) -> ChainFunction[Others, Result]:
        of_chain = signature(function)
        first, *others = of_chain.parameters.values()
        of_arrays = _signature_of_arrays(of_chain, others)
        loops: Any = uncompiled(function)

        def compute(*args: Any, **kwargs: Any) -> Any:  # TensorFlow gives all by their order
            arguments = {**dict(zip(of_arrays.parameters, args, strict=False)), **kwargs}
            own = {parameter.name: arguments.pop(parameter.name) for parameter in others}
            chain = Chain(**arguments)
            chain.check_shapes()
            return getattr(kernels_for(chain.emissions), function.__name__, loops)(chain, **own)

        compute.__signature__ = of_arrays  # type: ignore[attr-defined]
        compiled = graph(compute)

        @wraps(function)
        def call(emissions: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(emissions, Chain):
                arguments = {**vars(emissions), **_named(of_chain, (emissions, *args), kwargs)}
                del arguments[first.name]
            else:
                arguments = _named(of_arrays, (emissions, *args), kwargs)
            return _with_room(compiled, arguments, time_axes)

        call.__signature__ = of_arrays  # type: ignore[attr-defined]
        return cast(ChainFunction[Others, Result], call)

    return decorate


def _named(of: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name. `Signature.bind` takes longer than to start a kernel on CUDA."""
    missing = len(of.parameters) - len(args)  # two are the start and the end
    if kwargs or missing and (missing != 2 or len(args) < 3):
        return dict(of.bind(*args, **kwargs).arguments)
    return dict(zip(of.parameters, args, strict=False))


def _signature_of_arrays(of_chain: Signature, others: list[Parameter]) -> Signature:
    """The signature `(emissions, *others, mask, transitions, start=None, end=None)`."""
    first, *scores = (
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Any)
        for name, default in {
            **dict.fromkeys(("emissions", "mask", "transitions"), Parameter.empty),
            **dict.fromkeys(("start", "end")),
        }.items()
    )
    return of_chain.replace(parameters=[first, *others, *scores])


def _with_room(function: Callable[..., Any], arguments: dict[str, Any], time_axes: Iterable[int | None]) -> Any:
    """The outputs of a function, even without sentences or positions. TensorFlow's loops need a first position."""
    emissions = ops.convert_to_tensor(arguments.pop("emissions"))
    batch, time = emissions.shape[:2] if len(emissions.shape) == 3 else (1, 1)
    room = [int(batch == 0), int(time in (0, None))]
    if not any(room):
        return function(emissions, **arguments)
    sizes = ops.shape(emissions)
    if arguments["mask"] is None:
        arguments["mask"] = ops.ones_like(emissions[:, :, 0], dtype="bool")
    padded = {name: _padded(x, room[: _AXES[name]]) for name, x in arguments.items() if name in _AXES}
    outputs = function(_padded(emissions, room), **{**arguments, **padded})
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    cut = tuple(_cut(x, sizes, axis) for x, axis in zip(outputs, time_axes, strict=True))
    return cut if len(cut) > 1 else cut[0]


def _padded(x: TensorLike, room: list[int]) -> TensorLike:
    x = ops.convert_to_tensor(x)
    return ops.pad(x, [[0, n] for n in room] + [[0, 0]] * (len(x.shape) - len(room)))


def _cut(x: TensorLike, sizes: Any, time_axis: int | None) -> TensorLike:
    """The output without the additional sentence and position; `time_axis` may be None."""
    x = x[: sizes[0]]
    return x if time_axis is None else x[(slice(None),) * time_axis + (slice(sizes[1]),)]


def kernels_for(emissions: TensorLike) -> ModuleType | None:
    """The module with functions of `kcrf.crf` as operators of torch for these emissions, or None: they become loops."""
    device = emissions.device.type if backend_name() == "torch" else None
    interprets = os.environ.get("TRITON_INTERPRET") == "1"
    by_numpy = device == "cpu" and not interprets and not exports_onnx()
    by_triton = device == "cuda" or device == "cpu" and interprets
    if not by_numpy and not (by_triton and _HAS_TRITON and emissions.shape[-1] <= _MOST_TAGS):
        return None
    from kcrf.crf import torch_kernels

    return torch_kernels if torch_kernels.start_on(emissions.device, not by_numpy) else None
