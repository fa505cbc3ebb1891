"""``python -m backstory`` is the command ``backstory``."""

from __future__ import annotations

import sys

if sys.argv[1:2] == ["hook"] and "--help" not in sys.argv:  # an agent waits for it at every prompt
    import os

    from backstory.entrypoints.agents.hook import run_words

    run_words(sys.argv[2:], os.environ)
    sys.stderr.flush()
    os._exit(0)  # tidying up takes Python 20 ms
else:
    from backstory.entrypoints.cli.main import main

    sys.exit(main())
