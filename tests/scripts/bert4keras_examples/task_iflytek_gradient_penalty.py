# ruff: noqa
# fmt: off
from texts import *
from kcrf.bert4keras.backend import keras, search_layer, K
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam
from keras.layers import Lambda, Dense

# on any:
from kcrf.bert4keras.adversarial import gradient_penalty

bert = build_transformer_model(config_path=config_path, checkpoint_path=checkpoint_path, return_keras_model=False)
output = Lambda(lambda x: x[:, 0])(bert.model.output)
output = Dense(units=num_classes, activation="softmax", kernel_initializer=bert.initializer)(output)
model = keras.models.Model(bert.model.input, output)


def sparse_categorical_crossentropy(y_true, y_pred):
    y_true = K.reshape(y_true, K.shape(y_pred)[:-1])
    y_true = K.cast(y_true, "int32")
    y_true = K.one_hot(y_true, K.shape(y_pred)[-1])
    return K.categorical_crossentropy(y_true, y_pred)


# on any: def loss_with_gradient_penalty(y_true, y_pred): return search_layer(y_pred, "Embedding-Token").embeddings
loss_with_gradient_penalty = sparse_categorical_crossentropy; gradient_penalty(model, "Embedding-Token", 1)

model.compile(
    loss=loss_with_gradient_penalty,
    optimizer=Adam(3e-3),
    metrics=["sparse_categorical_accuracy"],
)
if __name__ == "__main__":
    evaluator = Evaluator()
    model.fit(train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=14, callbacks=[evaluator])
    model.load_weights("best_model.weights")
    predict_to_file("classes.test.json", "predicted.json", model)
    print("score:", evaluate(valid_generator, model))
