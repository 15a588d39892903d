"""All spellings of a vocabulary as one array of bytes, for work over all tokens at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np
import numpy.typing as npt


@final
class Bytes:
    """The spellings one after the other: token t writes `buffer[starts[t]:ends[t]]`."""

    __slots__ = ("buffer", "count", "ends", "starts", "written")

    def __init__(self, spellings: Iterable[bytes]) -> None:
        texts = list(spellings)
        lengths = np.array([len(text) for text in texts], dtype=np.int32)
        self.count = len(texts)
        self.buffer: npt.NDArray[np.uint8] = np.frombuffer(b"".join(texts), dtype=np.uint8)
        self.ends: npt.NDArray[np.int32] = np.cumsum(lengths, dtype=np.int32)
        self.starts: npt.NDArray[np.int32] = self.ends - lengths
        self.written: npt.NDArray[np.int32] = np.flatnonzero(lengths).astype(np.int32)  # tokens that write something
