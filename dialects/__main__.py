"""`python -m dialects`; see `dialects.command`."""

from dialects.command import main

raise SystemExit(main())
