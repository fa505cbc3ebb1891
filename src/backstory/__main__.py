"""``python -m backstory`` is the command ``backstory``."""

from __future__ import annotations

import sys

from backstory.entrypoints.cli.main import main

sys.exit(main())
