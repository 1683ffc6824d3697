"""The members of requests, for FastAPI to check and to describe."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

_LONGEST_WORD = 64  # characters, of a user dictionary
_CONFIG = ConfigDict(extra="forbid", strict=True)
_MODEL = "The name of a model, as `/models` lists them. By default the first one for this path."
_STANDARD = "The segmentation standard, for a model of several."
_WORDS = "A user dictionary: words that are always segmented as words."
_LEAST = "Return every entity with at least this probability, above 0 and below 1. By default the best analysis."
_K_BEST = "Number of most probable analyses to add as `alternatives`."


def request_models(limits):
    """The pydantic models of the bodies of requests, by their paths."""
    text = Annotated[str, Field(max_length=limits.length)]
    pair = Annotated[list[text], Field(min_length=2, max_length=2)]
    k_best = (int, Field(0, ge=0, le=limits.k_best, description=_K_BEST))
    standard = (str | None, Field(None, description=_STANDARD))
    word = Annotated[str, Field(max_length=_LONGEST_WORD), AfterValidator(_word)]
    words = (list[word], Field([], max_length=limits.words, description=_WORDS))
    least = (float | None, Field(None, gt=0, lt=1, description=_LEAST))
    pairs = "Texts; or pairs of texts, as lists of two strings, for a model that was trained on pairs."
    return {
        "/segment": _model(
            "SegmentRequest", limits, text, "Texts to segment.", k_best=k_best, standard=standard, words=words
        ),
        "/tag": _model(
            "TagRequest", limits, text, "Texts whose entities to recognize.", k_best=k_best, min_probability=least
        ),
        "/pos": _model("PosRequest", limits, text, "Texts to tag, with spaces between the tokens."),
        "/classify": _model("ClassifyRequest", limits, text | pair, pairs),
    }


def _word(value):
    if value.split() != [value]:
        raise PydanticCustomError("word", "Needs a word without white space")
    return value


def _model(name, limits, item, description, **fields) -> type[BaseModel]:
    texts = (list[item], Field(max_length=limits.texts, description=description))
    return create_model(
        name, __config__=_CONFIG, texts=texts, model=(str | None, Field(None, description=_MODEL)), **fields
    )
