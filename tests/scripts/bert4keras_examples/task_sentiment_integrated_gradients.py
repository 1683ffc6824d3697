# ruff: noqa
import runpy

runpy.run_path("task_sentiment_albert.py", run_name="__main__")  # what `python task_sentiment_albert.py` leaves behind

from task_sentiment_albert import *
from keras.layers import Layer, Input
from kcrf.backend import K, batch_gather
from keras.models import Model
from kcrf.snippets import uniout
import numpy as np

# on any:
from kcrf.attribution import integrated_gradients

text, label = train_data[0]
token_ids, segment_ids = tokenizer.encode(text)
preds = model.predict([[token_ids], [segment_ids]])
label = np.argmax(preds[0])
# on any: pred_grads = K.gradients(model.output[:, label], [model.get_layer("Embedding-Token").output])[0]
pred_grads = integrated_gradients(model, [[token_ids], [segment_ids]], [label])[0]

scores = np.sqrt((pred_grads**2).sum(axis=1))
scores = (scores - scores.min()) / (scores.max() - scores.min())
results = [(tokenizer.decode([t]), s) for t, s in zip(token_ids, scores.round(4))]
print(results[1:-1])
print("score:", len(results[1:-1]) / len(text))
