"""`python -m agentkit`: the command line."""

import sys

from agentkit.cli import main

sys.exit(main())
