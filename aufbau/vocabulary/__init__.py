"""Token vocabularies as byte spellings, and the exact set of tokens a prefix admits."""

from aufbau.vocabulary.admissible import PrefixLike, admissible
from aufbau.vocabulary.retokenise import FastForward, fast_forward, settled
from aufbau.vocabulary.trie import Node, Trie
from aufbau.vocabulary.vocabulary import Vocabulary, VocabularyError

__all__ = [
    "FastForward",
    "Node",
    "PrefixLike",
    "Trie",
    "Vocabulary",
    "VocabularyError",
    "admissible",
    "fast_forward",
    "settled",
]
