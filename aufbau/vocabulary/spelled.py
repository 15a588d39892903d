"""All spellings of a vocabulary as one array of bytes, for work over all tokens at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import final

import numpy as np
import numpy.typing as npt


@final
class Bytes:
    """The spellings one after the other: token t writes `buffer[starts[t]:ends[t]]`. Six bytes a token and the text,
    where a tuple of `bytes` takes fifty."""

    __slots__ = ("_joined", "buffer", "count", "ends", "starts", "written")

    def __init__(self, spellings: Iterable[bytes]) -> None:
        texts = list(spellings)
        self._lay(np.fromiter(map(len, texts), np.int32, len(texts)), b"".join(texts))

    def _lay(self, lengths: npt.NDArray[np.int32], joined: bytes) -> None:
        self.count = len(lengths)
        self._joined = joined
        self.buffer: npt.NDArray[np.uint8] = np.frombuffer(joined, dtype=np.uint8)
        self.ends: npt.NDArray[np.int32] = np.cumsum(lengths, dtype=np.int32)
        self.starts: npt.NDArray[np.int32] = self.ends - lengths
        self.written: npt.NDArray[np.int32] = np.flatnonzero(lengths).astype(np.int32)  # tokens that write something

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[bytes]:
        joined = self._joined
        return (joined[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def __getitem__(self, token: int) -> bytes:
        return self._joined[self.starts[token] : self.ends[token]]

    def changed(self, size: int, silent: Collection[int]) -> Bytes:
        """The same spellings, but those of some tokens, and those that are not there yet up to `size`, are empty."""
        if size <= self.count and not any(self[token] for token in silent):
            return self
        texts = [*self, *[b""] * (size - self.count)]
        for token in silent:
            texts[token] = b""
        return Bytes(texts)

    def pack(self) -> bytes:
        """The spellings as bytes, for a file."""
        return self.count.to_bytes(4, "little") + (self.ends - self.starts).astype("<i4").tobytes() + self._joined

    @staticmethod
    def unpack(data: bytes) -> Bytes:
        """The spellings that `pack` made bytes of."""
        count = int.from_bytes(data[:4], "little")
        found = Bytes.__new__(Bytes)
        found._lay(np.frombuffer(data, "<i4", count, 4).astype(np.int32), data[4 + 4 * count :])
        return found
