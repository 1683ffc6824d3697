"""Named entities with BERT and a CRF, written as a script for bert4keras.

    KERAS_BACKEND=jax python examples/task_sequence_labeling_ner_crf.py [checkpoint folder]

The sentences are generated from a few patterns. No name of the test set occurs in the training set.
"""

import numpy as np
from tiny_checkpoint import checkpoint

from kcrf.backend import K, keras
from kcrf.layers import ConditionalRandomField
from kcrf.metrics import entity_scores
from kcrf.models import build_transformer_model
from kcrf.optimizers import Adam
from kcrf.snippets import DataGenerator, ViterbiDecoder, sequence_padding
from kcrf.tokenizers import Tokenizer

maxlen, batch_size, epochs, layers = 32, 16, 6, 2  # with BERT-base 12 layers
learning_rate, crf_lr_multiplier = 2e-3, 5  # with a real BERT 2e-5 and 1000
categories = ["LOC", "ORG", "PER"]
patterns = ["PER昨天从LOC来到LOC。", "ORG的PER说，LOC下雨了。", "PER在ORG工作。", "LOC的ORG请来了PER。", "没有事。"]
parts_of_names = {
    "PER": ("王李张刘", "明华芳强", ""),
    "LOC": ("青白黑红", "山河石林", "市"),
    "ORG": ("天地海风", "光明和平", "公司"),
}
rng = np.random.default_rng(0)


def name(category, part):
    """A generated name. Training set and test set share characters but no names."""
    first, last, end = parts_of_names[category]
    return str(rng.choice([first[i] + last[j] + end for i in range(4) for j in range(4) if (i + j) % 2 == part]))


def sentence(part):
    """A text and its entities, `(start, end, category)`, half-open."""
    text, entities, rest = "", [], str(rng.choice(patterns))
    while rest:
        category = next(filter(rest.startswith, categories), None)
        word = name(category, part) if category else rest[0]
        if category:
            entities.append((len(text), len(text) + len(word), category))
        text, rest = text + word, rest[len(category or word) :]
    return text, entities


train_data, test_data = [sentence(0) for _ in range(400)], [sentence(1) for _ in range(60)]
config_path, checkpoint_path, dict_path = checkpoint([text for text, _ in train_data])
tokenizer = Tokenizer(str(dict_path), do_lower_case=True)


class Sentences(DataGenerator):
    """Batches of sentences. Tags: 0 outside; 2i + 1 first token, 2i + 2 later token of an entity of category i."""

    def __iter__(self, random=False):
        rows = []
        for is_end, (text, entities) in self.sample(random):
            tokens = tokenizer.tokenize(text, maxlen=maxlen)
            places = tokenizer.rematch(text, tokens)
            tags = np.zeros(len(tokens), int)
            for start, end, category in entities:
                inside = [i for i, place in enumerate(places) if place and start <= place[0] < end]
                tags[inside] = 2 * categories.index(category) + 2
                tags[inside[:1]] -= 1
            rows.append((tokenizer.tokens_to_ids(tokens), tags))
            if len(rows) == self.batch_size or is_end:
                token_ids, tags = (sequence_padding(column, maxlen) for column in zip(*rows))
                yield [token_ids, np.zeros_like(token_ids)], tags
                rows = []


keras.utils.set_random_seed(0)
bert = build_transformer_model(config_path, checkpoint_path)
hidden = bert.get_layer(f"Transformer-{layers - 1}-FeedForward-Norm").output
CRF = ConditionalRandomField(lr_multiplier=crf_lr_multiplier)
model = keras.models.Model(bert.input, CRF(keras.layers.Dense(2 * len(categories) + 1)(hidden)))
model.compile(loss=CRF.sparse_loss, optimizer=Adam(learning_rate), metrics=[CRF.sparse_accuracy])


class Recognizer(ViterbiDecoder):
    """Recognizes the entities of a text."""

    def recognize(self, text):
        tokens = tokenizer.tokenize(text, maxlen=maxlen)
        token_ids = sequence_padding([tokenizer.tokens_to_ids(tokens)], maxlen)
        tags = self.decode(model.predict([token_ids, np.zeros_like(token_ids)], verbose=0)[0])  # -1 at padding
        entities = []
        for place, tag in zip(tokenizer.rematch(text, tokens), tags):
            if tag > 0 and tag % 2:
                entities.append((place[0], place[-1] + 1, categories[tag // 2]))
            elif tag > 0 and entities and entities[-1][1:] == (place[0], categories[tag // 2 - 1]):
                entities[-1] = (entities[-1][0], place[-1] + 1, entities[-1][2])
        return entities


NER = Recognizer(trans=K.eval(CRF.trans), starts=[0], ends=[0])


class Evaluator(keras.callbacks.Callback):
    """Scores the test set at the end of each epoch and keeps the best weights."""

    best = 0.0

    def on_epoch_end(self, epoch, logs=None):
        NER.trans = K.eval(CRF.trans)
        scores = entity_scores([gold for _, gold in test_data], [NER.recognize(text) for text, _ in test_data])
        if scores["f"] >= self.best:
            self.best = scores["f"]
            model.save_weights("best_model.weights.h5")
        print(f"epoch {epoch + 1}: F1 {scores['f']:.4f}, best F1: {self.best:.4f}")


batches = Sentences(train_data, batch_size)
model.fit(batches.forfit(), steps_per_epoch=len(batches), epochs=epochs, callbacks=[Evaluator()], verbose=2)
model.load_weights("best_model.weights.h5")
NER.trans = K.eval(CRF.trans)
print(test_data[0][0], NER.recognize(test_data[0][0]))
