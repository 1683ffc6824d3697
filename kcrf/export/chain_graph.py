"""The best path and the posterior probabilities of a linear-chain CRF as ONNX nodes. Needs NumPy and onnx.

tf2onnx does not convert loops over a dimension of unknown length, so this file repeats the recursions of `kcrf.crf` as
`Scan` nodes. Inside the loops, time is the first axis. Arrays have the names of `kcrf.crf.trellis.Trellis`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from kcrf.chains import FORBIDDEN, IS_FORBIDDEN, roles_of
from kcrf.tags import TagScheme

Scores = Mapping[str, np.ndarray | None]  # "transitions", "start" and "end" of a `kcrf.crf.Chain`
Filled = dict[str, np.ndarray]  # the same, with zeros instead of None
Step = Callable[["Graph", list[str], list[str]], tuple[list[str], list[str]]]  # states and rows to states and results


class Graph:
    """Builds an ONNX graph: collects its nodes and constants."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: str = "float32") -> str:
        """Adds a constant, and returns its name."""
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), self._new("constant")))
        return self.constants[-1].name

    def add(self, operator: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        """Appends a node. Returns the name of its result, or a list of names if it has several results."""
        names = [self._new(f"{operator}_{number}") for number in range(results)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names if results > 1 else names[0]

    def rename(self, name: str, new: str) -> None:
        """Renames a result to the name of an output."""
        self.nodes.append(helper.make_node("Identity", [name], [new]))

    def scan(
        self, step: Step, states: Sequence[str], rows: Sequence[str], results: int, reverse: bool = False
    ) -> list[str]:
        """Appends a loop over time, the first axis of rows and results. Returns the last states, then the results."""
        body = Graph(self._new("scan"))
        inputs = [f"{body.name}/input_{number}" for number in range(len(states) + len(rows))]
        new_states, step_results = step(body, inputs[: len(states)], inputs[len(states) :])
        outputs = [body.add("Identity", name) for name in (*new_states, *step_results)]
        return self.add(
            "Scan",
            *states,
            *rows,
            results=len(states) + results,
            body=body.as_body(inputs, outputs),
            num_scan_inputs=len(rows),
            scan_input_directions=[int(reverse)] * len(rows),
            scan_output_directions=[int(reverse)] * results,
        )

    def when(self, condition: str, compute: Callable[["Graph"], list[str]], instead: Sequence[np.ndarray]) -> list[str]:
        """Appends a conditional branch."""
        branches = [Graph(self._new(branch)) for branch in ("then", "else")]
        names = compute(branches[0]), [branches[1].constant(array) for array in instead]
        then, otherwise = (
            branch.as_body([], [branch.add("Identity", name) for name in results])
            for branch, results in zip(branches, names, strict=True)
        )
        return self.add("If", condition, results=len(instead), then_branch=then, else_branch=otherwise)

    def as_body(self, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
        """The graph as the body of a node, with the names of its inputs and outputs."""
        ends = [[helper.make_empty_tensor_value_info(name) for name in names] for names in (inputs, outputs)]
        return helper.make_graph(self.nodes, self.name, ends[0], ends[1], initializer=self.constants)

    def _new(self, kind: str) -> str:
        return f"{self.name}/{kind}_{len(self.nodes)}_{len(self.constants)}"


def append_chain(
    graph: Graph, emissions: str, mask: str, best: Scores, likely: Scores, scheme: TagScheme, temperature: float = 1.0
) -> None:
    """Appends a CRF with the outputs "tags", "confidences", "marginals" and "onward".

    `best` has the scores for the best path, `likely` for the probabilities, already divided by the temperature.
    The last three outputs are empty without the input "with_confidences". The input "allowed" is added to emissions.
    """
    size = len(scheme)
    chain = _Chain(graph, emissions, mask)
    tags = _best_path(graph, chain, _filled(best, size))
    unmasked = graph.add("Where", mask, graph.add("Transpose", tags, perm=[1, 0]), graph.constant(-1, "int64"))
    graph.rename(graph.add("Cast", unmasked, to=TensorProto.INT32), "tags")

    def probabilities(graph: Graph) -> list[str]:
        scores = _filled(likely, size)
        posterior = onward, marginals, _ = _posterior(graph, chain, scores, tags, temperature)
        confidences = _append_confidences(graph, chain, scores, scheme, tags, posterior)
        marginals = graph.add("Where", chain.real_rows, marginals, graph.constant(0.0))
        batch_first = [graph.add("Transpose", x, perm=[1, 0, 2]) for x in (marginals, onward)]
        return [graph.add("Transpose", confidences, perm=[1, 0]), *batch_first]

    nothing = [np.zeros((0, 0)), *[np.zeros((0, 0, size))] * 2]
    branch_results = graph.when("with_confidences", probabilities, nothing)
    for name, result in zip(("confidences", "marginals", "onward"), branch_results, strict=True):
        graph.rename(result, name)


def _filled(scores: Scores, size: int) -> Filled:
    """The scores of a chain, with zeros instead of None."""
    return {name: np.zeros(size) if x is None else np.maximum(x, FORBIDDEN) for name, x in scores.items()}


class _Chain:
    """The emissions and the mask as the recursions need them, with time as the first axis."""

    def __init__(self, graph: Graph, emissions: str, mask: str) -> None:
        add, constant = graph.add, graph.constant
        self.real = add("Transpose", mask, perm=[1, 0])  # (time, batch)
        position = add("CumSum", add("Cast", self.real, to=TensorProto.INT64), constant(0, "int64"))
        total = add("ReduceMax", position, constant([0], "int64"))  # (1, batch)
        self.linked = add("And", self.real, add("Greater", position, constant(1, "int64")))
        self.continues = add("And", self.real, add("Less", position, total))
        self.real_rows, self.linked_rows, self.continues_rows = (
            add("Unsqueeze", x, constant([2], "int64")) for x in (self.real, self.linked, self.continues)
        )
        scores = add("Max", add("Add", emissions, "allowed"), constant(FORBIDDEN))
        scores = add("Transpose", scores, perm=[1, 0, 2])  # (time, batch, tags)
        self.emissions = add("Where", self.real_rows, scores, constant(0.0))
        total = add("ReduceSum", self.emissions, constant([0], "int64"), keepdims=0)
        self.no_rows = add("Mul", total, constant(0.0))  # (batch, tags)
        self.no_tags = add("ArgMax", self.no_rows, axis=1, keepdims=0)  # (batch,)


def _best_path(graph: Graph, chain: _Chain, scores: Filled) -> str:
    """The tags of the best path, `(time, batch)` int64, undefined where masked; see `kcrf.crf.best_paths.best_path`."""

    def forward(graph: Graph, states: list[str], rows: list[str]) -> tuple[list[str], list[str]]:
        (state,), (emission, link) = states, rows
        ways = graph.add("Add", graph.add("Unsqueeze", state, graph.constant([2], "int64")), transitions)
        arrived = graph.add("ReduceMax", ways, graph.constant([1], "int64"), keepdims=0)  # (batch, to)
        state = graph.add("Add", graph.add("Where", link, arrived, state), emission)
        state = graph.add("Sub", state, graph.add("ReduceMax", state, graph.constant([1], "int64")))
        return [state], [state]

    def backward(graph: Graph, states: list[str], rows: list[str]) -> tuple[list[str], list[str]]:
        (tag,), (state, goes_on) = states, rows
        ways = graph.add("Add", state, graph.add("Gather", onward, tag))  # (batch, from)
        tag = graph.add("Where", goes_on, graph.add("ArgMax", ways, axis=1, keepdims=0), tag)
        return [tag], [tag]

    add, constant = graph.add, graph.constant
    transitions, onward = constant(scores["transitions"]), constant(scores["transitions"].T)
    start = add("Add", chain.no_rows, constant(scores["start"]))
    last, history = graph.scan(forward, [start], [chain.emissions, chain.linked_rows], 1)
    tag = add("ArgMax", add("Add", last, constant(scores["end"])), axis=1, keepdims=0)
    return graph.scan(backward, [tag], [history, chain.continues], 1, reverse=True)[1]


def _posterior(graph: Graph, chain: _Chain, scores: Filled, tags: str, temperature: float) -> tuple[str, str, str]:
    """The log sums over the paths after each tag, the marginals, and P(best tag | best tag before): time first."""

    def backward(graph: Graph, states: list[str], rows: list[str]) -> tuple[list[str], list[str]]:
        (behind,), (emission, real, goes_on) = states, rows
        onward = graph.add("Add", emission, graph.add("Where", goes_on, behind, end))
        ways = graph.add("Add", graph.add("Unsqueeze", onward, graph.constant([1], "int64")), transitions)
        sums = graph.add("ReduceLogSumExp", ways, graph.constant([2], "int64"), keepdims=0)  # (batch, from)
        return [graph.add("Where", real, sums, behind)], [onward]

    def forward(graph: Graph, states: list[str], rows: list[str]) -> tuple[list[str], list[str]]:
        (before, tag_before), (onward, tag, real, link, real_rows) = states, rows
        ways = graph.add("Add", graph.add("Unsqueeze", onward, graph.constant([1], "int64")), transitions)
        steps = graph.add("Softmax", ways, axis=2)  # (batch, from, to)
        arrived = graph.add("MatMul", graph.add("Unsqueeze", before, graph.constant([1], "int64")), steps)
        arrived = graph.add("Squeeze", arrived, graph.constant([1], "int64"))
        first = graph.add("Softmax", graph.add("Add", onward, start), axis=1)
        here = graph.add("Where", real_rows, graph.add("Where", link, arrived, first), before)  # (batch, tags)
        ways = graph.add("Add", onward, graph.add("Gather", transitions, tag_before))
        conditional = _at(graph, graph.add("Softmax", ways, axis=1), tag)
        return [here, graph.add("Where", real, tag, tag_before)], [here, conditional]

    add, constant = graph.add, graph.constant
    transitions, start, end = (constant(scores[name]) for name in ("transitions", "start", "end"))
    divided = add("Div", chain.emissions, constant(temperature))
    is_allowed = add("Greater", chain.emissions, constant(IS_FORBIDDEN))
    emissions = add("Where", is_allowed, divided, chain.emissions)
    rows = [emissions, chain.real_rows, chain.continues_rows]
    _, onward = graph.scan(backward, [chain.no_rows], rows, 1, reverse=True)
    rows = [onward, tags, chain.real, chain.linked_rows, chain.real_rows]
    _, _, marginals, conditionals = graph.scan(forward, [chain.no_rows, chain.no_tags], rows, 2)
    return onward, marginals, conditionals


def _append_confidences(
    graph: Graph, chain: _Chain, scores: Filled, scheme: TagScheme, tags: str, posterior: tuple[str, str, str]
) -> str:
    """Factors `(time, batch)` whose product over a span of the best path is the probability of the span."""
    add, constant, (onward, marginals, conditionals) = graph.add, graph.constant, posterior
    begins, longer = roles_of(scheme)
    is_first = add("Gather", constant(begins, "bool"), tags)  # (time, batch)
    factors = add("Where", is_first, _at(graph, marginals, tags, axis=2), conditionals)
    if (longer >= 0).any():
        factors = add("Mul", factors, _ends(graph, chain, scores, longer, tags, onward))
    return add("Where", chain.real, factors, constant(1.0))


def _ends(graph: Graph, chain: _Chain, scores: Filled, longer: np.ndarray, tags: str, onward: str) -> str:
    """The probability, `(time, batch)`, that a span does not continue after its last tag; 1 elsewhere."""

    def backward(graph: Graph, states: list[str], rows: list[str]) -> tuple[list[str], list[str]]:
        (behind, tag_behind), (ahead, tag, real, goes_on, real_rows) = states, rows
        ways = graph.add("Add", behind, graph.add("Gather", transitions, tag))
        another = graph.add("Gather", longer_tags, tag)  # (batch,), -1 where there is none
        index = graph.add("Max", another, graph.constant(0, "int64"))
        ends = graph.add("Sub", graph.constant(1.0), _at(graph, graph.add("Softmax", ways, axis=1), index))
        stays = graph.add("Or", graph.add("Less", another, graph.constant(0, "int64")), graph.add("Not", goes_on))
        stays = graph.add("Or", stays, graph.add("Equal", another, tag_behind))
        factors = graph.add("Where", stays, graph.constant(1.0), ends)
        carried = [graph.add("Where", real_rows, ahead, behind), graph.add("Where", real, tag, tag_behind)]
        return carried, [factors]

    constant = graph.constant
    transitions, longer_tags = constant(scores["transitions"]), constant(longer, "int64")
    rows = [onward, tags, chain.real, chain.continues, chain.real_rows]
    return graph.scan(backward, [chain.no_rows, chain.no_tags], rows, 1, reverse=True)[2]


def _at(graph: Graph, values: str, index: str, axis: int = 1) -> str:
    """The values `(..., tags)` at an index `(...)` of the last axis."""
    axis_of = graph.constant([axis], "int64")
    gathered = graph.add("GatherElements", values, graph.add("Unsqueeze", index, axis_of), axis=axis)
    return graph.add("Squeeze", gathered, axis_of)
