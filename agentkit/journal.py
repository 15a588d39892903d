"""Keeps a run's checkpoint in a file: written before a step is executed and after it is committed."""

from __future__ import annotations

from pathlib import Path
from typing import Final, final

import anyio
import anyio.to_thread

from agentkit.checkpoint import Checkpoint, write_atomically
from agentkit.saving import CheckpointError


@final
class Journal:
    """Without a path it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path: Final = path

    async def announce(self, checkpoint: Checkpoint) -> None:
        """Keep what is about to happen. A cancellation comes through: nothing has happened then.

        Raises `CheckpointError` where it cannot be kept.
        """
        if self._path is None:
            return
        text = checkpoint.to_json()
        try:
            await anyio.to_thread.run_sync(write_atomically, self._path, text)
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint cannot be written, so nothing more was executed: {error}; make room for it, or give "
                "another checkpoint_path"
            ) from error

    async def keep(self, checkpoint: Checkpoint) -> None:
        """Keep what has happened, whatever else is cancelled."""
        with anyio.CancelScope(shield=True):
            await self.announce(checkpoint)
