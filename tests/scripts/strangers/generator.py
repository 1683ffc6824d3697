# ruff: noqa
# BERT made from numbers, a generator with its own __init__ and random=True, weight decay that spares some weights.
# Not part of kcrf's code: tests/scripts/test_porting.py runs it with `bert4keras` turned into `kcrf.bert4keras` in the import lines.
import json
import numpy as np
from bert4keras.backend import keras, K, set_gelu
from bert4keras.models import build_transformer_model
from bert4keras.tokenizers import Tokenizer, load_vocab
from bert4keras.optimizers import Adam, extend_with_weight_decay
from bert4keras.snippets import sequence_padding, DataGenerator, string_matching
from bert4keras.snippets import ViterbiDecoder, to_array
from bert4keras.layers import ConditionalRandomField
from keras.layers import Dense, Dropout

set_gelu('tanh')
np.random.seed(1)
texts = ['小猫在屋里睡觉', '大狗在院子里跑', '小鸟飞走了', '大鱼在河里游', '小马和大牛吃草']
animals = ['小猫', '大狗', '小鸟', '大鱼', '小马', '大牛']
with open('vocab.txt', 'w', encoding='utf-8') as f:
    f.write('\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] + sorted(set(''.join(texts)))))
json.dump(
    {'vocab_size': 64, 'hidden_size': 32, 'num_hidden_layers': 2, 'num_attention_heads': 2, 'hidden_act': 'gelu',
     'intermediate_size': 64, 'max_position_embeddings': 64, 'type_vocab_size': 2},
    open('config.json', 'w')
)
tokenizer = Tokenizer(load_vocab('vocab.txt'), do_lower_case=True)


class MyGenerator(DataGenerator):
    def __init__(self, data, maxlen, **kwargs):
        super(MyGenerator, self).__init__(data, **kwargs)
        self.maxlen = maxlen

    def __iter__(self, random=True):
        T, S, L = [], [], []
        for is_end, text in self.sample(random):
            tokens = tokenizer.tokenize(text, maxlen=self.maxlen)
            mapping = tokenizer.rematch(text, tokens)
            labels = [0] * len(tokens)
            for i, m in enumerate(mapping[:-1]):
                if m and text[m[0]:m[0] + 2] in animals:
                    labels[i], labels[i + 1] = 1, 2
            T.append(tokenizer.tokens_to_ids(tokens))
            S.append([0] * len(tokens))
            L.append(labels)
            if len(T) == self.batch_size or is_end:
                yield [sequence_padding(T), sequence_padding(S)], sequence_padding(L)
                T, S, L = [], [], []


bert = build_transformer_model('config.json', return_keras_model=False)
output = Dropout(0.1)(bert.model.output)
output = Dense(3, kernel_initializer=bert.initializer)(output)
CRF = ConditionalRandomField(lr_multiplier=100)
model = keras.models.Model(bert.model.input, CRF(output))
model.summary()

AdamW = extend_with_weight_decay(Adam, 'AdamW')
optimizer = AdamW(learning_rate=3e-3, weight_decay_rate=0.01, exclude_from_weight_decay=['Norm', 'bias'])
model.compile(loss=CRF.sparse_loss, optimizer=optimizer, metrics=[CRF.sparse_accuracy])
train = MyGenerator([t + '。' for t in texts * 20] + texts * 20, maxlen=32, batch_size=20)
model.fit(train.forfit(random=True), steps_per_epoch=len(train), epochs=3, verbose=2)

decoder = ViterbiDecoder(trans=K.eval(CRF.trans), starts=[0], ends=[0])
right = total = 0
for text in ['大狗和小猫吃草', '小鸟在河里', '小马在屋里睡觉']:
    tokens = tokenizer.tokenize(text)
    token_ids, segment_ids = to_array([tokenizer.tokens_to_ids(tokens)], [[0] * len(tokens)])
    labels = decoder.decode(model.predict([token_ids, segment_ids], verbose=0)[0])
    mapping = tokenizer.rematch(text, tokens)
    found = [text[mapping[i][0]:mapping[i][0] + 2] for i, l in enumerate(labels) if l == 1]
    right += len(set(found) & set(animals))
    total += sum(a in text for a in animals)
assert string_matching('Transformer-0-FeedForward-Norm/gamma', ['Norm'])
print('score: %.4f' % (right / total))
