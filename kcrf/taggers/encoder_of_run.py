"""Opens the fine-tuned BERT of a complete run as a checkpoint from which another run starts."""

import tempfile
from contextlib import contextmanager

from kcrf.checkpoints import open_checkpoint
from kcrf.layers import TransformersEncoder
from kcrf.layers.transformers_encoder import check_backend
from kcrf.models import save_pretrained
from kcrf.readers import EncoderReader, PieceReader, encoder_reader
from kcrf.readers.pieces import lowest_layers
from kcrf.runs import RunFolder
from kcrf.runs.folder import is_run
from kcrf.runs.setup import load_setup
from kcrf.taggers.open_model import open_model


def reader_of(bert, layers=None, lower_case=None, word_case=False):
    """Creates the reader of a BERT, as `encoder_reader`. The folder may also be a run folder."""
    if not is_run(bert):
        reader = encoder_reader(bert, layers, lower_case, word_case)
        if "transformers" in reader.config:
            check_backend(bert)
        return reader
    reader_of_run = load_setup(RunFolder(bert)).reader
    if not isinstance(reader_of_run, EncoderReader):
        raise ValueError(f"{bert}: needs a run that was trained with --bert. Received: one without")
    reader = reader_of_run.with_config(lowest_layers(bert, reader_of_run.config, layers), word_case)
    if lower_case is None:
        return reader
    if not isinstance(reader, PieceReader):
        raise ValueError(f"{bert}: its tokenizer decides on lower case. Received: lower_case={lower_case}")
    return PieceReader(reader.config, reader.vocabulary, lower_case, word_case, **reader.splitting)


@contextmanager
def open_bert(bert):
    """A context with the checkpoint of a BERT. For a run, this is its fine-tuned BERT without the head of the run."""
    if bert is None or not is_run(bert):
        yield bert
        return
    standards = RunFolder(bert).read_config().config.data.standards
    network, _ = open_model(bert, standard=standards[0] if standards else None)  # all of them have the same BERT
    with tempfile.TemporaryDirectory() as folder:
        encoder = next((layer for layer in network.model.layers if isinstance(layer, TransformersEncoder)), None)
        if encoder is not None:
            encoder.module.save_pretrained(folder)
            yield folder
            return
        save_pretrained(network.model, folder)
        checkpoint = open_checkpoint(folder)
        checkpoint.path = bert  # the name in the load report
        yield checkpoint
