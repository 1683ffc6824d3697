import re
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
version = re.search(r'__version__ = "(.+)"', (here / "kcrf/version.py").read_text(encoding="utf-8")).group(1)

setup(
    name="kcrf",
    version=version,
    description="Sequence labelling with Keras: a CRF that learns, on top of anything",
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["kcrf", "kcrf.*"]),
    package_data={"kcrf.corpora": ["data/*"], "kcrf.reports": ["report.css"], "kcrf.serving": ["page.*"]},
    install_requires=["keras>=3.15", "numpy>=2.0", "rich>=13.0"],
    extras_require={
        "tensorflow": ["tensorflow>=2.21"],
        "jax": ["jax>=0.10"],
        "torch": ["torch>=2.11"],
        "onnx": ["onnxruntime>=1.20"],
        "export": ["onnx>=1.17", "onnxruntime>=1.20", "tensorflow>=2.21", "tf2onnx>=1.17"],
        "reports": ["matplotlib>=3.9"],
        "serve": ["fastapi>=0.165", "uvicorn>=0.54"],
        "transformers": ["tokenizers>=0.20"],
        "docs": ["mkdocs>=1.6", "mkdocs-material>=9.8", "mkdocstrings>=1.0", "mkdocstrings-python>=2.0"],
        "test": [
            "hypothesis>=6.100",
            "jieba>=0.42.1",
            "pytest>=8.0",
            "pytorch-crf>=0.7.2",
            "ruff>=0.9",
            "safetensors>=0.4",
            "tensorboard>=2.21",
            "tokenizers>=0.20",
            "transformers>=4.50",
        ],
    },
    entry_points={"console_scripts": ["kcrf=kcrf.commands:main"]},
)
