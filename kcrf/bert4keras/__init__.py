"""bert4keras' modules by their names, for scripts that move to kcrf: replace `bert4keras` by `kcrf.bert4keras`.

The pages are `backend`, `layers`, `models`, `optimizers`, `snippets` and `tokenizers`. Importing one of them changes
classes of Keras 3, so that calls of Keras 2 work; `restore_keras()` takes all changes back. Importing any other part of
kcrf changes nothing. The changes:

- `keras.Model.fit`, `train_on_batch`: refuse `class_weight` for a CRF, a loss of Keras for the output of a CRF, and a
  model with nothing to train; warn of a CRF without a mask on padded data, and of metrics of Keras that count padding.
  On JAX, `train_on_batch` in a callback gets the weights that it shares with the model that is being fitted.
- `keras.Model.fit_generator`, `evaluate_generator`, `predict_generator`: the calls of Keras 2.
- `keras.Model.predict`, `predict_on_batch`: take lists of numbers.
- `keras.Model.save`, `save_weights`, `load_weights`, `keras.models.load_model`, `keras.saving.load_model`: take the
  file names of Keras 2.
- `keras.Model._make_train_function`, `add_loss` of functional models, `keras.utils.multi_gpu_model`: raise an error
  that names what replaces them.
- `keras.callbacks.Callback.model`: can be set.
- `keras.layers.Layer.get_output_at`, `output_mask`: the attributes of Keras 2.
- `sys.modules`: `keras.layers.embeddings` and others are `keras.layers`, `keras.utils.np_utils` is `keras.utils`.

The changes of `keras.Model` have an effect for models with a layer of kcrf alone. On tf_keras nothing is changed.
"""

from kcrf.bert4keras.changes import change_keras, restore_keras

__all__ = ["change_keras", "restore_keras"]
