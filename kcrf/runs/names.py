"""The names of the files in a run folder."""

TOKENIZER = "tokenizer.json"
VECTORS, VOCABULARY, VOCAB, BERT_CONFIG = "vectors.npz", "vocabulary.json", "vocab.txt", "bert_config.json"
CONFIG, WEIGHTS, LINEAR = "config.json", "model.weights.h5", "model.linear.npz"
VALIDATED = "validated.weights.h5"  # while a model learns all sentences: of the one that judges the held-out ones
STATE, TEACHER, TEACHER_WORDS, ESTIMATES = "state.npz", "teacher.npz", "teacher_words.npz", "estimates.jsonl"
LOG, TRANSITIONS, PREDICTIONS, SCORES = "log.csv", "transitions.json", "predictions.jsonl", "scores.json"
SETUP = (TEACHER_WORDS, VECTORS, VOCABULARY, VOCAB, TOKENIZER, BERT_CONFIG)  # files that are written before config.json
# In the order in which they are written.
FILES = (ESTIMATES, CONFIG, *SETUP, TEACHER, VALIDATED, WEIGHTS, LINEAR, LOG, TRANSITIONS, PREDICTIONS, STATE, SCORES)
