"""Every way to write one remote has one form."""

from __future__ import annotations

import pytest

from backstory.domain.remote_url import MAX_CHARS, normalise_remote

ONE = "forge.example/crew/ketch"


@pytest.mark.parametrize(
    "url",
    [
        "https://forge.example/crew/ketch.git",
        "https://forge.example/crew/ketch/",
        "http://FORGE.example:80/crew/ketch.git/",
        "https://user:token@forge.example:443/crew//ketch",
        "https://token@Forge.Example./crew/ketch?x=1#y",
        "git@forge.example:crew/ketch.git",
        "forge.example:/crew/ketch",
        "ssh://git@forge.example/crew/ketch.git",
        "ssh://forge.example:22/crew/ketch",
        "git+ssh://git@forge.example/crew/ketch",
        "git://forge.example:9418/crew/ketch.git",
        "  https://forge.example/crew/ke%74ch\n",
    ],
)
def test_forms_of_one_remote_are_equal(url: str) -> None:
    assert normalise_remote(url) == ONE


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://forge.example/Crew/ketch", "forge.example/Crew/ketch"),
        ("https://forge.example:8443/crew/ketch", "forge.example:8443/crew/ketch"),
        ("https://forge.example/crew/ketch.github", "forge.example/crew/ketch.github"),
        ("ssh://git@[2001:db8::1]:22/ketch", "[2001:db8::1]/ketch"),
        ("git@[2001:db8::1]:ketch.git", "[2001:db8::1]/ketch"),
        ("/srv/git/ketch.git", "/srv/git/ketch"),
        ("file:///srv/git/ketch/.git", "/srv/git/ketch"),
        ("C:\\git\\ketch.git", "C:\\git\\ketch"),
        ("C:/git/ketch", "C:/git/ketch"),
    ],
)
def test_what_differs_stays_different(url: str, form: str) -> None:
    assert normalise_remote(url) == form


@pytest.mark.parametrize(
    "url",
    ["", " ", "../ketch", "ketch", "~/ketch", "https://", "https://forge.example", "https://forge.example/.git", "/",
     "git@forge.example:", "https:///crew", "https://forge.example/a%00b", "https://forge.example/\x07", ".git",
     "https://forge.example/" + "k" * MAX_CHARS],
)  # fmt: skip
def test_what_names_no_repository_has_no_form(url: str) -> None:
    assert normalise_remote(url) is None


def test_no_credential_is_kept() -> None:
    for url in ("https://me:hunter2@forge.example/a", "ssh://me:hunter2@forge.example/a", "me@forge.example:a"):
        form = normalise_remote(url)
        assert form == "forge.example/a"
