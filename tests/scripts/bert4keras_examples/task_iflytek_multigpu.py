# ruff: noqa
import os

# deleted on any: os.environ["TF_KERAS"] = "1"
import tensorflow as tf
from texts import *
from kcrf.bert4keras.backend import keras, K
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam
from kcrf.bert4keras.snippets import to_array
from keras.layers import Lambda, Dense


class data_generator(DataGenerator):
    def __iter__(self, random=False):
        for is_end, (text, label) in self.sample(random):
            token_ids, segment_ids = tokenizer.encode(text, maxlen=maxlen)
            yield [token_ids, segment_ids], [[label]]


train_generator, valid_generator = data_generator(train_data, batch_size), data_generator(valid_data, batch_size)
strategy = tf.distribute.MirroredStrategy()

with strategy.scope():
    bert = build_transformer_model(config_path=config_path, checkpoint_path=None, return_keras_model=False)
    output = Lambda(lambda x: x[:, 0])(bert.model.output)
    output = Dense(num_classes, activation="softmax", kernel_initializer=bert.initializer, name="Probas")(output)
    model = keras.models.Model(bert.model.input, output)
    model.compile(loss="sparse_categorical_crossentropy", optimizer=Adam(2e-3), metrics=["sparse_categorical_accuracy"])
    bert.load_weights_from_checkpoint(checkpoint_path)


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.best_val_acc = 0.0

    def on_epoch_end(self, epoch, logs=None):
        if logs["sparse_categorical_accuracy"] > self.best_val_acc:
            self.best_val_acc = logs["sparse_categorical_accuracy"]
            model.save_weights("best_model.weights")


if __name__ == "__main__":
    train_dataset, valid_dataset = (
        generator.to_dataset(
            types=[("float32", "float32"), ("float32",)],
            shapes=[([None], [None]), ([1],)],
            names=[("Input-Token", "Input-Segment"), ("Probas",)],
            padded_batch=True,
        )
        for generator in (train_generator, valid_generator)
    )
    model.fit(
        train_dataset,
        steps_per_epoch=len(train_generator),
        epochs=8,
        validation_data=valid_dataset,
        validation_steps=len(valid_generator),
        callbacks=[Evaluator()],
    )
    model.load_weights("best_model.weights")
    right = 0
    for text, label in valid_data:
        token_ids, segment_ids = to_array(*([x] for x in tokenizer.encode(text, maxlen=maxlen)))
        right += int(model.predict([token_ids, segment_ids])[0].argmax() == label)
    print("score:", right / len(valid_data))
