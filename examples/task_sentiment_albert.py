"""Classifies the sentiment of short reviews with ALBERT, written as a script for bert4keras.

    KERAS_BACKEND=jax python examples/task_sentiment_albert.py [checkpoint folder]

The reviews are synthetic; "不" negates a sentence. The learning rate warms up, then decays.
"""

import numpy as np
from tiny_checkpoint import checkpoint
from training_on_texts import Evaluator, LabeledTexts, accuracy

from kcrf.backend import keras, set_gelu
from kcrf.layers.pooling import FirstToken
from kcrf.models import build_transformer_model
from kcrf.optimizers import Adam, extend_with_piecewise_linear_lr
from kcrf.tokenizers import Tokenizer

set_gelu("tanh")
maxlen, batch_size, epochs = 24, 32, 15
rng = np.random.default_rng(0)


def review():
    """A text and its label: 1 if positive, else 0."""
    thing = rng.choice(["这家店的菜", "房间", "老板的态度", "这本书", "昨天的电影", "新手机"])
    label, negated = rng.integers(2), rng.integers(2)
    word = rng.choice(["好", "漂亮", "舒服", "精彩"] if label != negated else ["差", "难看", "无聊", "糟糕"])
    return f"{rng.choice(['', '朋友说', '我觉得'])}{thing}{'不' if negated else '很'}{word}。", int(label)


train_data, valid_data = [review() for _ in range(640)], [review() for _ in range(128)]
config_path, checkpoint_path, dict_path = checkpoint(
    [text for text, _ in train_data], model="albert", embedding_size=32
)
tokenizer = Tokenizer(str(dict_path), do_lower_case=True)

keras.utils.set_random_seed(0)
bert = build_transformer_model(config_path, checkpoint_path, model="albert", return_keras_model=False)
first = FirstToken(name="CLS-token")(bert.model.output)
scores = keras.layers.Dense(2, activation="softmax", kernel_initializer=bert.initializer)(first)
model = keras.models.Model(bert.model.input, scores)

AdamLR = extend_with_piecewise_linear_lr(Adam, name="AdamLR")
model.compile(
    loss="sparse_categorical_crossentropy",
    optimizer=AdamLR(learning_rate=2e-3, lr_schedule={20: 1, epochs * len(train_data) // batch_size: 0.1}),
    metrics=["sparse_categorical_accuracy"],
)
train, valid = (LabeledTexts(data, batch_size, tokenizer, maxlen) for data in (train_data, valid_data))
model.fit(train.forfit(), steps_per_epoch=len(train), epochs=epochs, callbacks=[Evaluator(valid)], verbose=2)
model.load_weights("best_model.weights.h5")
print(f"final accuracy: {accuracy(model, valid):.4f}")
