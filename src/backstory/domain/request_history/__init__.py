"""The list of messages of one request: which of them may go, and how calls and results stay together.

Three shapes are known: OpenCode's, Anthropic's and OpenAI's. Everything is plain JSON, of any shape where it is not as
expected, and is never changed in place: what comes out shares its unchanged pieces with what went in.
"""

from backstory.domain.request_history.prune import prune, repair, request_roles, request_tokens
from backstory.domain.request_history.roles import RequestRole, turn_start
from backstory.domain.request_history.shape import Shape, missing_result, rough_tokens

__all__ = [
    "RequestRole",
    "Shape",
    "missing_result",
    "prune",
    "repair",
    "request_roles",
    "request_tokens",
    "rough_tokens",
    "turn_start",
]
