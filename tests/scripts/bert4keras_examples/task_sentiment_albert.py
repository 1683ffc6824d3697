# ruff: noqa
from texts import *
from kcrf.bert4keras.backend import keras, set_gelu
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam, extend_with_piecewise_linear_lr
from keras.layers import Lambda, Dense

set_gelu("tanh")
bert = build_transformer_model(
    config_path="albert/config.json",
    checkpoint_path="albert/model.safetensors",
    model="albert",
    return_keras_model=False,
)
output = Lambda(lambda x: x[:, 0], name="CLS-token")(bert.model.output)
output = Dense(units=num_classes, activation="softmax", kernel_initializer=bert.initializer)(output)
model = keras.models.Model(bert.model.input, output)
model.summary()

AdamLR = extend_with_piecewise_linear_lr(Adam, name="AdamLR")
model.compile(
    loss="sparse_categorical_crossentropy",
    optimizer=AdamLR(learning_rate=3e-3, lr_schedule={10: 1, 60: 0.1}),
    metrics=["accuracy"],
)

if __name__ == "__main__":
    evaluator = Evaluator()
    model.fit(train_generator.forfit(), steps_per_epoch=len(train_generator), epochs=10, callbacks=[evaluator])
    model.load_weights("best_model.weights")
    print("score:", evaluate(valid_generator, model))
else:
    model.load_weights("best_model.weights")
