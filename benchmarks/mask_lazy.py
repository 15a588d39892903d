"""Measures the lazy path, greedy decoding that asks the oracle about few tokens, on the default model's own logits."""

from __future__ import annotations

import time
from typing import Any

from agentkit.models import default_model
from aufbau import Grammar, Oracle, Prefix, greedy
from aufbau.vocabulary import Vocabulary
from benchmarks.mask_ours import facts
from benchmarks.measuring import Answer, Request, serve, summary

SHARE = 4  # free decoding begins after the first part in so many of a program
FREE = 48  # tokens decoded freely, at most


class Decoder:
    """The lazy path along texts: what the choices cost, and how many tokens came before them."""

    def __init__(self, oracle: Oracle, vocabulary: Vocabulary, start: dict[str, Any]) -> None:
        self._oracle = oracle
        self._vocabulary = vocabulary
        self._start = start
        self._prefix: Prefix = oracle.start(**start)
        self.seconds: list[float] = []
        self.ranks: list[int] = []

    def begin(self) -> None:
        """A fresh start."""
        self._prefix = self._oracle.start(**self._start)

    def add(self, token: int) -> None:
        """Add a token that was not chosen."""
        self._prefix = self._prefix.feed(self._vocabulary.spelling(token))

    def step(self, logits: Any, forced: int | None = None) -> int | None:
        """Choose a token and add it, or add the one that is forced; None at a dead end."""
        began = time.process_time()
        choice = greedy(self._prefix, self._vocabulary, logits)
        token = choice.token if forced is None and choice is not None else forced
        if token is not None:
            self.add(token)
        self.seconds.append(time.process_time() - began)
        if choice is not None:
            self.ranks.append(choice.rank)
        return token

    def taken(self) -> dict[str, float]:
        """The figures since this was asked last."""
        told = summary(self.seconds) | {"rank": sum(self.ranks) / max(1, len(self.ranks))}
        self.seconds, self.ranks = [], []
        return told


def forced(decoder: Decoder, programs: list[list[int]], logits: list[list[Any]]) -> dict[str, float]:
    """Along the programs, whose own tokens are added whatever was chosen."""
    for program, scores in zip(programs, logits, strict=True):
        decoder.begin()
        for token, row in zip(program, scores, strict=True):
            decoder.step(row, token)
    return decoder.taken()


def free(decoder: Decoder, reader: Any, given: list[int], begin: list[int]) -> None:
    """What is chosen is added, after the given beginning of a program."""
    decoder.begin()
    for token in given:
        decoder.add(token)
    scores = reader.extend(begin + given)
    for _ in range(FREE):
        chosen = decoder.step(scores)
        if chosen is None:
            return
        scores = reader.extend([chosen])


def measure(request: Request) -> Answer:
    """Along the programs twice, then freely from a part of each."""
    model = default_model()
    vocabulary = model.vocabulary
    decoder = Decoder(Oracle(Grammar.load(request["grammar"])), vocabulary, request["start"])
    programs: list[list[int]] = request["programs"]
    begin = [vocabulary.stop[0]]  # what the model has seen before the beginning of a text
    logits: list[list[Any]] = []
    for program in programs:
        reader = model.reader()
        logits.append([reader.extend([token]) for token in begin + program[:-1]])
    passes = {kind: forced(decoder, programs, logits) for kind in ("first pass", "second pass")}
    for program in programs:
        free(decoder, model.reader(), program[: max(1, len(program) // SHARE)], begin)
    return {"passes": passes | {"free": decoder.taken()}, "facts": facts()}


if __name__ == "__main__":
    serve(measure)
