"""What requests hold. Unknown fields are refused, so that a misspelt one is noticed; types are not guessed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_TEXT_CHARS = 100_000

Folder = Annotated[
    str,
    StringConstraints(pattern=r"^/[^\x00]*$", max_length=4_000),
    Field(description="The project: the absolute path of an existing folder. Without it, only global memories."),
]
Session = Annotated[
    str,
    StringConstraints(pattern=r"^[!-~]+$", max_length=200),
    Field(description="The id of the session the agent is in."),
]
Name = Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=200)]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)]
Short = Annotated[str, StringConstraints(max_length=1_000)]
Where = Literal["memories", "evidence", "all"]


class Place(BaseModel):
    """From where one looks: what every request may say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    project: Folder | None = None
    session: Session | None = None


class ToolBody(Place):
    """A call of a tool."""

    arguments: dict[str, Any] = Field(default_factory=dict, description="As the tool's schema says.")  # Any: the tool's
    agent: Name | None = Field(default=None, description="Who calls: the name of the agent.")
    message: Name | None = Field(default=None, description="The id of the message that the call belongs to.")


class RecallBody(Place):
    """A search."""

    query: Text = Field(default="", description="A question or words; empty lists the newest.")
    limit: int | None = Field(default=None, ge=1, le=100, description="At most this many; the setting recall.limit.")
    tags: list[Short] = Field(default_factory=list, max_length=100, description="Only with all of these.")
    kinds: list[Short] = Field(default_factory=list, max_length=100, description="Only of one of these, as decision.")
    area: Short | None = Field(default=None, description="Only this topic path and below.")
    since: Short | None = Field(default=None, description="Learned from then on: a date, 7d, or yesterday.")
    until: Short | None = Field(default=None, description="Learned up to then.")
    superseded: bool = Field(default=False, description="Also what was replaced since.")
    lexical: bool = Field(default=False, description="Search by words alone.")
    where: Where = Field(default="memories", description="Memories, what was said in sessions, or both.")


class RememberBody(Place):
    """A statement to keep."""

    content: Text = Field(min_length=1, description="One statement that can be understood without the conversation.")
    kind: Short | None = Field(default=None, description="What it is, such as decision; guessed if left out.")
    scope: Short | None = Field(default=None, description="project, global, session, or a topic path.")
    tags: list[Short] = Field(default_factory=list, max_length=100, description="Up to 10 labels.")
    issue: Short | None = Field(default=None, description="The issue or ticket it belongs to.")
    supersedes: int | Short | None = Field(default=None, description="Which memory it replaces: number, id or text.")
    expires_in_hours: float | None = Field(default=None, gt=0, le=24 * 366, description="For what is true for a while.")
    agent: Name | None = Field(default=None, description="Who stores it: the name of the agent.")
    message: Name | None = Field(default=None, description="The id of the message that it was said in.")


class ListQuery(Place):
    """Which memories to list."""

    model_config = ConfigDict(extra="forbid", strict=False)

    limit: int = Field(default=50, ge=1, le=1_000, description="At most this many.")
    offset: int = Field(default=0, ge=0, le=1_000_000, description="Leave out this many of the newest.")
    tag: Short | None = Field(default=None, description="Only with this tag.")
    kind: Short | None = Field(default=None, description="Only this kind.")
    area: Short | None = Field(default=None, description="Only this topic path and below.")
    containing: Short | None = Field(default=None, description="Only what holds this text.")


class SessionsQuery(Place):
    """Which sessions to list."""

    model_config = ConfigDict(extra="forbid", strict=False)

    limit: int = Field(default=20, ge=1, le=1_000, description="At most this many.")


class SessionQuery(Place):
    """Which messages of a session."""

    model_config = ConfigDict(extra="forbid", strict=False)

    page: int = Field(default=1, ge=1, le=1_000_000, description="Which page of its messages.")
    limit: int = Field(default=20, ge=1, le=100, description="Messages on a page.")
