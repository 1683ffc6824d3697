"""Labels of texts: whether they are numbers, and their order."""

import math


def as_number(label):
    """The finite number that a label stands for, or None."""
    if "_" in str(label):  # Python takes 1_1 for 11
        return None
    try:
        number = float(label)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def have_decimals(labels):
    """Whether all labels are numbers, and some of them not whole: then they are no names of classes.

    >>> have_decimals(["1", "2.5"]), have_decimals(["1", "0"]), have_decimals(["2.5", "good"])
    (True, False, False)
    """
    numbers = list(map(as_number, labels))
    return None not in numbers and any(number != round(number) for number in numbers)


def check_spellings(examples):
    """Raises ValueError if labels that are names are the same number in two spellings, as 1 and 1.0 are."""
    spellings = {}
    for example in examples:
        number = as_number(example.label)
        if number is not None and spellings.setdefault(number, example.label) != example.label:
            raise ValueError(
                f"{example.source}: needs one spelling of a label. Received: {example.label!r}, and "
                f"{spellings[number]!r} elsewhere"
            )


def sorted_labels(labels):
    """Labels in their order, a tuple: numbers by their value, else as strings.

    >>> sorted_labels({"10", "9"}), sorted_labels({"b", "10", "9"})
    (('9', '10'), ('10', '9', 'b'))
    """
    are_numbers = all(as_number(label) is not None for label in labels)
    return tuple(sorted(labels, key=float if are_numbers else str))


def recurring(labels):
    """The labels for `kcrf.corpora.sample`, or None for numbers of which most occur once: they have no proportions."""
    are_numbers = all(as_number(label) is not None for label in labels)
    return None if are_numbers and len(set(labels)) > len(labels) / 2 else labels
