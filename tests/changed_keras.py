"""A fixture with the changes that `kcrf.bert4keras` makes to Keras; every test without it runs without them."""

import pytest

import kcrf.bert4keras

kcrf.bert4keras.restore_keras()  # importing made them


@pytest.fixture
def changed_keras():
    kcrf.bert4keras.change_keras()
    yield
    kcrf.bert4keras.restore_keras()
