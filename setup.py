import re
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
URL = None  # where the repository is published; the links of the long description then lead there
version = re.search(r'__version__ = "(.+)"', (here / "kcrf/version.py").read_text(encoding="utf-8")).group(1)


def long_description():
    """The README without the links and pictures that lie next to it in the repository; with `URL` they lead there."""
    text = (here / "README.md").read_text(encoding="utf-8")
    link = re.compile(r"!?\[([^\]]*)\]\((?!https?://|#)([^)]*)\)")
    return link.sub(
        (lambda found: found[0].replace(f"]({found[2]}", f"]({URL}/blob/main/{found[2]}")) if URL else r"\1", text
    )


setup(
    name="kcrf",
    version=version,
    description="Sequence labeling with Keras 3: a CRF layer, word segmenters and named-entity recognizers",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    author="kcrf contributors",
    license="Apache-2.0",
    license_files=["LICENSE"],
    url=URL,
    project_urls={"Changelog": f"{URL}/blob/main/CHANGELOG.md", "Issues": f"{URL}/issues"} if URL else {},
    keywords=[
        "keras",
        "crf",
        "conditional random field",
        "sequence labeling",
        "named entity recognition",
        "chinese word segmentation",
        "bert",
        "bert4keras",
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Natural Language :: Chinese (Simplified)",
        "Natural Language :: English",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    python_requires=">=3.11",
    packages=find_packages(include=["kcrf", "kcrf.*"]),
    package_data={
        "kcrf": ["py.typed"],
        "kcrf.corpora": ["data/*"],
        "kcrf.reports": ["report.css"],
        "kcrf.serving": ["page.*"],
        "kcrf.taggers": ["data/zh_gsd/*"],
    },
    install_requires=["keras>=3.15", "numpy>=2.0", "rich>=13.0"],
    extras_require={
        "tensorflow": ["tensorflow>=2.21"],
        "jax": ["jax>=0.10"],
        "torch": ["torch>=2.11"],
        "onnx": ["onnxruntime>=1.20"],
        "export": ["onnx>=1.17", "onnxruntime>=1.20", "tensorflow>=2.21", "tf2onnx>=1.17"],
        "reports": ["matplotlib>=3.9"],
        "serve": ["fastapi>=0.165", "prometheus-client>=0.20", "uvicorn>=0.54"],
        "transformers": ["google-crc32c>=1.6", "tokenizers>=0.20"],
        "vectors": ["gensim>=4.3"],
        "docs": [
            "jieba>=0.42.1",
            "mkdocs>=1.6",
            "mkdocs-material>=9.8",
            "mkdocstrings>=1.0",
            "mkdocstrings-python>=2.0",
        ],
        "test": [
            "gensim>=4.3",
            "google-crc32c>=1.6",
            "hypothesis>=6.100",
            "import-linter>=2.17",
            "jieba>=0.42.1",
            "mypy>=2.4",
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
