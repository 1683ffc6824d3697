"""The names of the files in a run folder."""

VECTORS, VOCABULARY, VOCAB, BERT_CONFIG = "vectors.npz", "vocabulary.json", "vocab.txt", "bert_config.json"
CONFIG, WEIGHTS, LINEAR = "config.json", "model.weights.h5", "model.linear.npz"
STATE, TEACHER, ESTIMATES = "state.npz", "teacher.npz", "estimates.jsonl"
LOG, TRANSITIONS, PREDICTIONS, SCORES = "log.csv", "transitions.json", "predictions.jsonl", "scores.json"
SETUP = (VECTORS, VOCABULARY, VOCAB, BERT_CONFIG)  # files that are written before config.json
# In the order in which they are written.
FILES = (ESTIMATES, CONFIG, *SETUP, TEACHER, WEIGHTS, LINEAR, LOG, TRANSITIONS, PREDICTIONS, STATE, SCORES)
