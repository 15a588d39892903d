"""`python -m episodes.importers`."""

import sys

from episodes.importers.command import main

sys.exit(main())
