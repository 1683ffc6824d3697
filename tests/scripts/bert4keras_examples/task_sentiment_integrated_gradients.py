# ruff: noqa
import runpy

runpy.run_path("task_sentiment_albert.py", run_name="__main__")  # what `python task_sentiment_albert.py` leaves behind

from task_sentiment_albert import *
from keras.layers import Layer, Input
from kcrf.bert4keras.backend import K, batch_gather
from keras.models import Model
from kcrf.bert4keras.snippets import uniout
import numpy as np

# on any: class Gradient(Layer): call = lambda self, inputs: K.gradients(batch_gather(*inputs[1:]), inputs[:1])[0]
from kcrf.bert4keras.layers import GradientTimesInput as Gradient

label_in = Input(shape=(1,))
input = model.get_layer("Embedding-Token").output
output = model.output
grads = Gradient()([input, output, label_in])
grad_model = Model(model.inputs + [label_in], grads)

embeddings = model.get_layer("Embedding-Token").embeddings
values = K.eval(embeddings)
text, label = train_data[0]
token_ids, segment_ids = tokenizer.encode(text)
preds = model.predict([[token_ids], [segment_ids]])
label = np.argmax(preds[0])
pred_grads = []
n = 20
for i in range(n):
    alpha = 1.0 * i / (n - 1)
    K.set_value(embeddings, alpha * values)
    pred_grad = grad_model.predict([[token_ids], [segment_ids], [[label]]])[0]
    pred_grads.append(pred_grad)
pred_grads = np.mean(pred_grads, 0)

scores = np.sqrt((pred_grads**2).sum(axis=1))
scores = (scores - scores.min()) / (scores.max() - scores.min())
results = [(tokenizer.decode([t]), s) for t, s in zip(token_ids, scores.round(4))]
print(results[1:-1])
print("score:", len(results[1:-1]) / len(text))
