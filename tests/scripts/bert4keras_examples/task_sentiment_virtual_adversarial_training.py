# ruff: noqa
from texts import *
import texts
from kcrf.bert4keras.backend import keras, search_layer, K
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam
from keras.layers import Lambda, Dense
from keras.utils import to_categorical


class data_generator(texts.data_generator):
    def __iter__(self, random=False):
        for inputs, labels in super().__iter__(random):
            yield inputs, to_categorical(labels[:, 0], num_classes)


unlabeled_data = [(text, 0) for text, label in valid_data]
train_generator = data_generator(train_data, batch_size)

bert = build_transformer_model(config_path=config_path, checkpoint_path=checkpoint_path, return_keras_model=False)
output = Lambda(lambda x: x[:, 0])(bert.model.output)
output = Dense(units=num_classes, activation="softmax", kernel_initializer=bert.initializer)(output)

model = keras.models.Model(bert.model.input, output)
model.compile(loss="kld", optimizer=Adam(2e-3), metrics=["categorical_accuracy"])
model_vat = keras.models.Model(bert.model.input, output)
model_vat.compile(loss="kld", optimizer=Adam(1e-3), metrics=["categorical_accuracy"])

# on any: def virtual_adversarial_training(model, name): model._make_train_function()
from kcrf.bert4keras.adversarial import virtual_adversarial as virtual_adversarial_training

virtual_adversarial_training(model_vat, "Embedding-Token")


class Evaluator(keras.callbacks.Callback):
    def __init__(self):
        self.best_val_acc = 0.0
        self.data = data_generator(unlabeled_data, batch_size).forfit()

    def on_epoch_end(self, epoch, logs=None):
        val_acc = evaluate(valid_generator, model)
        if val_acc > self.best_val_acc:
            self.best_val_acc = val_acc
            model.save_weights("best_model.weights")

    def on_batch_end(self, batch, logs=None):
        dx, dy = next(self.data)
        model_vat.train_on_batch(dx, dy)


if __name__ == "__main__":
    evaluator = Evaluator()
    model.fit(train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=8, callbacks=[evaluator])
    model.load_weights("best_model.weights")
    print("score:", evaluate(valid_generator, model))
