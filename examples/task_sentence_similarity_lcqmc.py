"""Predicts with BERT whether two questions have the same meaning, written as a script for bert4keras.

    KERAS_BACKEND=jax python examples/task_sentence_similarity_lcqmc.py [checkpoint folder]

The questions are synthetic: four topics, each with several phrasings.
"""

import numpy as np
from tiny_checkpoint import checkpoint
from training_on_texts import Evaluator, LabeledTexts, accuracy

from kcrf.backend import keras, set_gelu
from kcrf.models import build_transformer_model
from kcrf.optimizers import AdamWeightDecay, WarmupLinearDecay
from kcrf.tokenizers import Tokenizer

set_gelu("tanh")
maxlen, batch_size, epochs = 32, 32, 14
rng = np.random.default_rng(0)
questions = {
    "路": ["去车站怎么走", "车站在哪里", "车站远吗"],
    "价": ["这个多少钱", "价格是多少", "贵不贵"],
    "时": ["现在几点了", "什么时间了", "表上是几点"],
    "天": ["明天下雨吗", "明天天气好吗", "要带伞吗"],
}


def pair():
    """Two texts, and a label: 1 if they have the same meaning, else 0."""
    one, other = rng.choice(list(questions), 2) if rng.integers(2) else [rng.choice(list(questions))] * 2
    start = rng.choice(["", "请问", "你好，"])
    return start + str(rng.choice(questions[one])), str(rng.choice(questions[other])), int(one == other)


train_data, valid_data = [pair() for _ in range(960)], [pair() for _ in range(128)]
config_path, checkpoint_path, dict_path = checkpoint([one + other for one, other, _ in train_data])
tokenizer = Tokenizer(str(dict_path), do_lower_case=True)

keras.utils.set_random_seed(0)
bert = build_transformer_model(config_path, checkpoint_path, with_pool=True, return_keras_model=False)
pooled = keras.layers.Dropout(rate=0.1)(bert.model.output)
scores = keras.layers.Dense(2, activation="softmax", kernel_initializer=bert.initializer)(pooled)
model = keras.models.Model(bert.model.input, scores)
steps = epochs * len(train_data) // batch_size
model.compile(
    loss="sparse_categorical_crossentropy",
    optimizer=AdamWeightDecay(WarmupLinearDecay(1e-3, warmup=steps // 10, total=steps)),  # with a real BERT 2e-5
    metrics=["sparse_categorical_accuracy"],
)
train, valid = (LabeledTexts(data, batch_size, tokenizer, maxlen) for data in (train_data, valid_data))
model.fit(train.forfit(), steps_per_epoch=len(train), epochs=epochs, callbacks=[Evaluator(valid)], verbose=2)
model.load_weights("best_model.weights.h5")
print(f"final accuracy: {accuracy(model, valid):.4f}")
