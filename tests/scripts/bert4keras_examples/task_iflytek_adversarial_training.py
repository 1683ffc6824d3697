# ruff: noqa
from texts import *
from kcrf.bert4keras.backend import keras, search_layer, K
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam
from keras.layers import Lambda, Dense

bert = build_transformer_model(config_path=config_path, checkpoint_path=checkpoint_path, return_keras_model=False)
output = Lambda(lambda x: x[:, 0])(bert.model.output)
output = Dense(units=num_classes, activation="softmax", kernel_initializer=bert.initializer)(output)
model = keras.models.Model(bert.model.input, output)
model.summary()
model.compile(loss="sparse_categorical_crossentropy", optimizer=Adam(3e-3), metrics=["sparse_categorical_accuracy"])

# on any: def adversarial_training(model, name, epsilon): model._make_train_function()
from kcrf.bert4keras.adversarial import adversarial as adversarial_training

adversarial_training(model, "Embedding-Token", 0.5)

if __name__ == "__main__":
    evaluator = Evaluator()
    model.fit(train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=24, callbacks=[evaluator])
    model.load_weights("best_model.weights")
    predict_to_file("classes.test.json", "predicted.json", model)
    print("score:", evaluate(valid_generator, model))
