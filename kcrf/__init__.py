"""kcrf: sequence labelling with Keras.

`import kcrf` registers the layers, losses and optimizers with Keras, so that saved models load without `custom_objects`.
"""

__version__ = "0.1.0"
