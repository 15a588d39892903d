"""Token vocabularies as byte spellings, and the exact set of tokens a prefix admits."""

from aufbau.vocabulary.admissible import PrefixLike, admissible
from aufbau.vocabulary.trie import Node, Trie
from aufbau.vocabulary.vocabulary import Vocabulary, VocabularyError

__all__ = ["Node", "PrefixLike", "Trie", "Vocabulary", "VocabularyError", "admissible"]
