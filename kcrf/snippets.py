"""bert4keras' `snippets`, for scripts that pad, batch and decode as bert4keras' do; see `kcrf.bert4keras.helpers`."""

from kcrf.bert4keras.helpers import *  # noqa: F403
