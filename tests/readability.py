"""How easy a text is to read, by the usual formulas: for the page's and the poster's texts.

English: the grade of Flesch and Kincaid (1975), the school year whose pupils read it; 8 is age 13
to 14. German: Amstad's (1978) form of Flesch's reading ease; 60 and more is what people of 13 to 15
read. Any language: words per sentence.
"""

import re

_STOPS = re.compile(r"[.!?…؟]+(?=\s|$)|\n")
_WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\d.,]*")  # a number is a word
_DIPHTHONGS = ("aa", "ai", "au", "ay", "ee", "ei", "eu", "ey", "ie", "oo", "ou", "äu")


def sentences(text):
    """The sentences of a text. A semicolon or a colon does not end one."""
    return [s for s in _STOPS.split(text) if _WORD.search(s)]


def words(text):
    return _WORD.findall(text)


def english_syllables(word):
    """Groups of vowels, but for a silent e. Right within one for most words.

    >>> [english_syllables(x) for x in ("answer", "device", "people", "organiser", "named", "the")]
    [2, 2, 2, 4, 1, 1]
    """
    word = re.sub(r"[^a-z]", "", word.lower())
    groups = len(re.findall(r"[aeiouy]+", word))
    groups += len(re.findall(r"ia(?!l\b)|io(?!us|n)|[aeiou]ying|ual|uou", word))
    silent = re.search(r"[^aeiouydt]ed$|[^aeiouyl]e$|[aeiouy]le$|[^aeiouylsxzcgh]es$", word)
    return max(1, groups - bool(silent))


def german_syllables(word):
    """Groups of vowels; two vowels that are no diphthong are two.

    >>> [german_syllables(x) for x in ("Antwort", "Zufall", "Gerät", "Browser", "Quittung")]
    [2, 2, 2, 2, 2]
    """
    word = word.lower().replace("qu", "q")
    count = 0
    for group in re.findall(r"[aeiouyäöü]+", word):
        while group:
            group = group[2:] if group[:2] in _DIPHTHONGS else group[1:]
            count += 1
    return max(1, count)


def grade(text):
    """Flesch and Kincaid's grade of an English text.

    >>> round(grade("The cat sat on the mat."), 1)
    -1.4
    """
    said = words(text)
    per_word = sum(map(english_syllables, said)) / len(said)
    return 0.39 * len(said) / len(sentences(text)) + 11.8 * per_word - 15.59


def ease(text):
    """Amstad's reading ease of a German text: 60 to 70 is neither hard nor easy, more is easier.

    >>> round(ease("Der Hund sitzt auf dem Stuhl."))
    116
    """
    said = words(text)
    return (
        180 - len(said) / len(sentences(text)) - 58.5 * sum(map(german_syllables, said)) / len(said)
    )


def longest(text):
    """The words of the longest sentence."""
    return max(len(words(s)) for s in sentences(text))
