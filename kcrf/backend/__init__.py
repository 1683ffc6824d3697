"""Keras 3 on TensorFlow, JAX or PyTorch, or Keras 2 (`tf_keras`). See `kcrf.backend.host` for how it is chosen."""

from kcrf.backend.graphs import FEW_TAGS, check_if, compiled_by_xla, exports_onnx, graph, loop_ops, raise_if, scan
from kcrf.backend.host import (
    COMPILES_SHAPES,
    JIT_PAYS_FOR_INFERENCE,
    OLD_HOST,
    DirectCalls,
    Layer,
    Model,
    Optimizer,
    Tensor,
    TensorLike,
    Wrapper,
    backend_name,
    batch_stream,
    best_precision,
    constant_beside,
    current_stateless_scope,
    fused_attention,
    fused_norm,
    fuses_attention,
    input_names,
    is_traced,
    is_tracing,
    keras,
    layer_behind,
    linear,
    mask_ignores_inputs,
    model_being_trained,
    ops,
    own_trainable_variables,
    path_of,
    random_state,
    replaced_on_old_host,
    saves_as_hdf5,
    set_random_seed,
    set_random_state,
    tensor_from_numpy,
    weakref_to,
)
from kcrf.backend.old_names import of_backend as __getattr__

__all__ = ["backend_name", "keras", "ops"]  # the other names are for the folders of this package
