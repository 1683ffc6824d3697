"""The networks of taggers and classifiers: built in Keras, linear, or in an exported file. Imports no Keras."""

from kcrf.networks.network import ClassificationNetwork, KerasNetwork, TaggingNetwork, TrainedNetwork

__all__ = []
