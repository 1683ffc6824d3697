"""Classifies texts with 100 samples: the recipe of Revisiting Few-sample BERT Fine-tuning in a plain `fit`.

    KERAS_BACKEND=torch python examples/task_text_classification_few_samples.py [checkpoint folder]

The recipe: Adam with bias correction, a re-initialized top layer and pooler, and many steps. The reviews are synthetic.
Without code: `kcrf train --task classify --bert FOLDER --pool pooler --skip-top-layers 1 --steps 200`.
"""

import numpy as np
from tiny_checkpoint import checkpoint

from kcrf.backend import keras
from kcrf.models import build_transformer_model
from kcrf.optimizers import AdamWeightDecay, WarmupLinearDecay
from kcrf.snippets import sequence_padding
from kcrf.tokenizers import Tokenizer

maxlen, samples, batch_size, steps = 16, 100, 20, 200
rng = np.random.default_rng(0)


def review():
    """A text and its label: 1 if positive, else 0."""
    label = int(rng.integers(2))
    word = rng.choice(["好", "漂亮", "舒服", "精彩"] if label else ["差", "难看", "无聊", "糟糕"])
    return f"{rng.choice(['', '朋友说', '我觉得'])}{rng.choice(['房间', '这本书', '新手机'])}很{word}。", label


train, test = [review() for _ in range(samples)], [review() for _ in range(400)]
config_path, checkpoint_path, dict_path = checkpoint([text for text, _ in train])
tokenizer = Tokenizer(str(dict_path), do_lower_case=True)


def encode(reviews):
    """Inputs and labels for the model."""
    token_ids, segment_ids = zip(*(tokenizer.encode(text, maxlen=maxlen) for text, _ in reviews), strict=True)
    inputs = [sequence_padding(token_ids, maxlen), sequence_padding(segment_ids, maxlen)]
    return inputs, np.array([label for _, label in reviews])


keras.utils.set_random_seed(0)
bert = build_transformer_model(config_path, checkpoint_path, with_pool=True, skip_top_layers=1)  # and the pooler
scores = keras.layers.Dense(2, name="Classes")(keras.layers.Dropout(0.1)(bert.output))
model = keras.Model(bert.input, scores)
model.compile(
    AdamWeightDecay(WarmupLinearDecay(5e-4, steps // 10, steps), bias_correction=True, global_clipnorm=1.0),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(*encode(train), batch_size=batch_size, epochs=steps * batch_size // samples, verbose=2)
print(f"accuracy on new texts: {model.evaluate(*encode(test), verbose=0)[1]:.4f}")
