"""Any encoder of Hugging Face's library `transformers` as one Keras layer, on PyTorch."""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from types import SimpleNamespace
from typing import Any, Unpack

from kcrf.backend import backend_name, keras, ops, path_of
from kcrf.backend.hints import LayerOptions
from kcrf.extras import needs_extra
from kcrf.layers.embeddings import padding_mask

if backend_name() == "torch":
    import torch
    from torch.nn import ModuleList

# Modules above all layers, which are not embeddings: ModernBERT's `final_norm`, GPT-2's `ln_f`, LLaMA's `norm`, others.
_ABOVE = re.compile(r"(.*\.)?(final|ln_f|ln\.|norm_f|ln_out|emb_layer_norm_after)|norm\.|LayerNorm\.")


@keras.saving.register_keras_serializable(package="kcrf")
class TransformersEncoder(keras.layers.Layer):
    """An encoder of `transformers` (DeBERTa, ModernBERT and others) as a Keras layer, on PyTorch alone.

    Its input are token ids `(batch, time)`, and perhaps segment ids as the second argument. Its output is the last
    hidden state `(batch, time, hidden)`, with a Keras mask. Paths of variables are such as
    `Transformer-3-attention/output/LayerNorm/weight`, after the name of the layer, and `Embedding-...`, and contain
    "Norm" in all normalizations, so that `layerwise_decay`, `lr_multipliers` and `exclude_from_weight_decay` apply.
    There is no pooler.

    Args:
        config: Folder or name of a model, as `AutoModel.from_pretrained` takes it; or a dict with the entries of a
            `config.json`, for random weights.
        checkpoint: Folder of the weights if `config` is a dict. Defaults to `None`.
        pad_token_id: The padding token, which is masked. Defaults to `pad_token_id` of the configuration.
        layers: Use only this many layers, from the lowest up. Defaults to all.
        skip_top_layers: Number of top layers that are freshly initialized instead of loaded. Defaults to 0.
        output_layers: The layers whose hidden states are returned, in a list. Defaults to `None`: the last one alone.

    Raises:
        ImportError: `transformers` is not installed.
        ValueError: The backend is not PyTorch, or the model is no encoder, has no padding token, or lacks weights.
    """

    def __init__(
        self,
        config: str | PathLike[str] | Mapping[str, Any],
        checkpoint: str | PathLike[str] | None = None,
        pad_token_id: int | None = None,
        layers: int | None = None,
        skip_top_layers: int = 0,
        output_layers: Sequence[int] | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        source: Any = checkpoint if isinstance(config, Mapping) else config
        check_backend(dict(config).get("model_type") if isinstance(config, Mapping) else config)
        settings = _settings(config, pad_token_id, layers)  # positions of some models begin after its padding token
        module, fresh = _module(source, settings, skip_top_layers)
        self.pad_token_id = settings.pad_token_id if pad_token_id is None else pad_token_id
        self.output_layers = output_layers and list(output_layers)
        object.__setattr__(self, "module", module)  # Keras would wrap a module that it sees, with other paths
        named = {name: self._variable(name, parameter) for name, parameter in module.named_parameters()}
        paths = {name: path_of(variable) for name, variable in named.items()}
        drawn = {path for name, path in paths.items() if name.startswith(fresh)}
        loaded = set(paths.values()) - drawn if source else set()
        # Read by `variable_table` and by the decay to pretrained weights.
        self.encoder_record = SimpleNamespace(report=SimpleNamespace(loaded=loaded, reinitialized=drawn))
        self.supports_masking = self.built = True
        _try_padding(settings.model_type, module, self.pad_token_id, bool(source))
        if source:
            print(f"{source}: {settings.model_type} of transformers, {len(loaded)} loaded, {len(drawn)} reinitialized")

    def _variable(self, name: str, parameter: Any) -> Any:
        """Tracks a parameter of the module as a Keras variable."""
        owner, _, leaf = name.rpartition(".")
        kind = type(self.module.get_submodule(owner)).__name__
        scope = ("Output-" if _ABOVE.match(name) else "Embedding-") + owner
        for blocks in _blocks(self.module):
            if name.startswith(f"{blocks}."):
                number, _, inner = owner.removeprefix(f"{blocks}.").partition(".")
                scope = f"Transformer-{number}-{inner or blocks}"
        if "norm" in kind.lower() and "Norm" not in scope:
            scope += "-Norm"
        with ExitStack() as scopes:
            for part in (self.name, *scope.split(".")):
                scopes.enter_context(keras.name_scope(part))
            variable = keras.Variable(parameter, trainable=parameter.requires_grad, autocast=False, name=leaf)
        self._track_variable(variable)
        return variable

    def call(self, inputs: Any, segments: Any = None, training: bool | None = None) -> Any:
        self.module.train(bool(training))
        arguments = {} if segments is None else {"token_type_ids": segments.long()}
        mask, is_mixed = padding_mask(inputs, self.pad_token_id), self.compute_dtype != "float32"
        kind = getattr(torch, self.compute_dtype)
        with torch.autocast(inputs.device.type, dtype=kind if is_mixed else None, enabled=is_mixed):
            outputs = self.module(inputs.long(), attention_mask=mask.long(), output_hidden_states=True, **arguments)
        # A normalization above all layers is in the last hidden state alone.
        states = [state.to(kind) for state in (*outputs.hidden_states[1:-1], outputs.last_hidden_state)]
        return states[-1] if self.output_layers is None else [states[index] for index in self.output_layers]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        real = padding_mask(inputs, self.pad_token_id)
        return real if self.output_layers is None else [real] * len(self.output_layers)

    def compute_output_spec(self, inputs: Any, segments: Any = None, training: bool | None = None) -> Any:
        shape = (*inputs.shape, self.module.config.hidden_size)
        specs = [keras.KerasTensor(shape, dtype=self.compute_dtype) for _ in self.output_layers or [-1]]
        return specs[0] if self.output_layers is None else specs

    def save_own_variables(self, store: Any) -> None:
        for name, value in self.module.state_dict().items():
            store[name] = ops.convert_to_numpy(value)

    def load_own_variables(self, store: Any) -> None:
        self.module.load_state_dict({name: ops.convert_to_tensor(store[name]) for name in store.keys()})

    def get_config(self) -> dict[str, Any]:
        own = {"config": self.module.config.to_dict(), "pad_token_id": self.pad_token_id}
        return {**super().get_config(), **own, "output_layers": self.output_layers}


def check_backend(what: Any) -> None:
    """Raises ValueError unless the backend is PyTorch, and ImportError without `transformers`."""
    if backend_name() != "torch":
        raise ValueError(
            f"{what}: kcrf has no layers for this model, and the layers of transformers need PyTorch: set "
            f"KERAS_BACKEND=torch before Keras is imported. Received: {backend_name()}"
        )
    with needs_extra("transformers", f"{what}: a model without layers in kcrf"):
        import transformers  # noqa: F401


def _settings(config: str | PathLike[str] | Mapping[str, Any], pad_token_id: int | None, layers: int | None) -> Any:
    """The configuration of a model, an object of `transformers`."""
    from transformers import AutoConfig

    is_dict = isinstance(config, Mapping)
    settings = AutoConfig.for_model(**config) if is_dict else AutoConfig.from_pretrained(config)  # type: ignore[arg-type]
    if getattr(settings, "pad_token_id", None) is None:
        settings.pad_token_id = pad_token_id
    if settings.pad_token_id is None:
        raise ValueError(f"{config}: needs `pad_token_id`, which its configuration lacks. Received: None")
    if settings.is_encoder_decoder:
        raise ValueError(f"{config}: needs an encoder. Received: {settings.model_type!r}, which has a decoder, too")
    settings.use_cache = False
    if layers is not None:
        settings.num_hidden_layers = layers
        if getattr(settings, "layer_types", None):  # the kind of attention of each layer
            settings.layer_types = settings.layer_types[:layers]
    return settings


def _module(source: Any, settings: Any, skip_top_layers: int) -> tuple[Any, tuple[str, ...]]:
    """The module of a model, and the beginnings of the names of freshly initialized parameters."""
    from transformers import AutoModel

    depth, options = settings.num_hidden_layers, {"dtype": torch.float32}
    if not 0 <= skip_top_layers <= depth:
        raise ValueError(f"The encoder has {depth} layers. Received: {skip_top_layers} top layers")
    fresh: tuple[str, ...] = ()
    if source:
        module, told = AutoModel.from_pretrained(source, config=settings, output_loading_info=True, **options)
        blocks, numbers = _blocks(module), range(depth - skip_top_layers, depth)
        fresh = tuple(f"{name}.{number}." for name in blocks for number in numbers)
        absent = [key for key in sorted(told["missing_keys"]) if not key.startswith((*fresh, "pooler."))]
        absent += [str(item[0]) for item in told["mismatched_keys"]]
        if absent:
            needed = f"all weights of its {settings.model_type}"
            raise ValueError(f"{source}: needs {needed}. Received: none for {absent[:8]}")
    if fresh or not source:
        new = AutoModel.from_config(settings, **options)
    for name, part in blocks.items() if fresh else ():
        part[-skip_top_layers:].load_state_dict(_blocks(new)[name][-skip_top_layers:].state_dict())
    module = module if source else new
    if hasattr(module, "pooler"):
        module.pooler = torch.nn.Identity()  # of its own it has parameters, which would get no gradient
    return module.to(ops.convert_to_tensor(0.0).device), fresh


def _try_padding(kind: str, module: Any, padding: int, is_new: bool) -> None:
    """Raises ValueError if a module needs more than token ids and a mask, and says so if it reads padding."""
    ids = torch.full((2, 8), 3 if padding == 2 else 2, device=next(module.parameters()).device)
    ids[1, 4:] = padding

    def states(ids: Any) -> Any:  # of the first tokens of the last text
        return module.eval()(ids, attention_mask=(ids != padding).long()).last_hidden_state[-1, :4]

    try:
        with torch.no_grad():
            padded = states(ids)
            alone = states(ids[1:, :4]) if is_new else padded  # a saved model has been told about
    except Exception as error:  # whatever a model raises
        raise ValueError(f"{kind!r} of transformers needs more than token ids and a mask. Received: {error}") from None
    if (padded - alone).abs().max() > 1e-4 * alone.abs().max():
        print(f"{kind!r} of transformers reads padding, too: a text can have other tags beside longer texts")


def _blocks(module: Any) -> dict[str, Any]:
    """The lists with a part of each transformer layer by name: most models have one, XLM has several."""
    depth, found = module.config.num_hidden_layers, dict[str, Any]()
    for name, part in module.named_modules():
        if isinstance(part, ModuleList) and len(part) == depth and not name.startswith((*(f"{n}." for n in found),)):
            found[name] = part
    if not found:
        raise ValueError(f"The model needs a list of {depth} layers. Received: {type(module).__name__}")
    return found
