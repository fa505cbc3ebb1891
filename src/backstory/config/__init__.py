"""Settings: each option once, and where its value comes from.

Import from here; only the table for people and the reference page are in ``backstory.config.reference``, off the path
of a recall.
"""

from backstory.config.layers import Resolved, load
from backstory.config.lenient import load_leniently
from backstory.config.locations import PROJECT_FILE, user_config_file
from backstory.config.options import Option
from backstory.config.settings import Settings, options

__all__ = ["PROJECT_FILE", "Option", "Resolved", "Settings", "load", "load_leniently", "options", "user_config_file"]
