# ruff: noqa
from texts import *
from kcrf.bert4keras.backend import keras, K
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.optimizers import Adam, extend_with_piecewise_linear_lr
from keras.layers import Input, Lambda, Dense, Layer

# on any: from keras.models import Model
from kcrf.bert4keras.models import Keras2Model as Model


class BinaryRandomChoice(Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_mask(self, inputs, mask=None):
        if mask is not None:
            return mask[1]

    def call(self, inputs):
        source, target = inputs
        mask = K.random_binomial(shape=[1], p=0.5)
        output = mask * source + (1 - mask) * target
        return K.in_train_phase(output, target)

    def compute_output_shape(self, input_shape):
        return input_shape[1]


def bert_of_theseus(predecessor, successor, classfier):
    inputs = predecessor.inputs
    for layer in predecessor.model.layers:
        layer.trainable = False
    classfier.trainable = False
    predecessor_outputs = predecessor.apply_embeddings(inputs)
    successor_outputs = successor.apply_embeddings(inputs)
    outputs = BinaryRandomChoice()([predecessor_outputs, successor_outputs])
    layers_per_module = predecessor.num_hidden_layers // successor.num_hidden_layers
    for index in range(successor.num_hidden_layers):
        predecessor_outputs = outputs
        for sub_index in range(layers_per_module):
            predecessor_outputs = predecessor.apply_main_layers(
                predecessor_outputs, layers_per_module * index + sub_index
            )
        successor_outputs = successor.apply_main_layers(outputs, index)
        outputs = BinaryRandomChoice()([predecessor_outputs, successor_outputs])
    return Model(inputs, classfier(outputs))


predecessor = build_transformer_model(
    config_path=config_path, checkpoint_path=checkpoint_path, return_keras_model=False, prefix="Predecessor-"
)
successor = build_transformer_model(
    config_path=config_path,
    checkpoint_path=checkpoint_path,
    return_keras_model=False,
    num_hidden_layers=1,
    prefix="Successor-",
)

x_in = Input(shape=K.int_shape(predecessor.output)[1:])
x = Lambda(lambda x: x[:, 0])(x_in)
x = Dense(units=num_classes, activation="softmax")(x)
classfier = Model(x_in, x)


def compiled(model):
    model.compile(loss="sparse_categorical_crossentropy", optimizer=Adam(2e-3), metrics=["sparse_categorical_accuracy"])
    return model


predecessor_model = compiled(Model(predecessor.inputs, classfier(predecessor.output)))
successor_model = compiled(Model(successor.inputs, classfier(successor.output)))
theseus_model = compiled(bert_of_theseus(predecessor, successor, classfier))

if __name__ == "__main__":

    def train(model, name, epochs):
        fit_to = {"steps_per_epoch": len(train_generator), "epochs": epochs, "callbacks": [Evaluator(name)]}
        model.fit(train_generator.forfit(), **fit_to)
        model.load_weights(name)
        return evaluate(valid_generator, model)

    scores = [train(predecessor_model, "best_predecessor.weights", 7)]
    scores += [train(theseus_model, "best_theseus.weights", 5)]
    scores += [train(successor_model, "best_successor.weights", 2)]
    print(scores)
    print("score:", min(scores))
