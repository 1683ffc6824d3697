"""kcrf export: writes the model of a run as one file that runs without Keras."""

import os
from argparse import Namespace
from importlib import import_module

from kcrf.commands.parsers import OVERWRITE, check_out
from kcrf.commands.quiet import quiet_import
from kcrf.extras import needs_extra

EPILOG = """The file contains the network, decoding, confidences and the vocabulary. `kcrf segment`, `tag`, `classify`
and kcrf.taggers accept an ONNX file instead of the run folder, and then need only onnxruntime. To write the
file, TensorFlow must be installed, whichever backend trained the model.

A linear model needs NumPy only. As a page, such as words.html, it segments or tags in the browser, without
a server or a network.

examples:
  kcrf export runs/mine --out mine.onnx
  kcrf export runs/mine --out small.onnx --int8
  kcrf export runs/linear --out words.html"""
OPTIONS = f"""
RUN_DIR          A folder that `kcrf train` wrote, or a linear model, a .npz file.
--format FORMAT:onnx  onnx: a file for onnxruntime. saved_model: a folder for TensorFlow and TensorFlow Serving.
                 [%(default)s]
--out PATH       What to write: .onnx, or for a linear model .npz or .html. [model.onnx or saved_model, in RUN_DIR]
--standard NAME  The segmentation standard of a model of several; the file has the model of this one. [the only one]
{OVERWRITE}
--int8           Quantize matrices and embeddings to 8-bit integers. The file has a quarter of the size and runs faster;
                 its scores differ slightly. [no]
"""


def run(options: Namespace) -> None:
    from kcrf.taggers.open_model import check_standard, is_linear, is_of_transformers, open_run

    opened = open_run(options.run_dir)
    data = opened.read_config().config.data  # refuses a folder that holds no run, before TensorFlow is imported
    check_standard(options.run_dir, data.standards, options.standard)
    name = "saved_model" if options.format == "saved_model" else "model.npz" if is_linear(opened) else "model.onnx"
    out = options.out or os.path.join(options.run_dir, name)
    if options.format == "onnx" and not is_linear(opened) and not out.endswith(".onnx"):
        raise ValueError(f"--out must end in .onnx; .npz and .html need --encoder linear. Received: {out}")
    if options.out is not None and options.format != "saved_model":  # a folder, which is never replaced
        check_out(out, overwrite=options.overwrite)
    elif not os.path.isdir(os.path.dirname(os.path.abspath(out))):
        raise FileNotFoundError(f"{out}: needs a folder that exists")
    if is_linear(opened):
        _write(options, out)
        return
    backend = "torch" if is_of_transformers(opened) else "tensorflow"
    os.environ["KERAS_BACKEND"] = backend
    with quiet_import(), needs_extra("export", "The file"):
        import_module(backend)
        _write(options, out)


def _write(options: Namespace, out: str) -> None:
    from kcrf.export import export_model

    export_model(options.run_dir, out, options.format, options.int8, options.standard)
    print(out)
