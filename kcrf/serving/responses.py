"""The members of responses, for FastAPI to describe."""

from pydantic import BaseModel, Field

_START = "Its first character, counted from 0 in Unicode code points."
_END = "The character after its last one."
_CONFIDENCE = "The posterior probability of exactly this span with its label. Not in alternatives."
_TOGETHER = "The joint probability of the whole analysis."


class Word(BaseModel):
    """A word and its place in the text. White space belongs to no word."""

    text: str
    start: int = Field(description=_START)
    end: int = Field(description=_END)
    label: str | None = Field(None, description="The class of the word, if the model has classes.")
    confidence: float | None = Field(None, description=_CONFIDENCE)


class Entity(BaseModel):
    """An entity and its place in the text."""

    start: int = Field(description=_START)
    end: int = Field(description=_END)
    label: str
    text: str
    confidence: float | None = Field(None, description=_CONFIDENCE)


class Segmentation(BaseModel):
    """One of the most probable segmentations of a text."""

    probability: float = Field(description=_TOGETHER)
    words: list[Word]


class Analysis(BaseModel):
    """One of the most probable sets of entities of a text."""

    probability: float = Field(description=_TOGETHER)
    entities: list[Entity]


class Words(BaseModel):
    """The words of a text."""

    words: list[Word]
    alternatives: list[Segmentation] | None = Field(None, description="Best first, if `top_k` is above 0.")


class Entities(BaseModel):
    """The entities of a text."""

    entities: list[Entity]
    alternatives: list[Analysis] | None = Field(None, description="Best first, if `top_k` is above 0.")


class Token(BaseModel):
    """A token of a text, and its class."""

    text: str
    start: int = Field(description=_START)
    end: int = Field(description=_END)
    label: str
    confidence: float = Field(description="The posterior probability of the class.")


class Tokens(BaseModel):
    """The tokens of a text."""

    tokens: list[Token]


class Label(BaseModel):
    """The label of a text, or a number."""

    label: str | float
    probability: float | None = Field(description="Of the label. null for a number.")
    probabilities: dict[str, float] = Field(description="Of each label. Empty for a number.")


class SegmentResponse(BaseModel):
    """The results of the texts, in their order."""

    model: str
    results: list[Words]


class TagResponse(BaseModel):
    """The results of the texts, in their order."""

    model: str
    results: list[Entities]


class PosResponse(BaseModel):
    """The results of the texts, in their order."""

    model: str
    results: list[Tokens]


class ClassifyResponse(BaseModel):
    """The results of the texts, in their order."""

    model: str
    results: list[Label]


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
    standard: str | None = Field(None, description="The segmentation standard, of a model of several.")


class Models(BaseModel):
    """The models of the server, and the limits of requests."""

    models: list[Model]
    limits: dict[str, float]


class Health(BaseModel):
    """Whether the models can compute."""

    status: str
    version: str


RESPONSES = {"/segment": SegmentResponse, "/tag": TagResponse, "/pos": PosResponse, "/classify": ClassifyResponse}
