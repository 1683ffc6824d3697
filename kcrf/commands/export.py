"""kcrf export: the model of a run as one file that runs without Keras."""

import os

from kcrf.commands.parsers import add_command
from kcrf.commands.quiet import quiet_import

__all__ = ["add_export"]


def add_export(commands):
    """Adds `kcrf export`."""
    add_command(commands, "export", "Write a trained model as a file that runs without Keras.", _add_options, _export)


def _add_options(parser):
    parser.epilog = (
        "The file holds network, decoding, confidences and vocabulary. `kcrf segment`, `tag`, `classify` and\n"
        "kcrf.taggers take it in place of the run folder and need onnxruntime only. TensorFlow is needed to write it,\n"
        "whichever backend trained the model.\n\n"
        "examples:\n  kcrf export runs/mine --out mine.onnx\n  kcrf export runs/mine --out small.onnx --int8"
    )
    parser.add_argument("run_dir", metavar="RUN_DIR", help="A folder that `kcrf train` wrote.")
    parser.add_argument(
        "--format",
        choices=["onnx"],
        default="onnx",
        help="What is written. onnx: a file for onnxruntime. [%(default)s]",
    )
    parser.add_argument("--out", metavar="FILE", help="The file to write. [model.onnx in RUN_DIR]")
    parser.add_argument(
        "--int8",
        action="store_true",
        help="Integers of 8 bits for matrices and embeddings: a quarter of the size and faster, with slightly other "
        "scores. [no]",
    )


def _export(options):
    from kcrf.runs import RunFolder

    RunFolder(options.run_dir).read_config()  # refuses a folder that holds no run, before TensorFlow is imported
    out = options.out or os.path.join(options.run_dir, "model.onnx")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    with quiet_import():
        from kcrf.export import export_onnx

        export_onnx(options.run_dir, out, options.int8)
    print(out)
