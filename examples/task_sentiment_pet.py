"""Classifies the sentiment of short reviews with a cloze (PET), then with a classifier fine-tuned from its weights.

    KERAS_BACKEND=torch python examples/task_sentiment_pet.py [checkpoint folder]

"_满意。" is prepended to each review, and the model predicts 很 or 不 for the gap. Other tokens are masked too, also in
unlabeled reviews. The weights with the best accuracy on the validation set are kept. They are also the weights of a
further pretrained BERT, from which a classifier is fine-tuned. After Schick and Schütze 2021, arXiv 2001.07676.
"""

import numpy as np
from tiny_checkpoint import checkpoint

from kcrf.backend import keras
from kcrf.layers.pooling import FirstToken
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.optimizers import Adam
from kcrf.pretraining import Cloze
from kcrf.snippets import sequence_padding
from kcrf.tokenizers import Tokenizer

maxlen, batch_size, epochs = 24, 32, 20
rng = np.random.default_rng(0)


def review():
    """A text and its label."""
    label = str(rng.choice(["好评", "差评"]))
    word = rng.choice(["好", "漂亮", "舒服", "精彩"] if label == "好评" else ["差", "难看", "无聊", "糟糕"])
    return f"{rng.choice(['', '朋友说', '我觉得'])}{rng.choice(['房间', '这本书', '新手机'])}很{word}。", label


train, valid, test = ([review() for _ in range(count)] for count in (64, 64, 256))
unlabeled = [text for text, _ in (review() for _ in range(576))]
config_path, checkpoint_path, dict_path = checkpoint([*unlabeled, "不满意。"])
tokenizer = Tokenizer(str(dict_path), do_lower_case=True)
cloze = Cloze(tokenizer, "{label}满意。{text}", {"差评": "不", "好评": "很"})


def masked(filled, rate=0.15):
    """Token ids with additional tokens masked, and a mask of the positions to predict."""
    hidden = (rng.random(filled.token_ids.shape) < rate) & (filled.token_ids > tokenizer._token_mask_id)
    return np.where(hidden, tokenizer._token_mask_id, filled.token_ids), hidden


def pet_data():
    """Inputs, targets and weights: labeled texts, then unlabeled texts, whose gap has weight 0."""
    texts, labels = zip(*train, strict=True)
    filled = cloze.encode([*texts, *unlabeled], maxlen)
    token_ids, weights = masked(filled)
    targets = filled.token_ids.copy()
    targets[: len(train)] = cloze.answers(filled, [*labels, *["好评"] * len(unlabeled)])[: len(train)]
    np.put_along_axis(weights, filled.gaps, np.arange(len(weights))[:, None] < len(train), axis=1)
    return [token_ids, filled.segment_ids], targets, weights.astype("float32")


def accuracy_of_gaps(data):
    """The fraction of texts whose gap is filled with the word of their label."""
    filled = cloze.encode([text for text, _ in data], maxlen)
    found = cloze.probabilities(model.predict([filled.token_ids, filled.segment_ids], verbose=0), filled).argmax(axis=1)
    return np.mean([cloze.labels[i] == label for i, (_, label) in zip(found, data, strict=True)])


keras.utils.set_random_seed(0)
model = build_transformer_model(config_path, checkpoint_path, with_mlm=True)
model.compile(Adam(3e-3), "sparse_categorical_crossentropy", weighted_metrics=[])
best = 0.0
for epoch in range(epochs):
    inputs, targets, weights = pet_data()  # with new masks
    model.fit(inputs, targets, sample_weight=weights, batch_size=batch_size, verbose=0)
    accuracy = accuracy_of_gaps(valid)
    if accuracy >= best:
        best = accuracy
        model.save_weights("best_model.weights.h5")
    print(f"epoch {epoch + 1}: accuracy {accuracy:.4f}, best {best:.4f}")
model.load_weights("best_model.weights.h5")
save_pretrained(model, "pet")
print(f"PET: accuracy on new texts: {accuracy_of_gaps(test):.4f}")


def encode(data):
    """Inputs and labels for a classifier."""
    token_ids, segment_ids = zip(*(tokenizer.encode(text, maxlen=maxlen) for text, _ in data), strict=True)
    inputs = [sequence_padding(token_ids, maxlen), sequence_padding(segment_ids, maxlen)]
    return inputs, np.array([cloze.labels.index(label) for _, label in data])


def classifier(weights):
    """The accuracy on new texts of a classifier fine-tuned from these weights."""
    keras.utils.set_random_seed(0)
    bert = build_transformer_model(config_path, weights)
    scores = keras.layers.Dense(2, activation="softmax")(FirstToken()(bert.output))
    model = keras.Model(bert.input, scores)
    model.compile(Adam(5e-4), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(*encode(train), batch_size=16, epochs=5, verbose=0)
    return model.evaluate(*encode(test), verbose=0)[1]


print(f"classifier: accuracy on new texts: {classifier(checkpoint_path):.4f}")
print(f"classifier after PET: accuracy on new texts: {classifier('pet/model.safetensors'):.4f}")
