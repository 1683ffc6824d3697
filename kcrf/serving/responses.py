"""The members of responses, for FastAPI to describe."""

from pydantic import BaseModel, Field, create_model

_START = "Its first character, counted from 0 in Unicode code points."
_END = "The character after its last one."
_PROBABILITY = "The posterior probability of exactly this span with its label. Not in alternatives."
_TOGETHER = "The joint probability of the whole analysis."
_ALTERNATIVES = "Best first, if `k_best` is above 0."


class Span(BaseModel):
    """A word, an entity or a token, and its place in the text. White space belongs to no word."""

    start: int = Field(description=_START)
    end: int = Field(description=_END)
    text: str
    label: str | None = Field(None, description="The entity type, or the class of the word or token.")
    probability: float | None = Field(None, description=_PROBABILITY)


class Segmentation(BaseModel):
    """One of the most probable segmentations of a text."""

    probability: float = Field(description=_TOGETHER)
    words: list[Span]


class Analysis(BaseModel):
    """One of the most probable sets of entities of a text."""

    probability: float = Field(description=_TOGETHER)
    entities: list[Span]


class Words(BaseModel):
    """The words of a text."""

    words: list[Span]
    alternatives: list[Segmentation] | None = Field(None, description=_ALTERNATIVES)


class Entities(BaseModel):
    """The entities of a text."""

    entities: list[Span]
    alternatives: list[Analysis] | None = Field(None, description=_ALTERNATIVES)


class Tokens(BaseModel):
    """The tokens of a text."""

    tokens: list[Span]


class Label(BaseModel):
    """The label of a text, or a number."""

    label: str | float
    probability: float | None = Field(description="Of the label. null for a number.")
    probabilities: dict[str, float] = Field(description="Of each label. Empty for a number.")


class Problem(BaseModel):
    """Why a request was refused."""

    error: str


class Model(BaseModel):
    """A model of the server."""

    name: str
    task: str = Field(description="cws, cws-pos, ner, pos or classify")
    path: str = Field(description="The path of its requests.")
    labels: list[str] = Field(
        description="The types of entities, the classes of words or tokens, or the labels of texts."
    )
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


def _response(name: str, result: type[BaseModel]) -> type[BaseModel]:
    """The results of the texts, in their order."""
    return create_model(name, model=(str, ...), results=(list[result], ...))  # type: ignore[valid-type]


RESPONSES = {
    "/segment": _response("SegmentResponse", Words),
    "/tag": _response("TagResponse", Entities),
    "/pos": _response("PosResponse", Tokens),
    "/classify": _response("ClassifyResponse", Label),
}
