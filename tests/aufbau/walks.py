"""Texts sampled from an oracle: random walks along its expectations, biased to finish, then mutated."""

from __future__ import annotations

from random import Random

from aufbau import Prefix, Verdict

# Spellings for the regex terminals of the shipped grammars; one that does not fit is lost and not taken.
SAMPLES = ("x", "y1", "foo", "A", "7", "42", "1.5", '"a b"', '"é\\n"', "-3", " ")
_FINISHING = (")", ";", "}", "=>", "=", ":", ".")


def walk(random: Random, prefix: Prefix, length: int) -> bytes:
    """Lexemes that may follow each other, at most `length`; after two thirds of them what closes is preferred."""
    text = b""
    for step in range(length):
        options = sorted({expected.text for expected in prefix.expected()} | set(random.sample(SAMPLES, 3)))
        closing = [option for option in options if option in _FINISHING]
        if closing and step > length * 2 // 3:
            options = closing
        random.shuffle(options)
        for option in options:
            added = (random.choice(("", " ", " ", "\n")) + option).encode()
            after = prefix.feed(added)
            if after.verdict is not Verdict.LOST:
                prefix, text = after, text + added
                break
        if prefix.verdict is Verdict.SATISFIED and random.random() < 0.3:
            break
    return text


def spoiled(random: Random, text: bytes) -> bytes:
    """The text with some bytes deleted, doubled, replaced or cut off."""
    data = bytearray(text)
    for _ in range(random.randint(0, 3)):
        if not data:
            break
        at = random.randrange(len(data))
        action = random.randrange(5)
        if action == 0:
            del data[at]
        elif action == 1:
            data.insert(at, data[at])
        elif action == 2:
            data[at] = random.randrange(256)
        elif action == 3:
            data[at] = random.choice(b"xyA7 ().:;=>\\\"'")
        else:
            del data[at:]
    return bytes(data)


def chunks(random: Random, text: bytes) -> list[bytes]:
    """The text cut at random places, also inside characters; some chunks are empty."""
    cuts = sorted(random.randint(0, len(text)) for _ in range(random.randint(0, 5)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
