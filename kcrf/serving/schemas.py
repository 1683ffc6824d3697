"""The members of requests and responses, for FastAPI to check and to describe."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

from kcrf.serving.limits import Limits

_CONFIG = ConfigDict(extra="forbid", strict=True)
_LONGEST_WORD = 64  # characters, of a user dictionary
_MODEL = "The name of a model, as `/models` lists them. By default the first one for this path."
_STANDARD = "The segmentation standard, for a model of several."
_K_BEST = "Number of most probable analyses to add as `alternatives`."
_WORDS = "A user dictionary: words that are always segmented as words."
_LEAST = "Return every entity with at least this probability, above 0 and below 1. By default the best analysis."
_PAIRS = "Texts; or pairs of texts, as lists of two strings, for a model that was trained on pairs."


def request_models(limits: Limits) -> dict[str, type[BaseModel]]:
    """The pydantic models of the bodies of requests, by their paths."""
    text = Annotated[str, Field(max_length=limits.length)]
    pair = Annotated[list[text], Field(min_length=2, max_length=2)]  # type: ignore[valid-type]
    word = Annotated[str, Field(max_length=_LONGEST_WORD), AfterValidator(_word)]
    k_best = (int, Field(0, ge=0, le=limits.k_best, description=_K_BEST))
    standard = (str | None, Field(None, description=_STANDARD))
    words = (list[word], Field([], max_length=limits.words, description=_WORDS))  # type: ignore[valid-type]
    least = (float | None, Field(None, gt=0, lt=1, description=_LEAST))

    def model(name: str, item: Any, description: str, **members: Any) -> type[BaseModel]:
        texts = (list[item], Field(max_length=limits.texts, description=description))
        members |= {"texts": texts, "model": (str | None, Field(None, description=_MODEL))}
        return create_model(name, __config__=_CONFIG, **members)

    return {
        "/segment": model("SegmentRequest", text, "Texts to segment.", k_best=k_best, standard=standard, words=words),
        "/tag": model("TagRequest", text, "Texts whose entities to recognize.", k_best=k_best, min_probability=least),
        "/pos": model("PosRequest", text, "Texts to tag, with spaces between the tokens."),
        "/classify": model("ClassifyRequest", text | pair, _PAIRS),  # type: ignore[operator]
    }


def _word(value: str) -> str:
    if value.split() != [value]:
        raise PydanticCustomError("word", "Needs a word without white space")
    return value


class Span(BaseModel):
    """A word, an entity or a token, and its place in the text. White space belongs to no word."""

    start: int = Field(description="Its first character, counted from 0 in Unicode code points.")
    end: int = Field(description="The character after its last one.")
    text: str
    label: str | None = Field(None, description="The entity type, or the class of the word or token.")
    probability: float | None = Field(
        None, description="The posterior probability of exactly this span with its label. Not in alternatives."
    )


class Label(BaseModel):
    """The label of a text, its labels if it can have several, or a number."""

    label: str | list[str] | float
    probability: float | None = Field(description="Of the label, or of exactly these labels. null for a number.")
    probabilities: dict[str, float] = Field(description="Of each label. Empty for a number.")


class Problem(BaseModel):
    """Why a request was refused."""

    error: str


class Model(BaseModel):
    """A model of the server."""

    name: str
    task: str = Field(description="cws, cws-pos, ner, pos or classify")
    path: str = Field(description="The path of its requests.")
    labels: list[str] = Field(description="The entity types, the classes of words or tokens, or the labels of texts.")
    pairs: bool = Field(description="Whether it classifies pairs of texts.")
    units: str | None = Field(description="For entities: characters or words.")
    standard: str | None = Field(None, description="The segmentation standard, of a model of several.")


class Models(BaseModel):
    """The models of the server, and the limits of requests."""

    models: list[Model]
    limits: dict[str, float]


class Health(BaseModel):
    """Whether the models can compute."""

    status: str
    version: str


def _with_alternatives(name: str, alternative: str, members: str) -> type[BaseModel]:
    """The spans of a text, and its most probable analyses."""
    spans: Any = {members: (list[Span], ...)}
    probability = (float, Field(description="The joint probability of the whole analysis."))
    analysis = create_model(alternative, probability=probability, **spans)
    several: Any = list[analysis] | None  # type: ignore[valid-type]
    best = (several, Field(None, description="Best first, if `k_best` is above 0."))
    return create_model(name, alternatives=best, **spans)


def _response(name: str, result: type[BaseModel]) -> type[BaseModel]:
    """The results of the texts, in their order."""
    return create_model(name, model=(str, ...), results=(list[result], ...))  # type: ignore[valid-type]


RESPONSES = {
    "/segment": _response("SegmentResponse", _with_alternatives("Words", "Segmentation", "words")),
    "/tag": _response("TagResponse", _with_alternatives("Entities", "Analysis", "entities")),
    "/pos": _response("PosResponse", create_model("Tokens", tokens=(list[Span], ...))),
    "/classify": _response("ClassifyResponse", Label),
}
