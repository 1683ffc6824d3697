"""Several segmentation standards in one model: a lexicon for each."""

from collections.abc import Callable

from kcrf.readers import CharacterNGrams, CharacterReader, Lexicon, Reader, StandardsReader
from kcrf.readers.lexicon import StandardLexicon
from kcrf.readers.ngrams import OTHER_LEXICON_TEMPLATES
from kcrf.training.data import RunData
from kcrf.training.stage import Stage


class Standards(Stage):
    """Gives each standard a reader with its own lexicon, which also tells the words of the other standards."""

    def reader(self, make: Callable[[], Reader], data: RunData) -> Reader:
        """The `StandardsReader` of a `CharacterReader`. A BERT reads the texts of all standards in the same way."""
        reader = make()
        if not isinstance(reader, CharacterReader):
            return reader
        standards, ngrams, lexicons = self.config.data.standards, reader.ngrams, {}
        if reader.lexicon is not None and len(standards) == 1:
            lexicons = {standards[0]: reader.lexicon}
        elif reader.lexicon is not None:
            train = data.parts["train"]
            for name in standards:
                own, others = (Lexicon.of([s for s in train if (s.standard == name) is own]) for own in (True, False))
                lexicons[name] = StandardLexicon(own, others)
            ngrams = ngrams and CharacterNGrams(ngrams.buckets, ngrams.templates + OTHER_LEXICON_TEMPLATES)
        parts = ngrams, reader.types
        readers = {name: CharacterReader(reader.vocabulary, lexicons.get(name), *parts) for name in standards}
        made = StandardsReader(readers)
        return made if reader.vectors is None else made.with_vectors(reader.vectors)
