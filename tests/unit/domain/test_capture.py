"""What is captured from a prompt, word for word, and what never is."""

from __future__ import annotations

import pytest

from backstory.domain.capture import MOST_CHARS, capture, guess_kind
from backstory.domain.memory import Kind
from tests.captures import kept


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Remember that invoices are rounded per line", "invoices are rounded per line"),
        ("REMEMBER THAT the gateway drops idle sockets", "the gateway drops idle sockets"),
        ("please remember to tag nightly images", "tag nightly images"),
        ("remember: the broker is RabbitMQ", "the broker is RabbitMQ"),
        ("Remember this: ids start at 100", "ids start at 100"),
        ("Don't forget that Kim owns the parser", "Kim owns the parser"),
        ("don\u2019t forget: Kim owns the parser", "Kim owns the parser"),
        ("dont forget to regenerate the client", "regenerate the client"),
        ("Do not forget that the pool has 8 slots", "the pool has 8 slots"),
        ("never forget that main is protected", "main is protected"),
        ("Keep in mind that lint runs on save", "lint runs on save"),
        ("bear in mind: mocks are banned here", "mocks are banned here"),
        ("Keep this in mind: mocks are banned here", "mocks are banned here"),
        ("ok so also remember that the mirror lags", "the mirror lags"),
        ("Thanks, that works! Now remember that the mirror lags", "the mirror lags"),
        ("Juno, remember that the mirror lags", "the mirror lags"),
        ("(remember that we indent by three) and reformat", "we indent by three"),
        ("**Remember:** we indent by three", "we indent by three"),
        ("**Remember that we indent by three**", "we indent by three"),
        ("\U0001f449 remember that we indent by three", "we indent by three"),
        ("3) remember that we indent by three\n4) reformat", "we indent by three"),
        ("- [ ] remember that we indent by three", "we indent by three"),
        ("remember  that\nthe wrapped line counts", "the wrapped line counts"),
        ("Rename the module and remember that its tests are slow", "its tests are slow"),
        ("remember that `uv` is pinned", "`uv` is pinned"),
        ("remember that what we call \u201cseat\u201d is a licence", "what we call \u201cseat\u201d is a licence"),
        ("remember that when a job dies, the lock must be freed", "when a job dies, the lock must be freed"),
        ("remember that   inner   blanks stay", "inner   blanks stay"),
        ('He said "stop." Remember that the fan is loud', "the fan is loud"),
        ("Use `<private>` for secrets. Remember that it is a tag", "it is a tag"),
        ("\u0130zmir first. Remember that \u0130zmir is the main office", "\u0130zmir is the main office"),
    ],
)
def test_a_request_at_the_start_of_a_clause_is_kept_word_for_word(text: str, content: str) -> None:
    assert kept(text) == [content]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("remember we ship from a fork", "we ship from a fork"),
        ("Please remember the debug port is 9229", "the debug port is 9229"),
        ("remember not to touch vendor/", "not to touch vendor/"),
        ("Remember my name is Noor", "my name is Noor"),
        ("Keep in mind, the schema is frozen", "the schema is frozen"),
        ("remember the release steps:\n1. tag\n2. publish", "the release steps:\n1. tag\n2. publish"),
        ("Could you please remember that the lab has no internet?", "the lab has no internet"),
        ("can you remember to run the linter?", "run the linter"),
        ("I want you to remember that the lab has no internet", "the lab has no internet"),
        ("you should never forget that the lab has no internet", "the lab has no internet"),
        ("Let's remember that the lab has no internet", "the lab has no internet"),
        ("Note to self: buy more RAM", "buy more RAM"),
        ("for future reference, the lab has no internet", "the lab has no internet"),
        ("save this to memory: the lab has no internet", "the lab has no internet"),
        ("Remember that the lab has no internet, ok?", "the lab has no internet"),
        ("Remember that the lab has no internet, please.", "the lab has no internet"),
        ("Remember that the lab has no internet. Thanks!", "the lab has no internet."),
    ],
)
def test_looser_and_polite_wordings_are_understood(text: str, content: str) -> None:
    assert kept(text) == [content]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Ricordati che il proxy \u00e8 lento", "il proxy \u00e8 lento"),
        ("non scordare di aggiornare il README", "aggiornare il README"),
        ("Bitte merk dir: Branches hei\u00dfen feat/x", "Branches hei\u00dfen feat/x"),
        ("Merk dir bitte, dass der Proxy langsam ist", "der Proxy langsam ist"),
        ("Rappelle-toi qu\u2019on utilise pnpm", "on utilise pnpm"),
        ("Ten en cuenta que el proxy es lento", "el proxy es lento"),
        ("N\u00e3o se esque\u00e7a de que o proxy \u00e9 lento", "o proxy \u00e9 lento"),
        ("Vergeet niet dat de proxy traag is", "de proxy traag is"),
        ("Pami\u0119taj, \u017ce proxy jest wolne", "proxy jest wolne"),
        ("Pamatuj si, \u017ee proxy je pomal\u00e1", "proxy je pomal\u00e1"),
        ("Не забудь, что прокси медленный", "прокси медленный"),
        ("Пам\u2019ятай, що проксі повільний", "проксі повільний"),
        ("Akl\u0131nda tut: vekil sunucu yava\u015f", "vekil sunucu yava\u015f"),
        ("Husk at proxyen er treg", "proxyen er treg"),
        ("Muista, ett\u00e4 v\u00e4lityspalvelin on hidas", "v\u00e4lityspalvelin on hidas"),
        ("H\u00e3y nh\u1edb r\u1eb1ng proxy ch\u1eadm", "proxy ch\u1eadm"),
        ("Ingat bahwa proxy lambat", "proxy lambat"),
        ("请记住：代理服务器很慢", "代理服务器很慢"),
        ("忘れないでください、プロキシは遅いです", "プロキシは遅いです"),
        ("잊지 마: 프록시는 느리다", "프록시는 느리다"),
        ("לא לדאוג. זכור כי הפרוקסי איטי", "הפרוקסי איטי"),
        ("لا تنس أن الخادم بطيء", "الخادم بطيء"),
        ("याद रखना कि प्रॉक्सी धीमा है", "प्रॉक्सी धीमा है"),
    ],
)
def test_requests_in_other_languages_are_understood(text: str, content: str) -> None:
    assert kept(text) == [content]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Remember that we release on Tuesdays. Now list the open pull requests.", "we release on Tuesdays."),
        ("Remember that the fan is loud. OK, now please fix the test.", "the fan is loud."),
        ("Remember that the fan is loud!\nNow let us write the docs.", "the fan is loud!"),
        ("Remember: the fan is loud. Let's check the log.", "the fan is loud."),
        ("Remember that we build first. Then run the tests.", "we build first. Then run the tests."),
        ("Remember that it was REST. Now use GraphQL.", "it was REST. Now use GraphQL."),
        ("Remember that it was REST. Now it is GraphQL.", "it was REST. Now it is GraphQL."),
        ("Remember that tests are few. Please add one for each bug.", "tests are few. Please add one for each bug."),
        ("Remember that now runs the nightly job.", "now runs the nightly job."),
        ("Remember that CI moved. Now test runs take a minute.", "CI moved. Now test runs take a minute."),
        ("Remember that CI moved. Now read replicas are in Oslo.", "CI moved. Now read replicas are in Oslo."),
        ("Remember that the fan is loud. Now and then oil it.", "the fan is loud. Now and then oil it."),
        ("Remember: dates are UTC. Let's do releases on Tuesdays.", "dates are UTC. Let's do releases on Tuesdays."),
        ("Remember: it froze. Let's run the linter before a push.", "it froze. Let's run the linter before a push."),
        ("Remember: it froze. Now run the tests in staging only.", "it froze. Now run the tests in staging only."),
        ("Remember: let's always run make check before a commit", "let's always run make check before a commit"),
    ],
)
def test_a_task_for_now_is_not_kept_but_steps_and_rules_are(text: str, content: str) -> None:
    assert kept(text) == [content]


@pytest.mark.parametrize(
    "text",
    [
        "remember when we still had Jenkins?",
        "Do you remember that outage?",
        "Did you remember to push?",
        "Can you remember which test was flaky?",
        "Can you remember that flag in the config?",
        "Remember that day we lost the disk?",
        "remember that weekend when all was red",
        "Remember that we moved to GitLab?",
        "How do I make the shell remember that alias?",
        "Don't remember that.",
        "please do not remember that I asked",
        "no need to keep that in mind",
        "I can't remember that name",
        "I remember that the old parser was faster",
        "They asked us to remember that",
        "If you remember that bug, close it",
        "Users log in and remember that password",
        "Remember the last open tab and restore it",
        "Remember the filter when the page reloads",
        "remember me checkbox is broken",
        "Remember that password.",
        "Remember this for later.",
        "Don't forget the milk",
        "Forget that.",
        "The docs say: remember that locks are re-entrant",
        "she wrote, remember that locks are re-entrant",
        "¿Recuerdas que el proxy era lento?",
        "Merk dir das bitte nicht.",
    ],
)
def test_questions_negations_and_talk_about_memory_are_not_requests(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "```\nremember that x is y\n```",
        "   ~~~\nremember that x is y",
        "look at `a. Remember that x is y` please",
        "> remember that x is y",
        "<!-- note. Remember that x is y -->",
        "<system-note>\nRemember that x is y.\n</system-note>",
        "Shorten this: \u00abFirst. Remember that x is y.\u00bb",
        "Translate 'Hello. Remember that x is y.' to Dutch",
        'Fix "a b',
        '"remember that x is y" is what he typed',
        "lib/a.py:31: remember that x is y",
        "2031-05-04 11:22:33 app. Remember that x is y",
        "[WARN] remember that x is y",
        "diff --git a/n b/n\n@@ -1,2 +1,2 @@\n- remember that x is y\n+ remember that x is z",
        "// remember that x is y",
        "/* a\n * remember that x is y\n */",
        "$ remember that x is y",
        "rememberThat is a function, remember-that a package, remember_that a variable",
        "see https://example.invalid/?q=remember that",
        "remember: true",
        "<private>ok. Remember that x is y</private>",
        "<PRIVATE>\nremember that x is y",
        "< private >a<private>b</private>\nRemember that x is y.</ private>",
        "see `<private>` here. Remember that x is y. </private>",
    ],
)
def test_what_is_shown_or_private_is_never_a_request(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize(
    "text", ["", " ", "remember that", "Remember this!", "remember: \n", "remember that ... \U0001f600", '"']
)
def test_nothing_to_keep_gives_nothing(text: str) -> None:
    assert kept(text) == []


def test_content_that_is_private_as_a_whole_gives_nothing_but_a_private_part_stays_for_masking() -> None:
    assert kept("Remember that <private>the code is 1234</private>") == []
    assert kept("Remember that Jo's badge is <private>9-9-9</private>, not mine") == [
        "Jo's badge is <private>9-9-9</private>, not mine"
    ]


def test_half_a_private_region_is_left_out_of_the_content() -> None:
    assert kept("Remember that the vault is <private>behind\n\nthe shelf</private>") == ["the vault is"]
    assert "behind" not in kept("Remember that the vault is `<private>` behind\n\nthe shelf</private>")[0]
    assert kept("Remember that the vault is <private>behind the shelf") == ["the vault is <private>behind the shelf"]


def test_a_prompt_wrapped_in_quotes_by_its_host_is_read_without_them() -> None:
    assert kept('"remember that the cache is cold"') == ["the cache is cold"]
    assert kept('"remember that the \\"hot\\" path is cold"\n') == ['the "hot" path is cold']
    assert kept('"Say hi." and "remember that the cache is cold"') == []


def test_content_ends_with_its_paragraph_or_list_item() -> None:
    assert kept("Remember that a is b.\nIt always was.\n\nNow refactor it.") == ["a is b.\nIt always was."]
    assert kept("- remember that a is b\n  and c\n- refactor it") == ["a is b\n  and c"]
    assert kept("remember that a is b\n# Next\nrefactor it") == ["a is b"]
    assert kept("remember that a is b\n```\ncode()\n```") == ["a is b"]
    assert kept("remember that a is b\n> quoted") == ["a is b"]


def test_content_ends_where_a_question_of_its_own_begins() -> None:
    assert kept("Remember that a is b. What is c then? Tell me.") == ["a is b."]
    assert kept("remember that a is b\ncan you check c?") == ["a is b"]


def test_content_ends_with_the_next_request_even_one_not_to_remember() -> None:
    assert kept("Remember that a is b; keep in mind that c is d.") == ["a is b", "c is d."]
    assert kept("Remember that a is b. Don't remember that c is d.") == ["a is b."]
    assert kept("I don't remember a, but remember that c is d") == ["c is d"]


FENCE = "```sh\nmake -j\n\nmake check\n```"
RECIPE = "1. open\n   ```\n   run\n   ```\n2. shut"


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Remember:\n- one thing\n- two things\n\nGo on.", "- one thing\n- two things"),
        ("Remember these rules:\n\n* one thing\n\n* two things\nGo on.", "* one thing\n\n* two things"),
        ("Keep in mind:\r\n1) ay\r\n2) bee\r\nGo on.", "1) ay\r\n2) bee"),
        ("- remember that:\n  - one thing\n- other", "- one thing"),
        ("Remember that we build with:\n```sh\nmake -j\n\nmake check\n```\nGo on.", f"we build with:\n{FENCE}"),
        ("Remember that the recipe is:\n1. open\n   ```\n   run\n   ```\n2. shut\nGo on.", f"the recipe is:\n{RECIPE}"),
        ("Remember how:\n- no", ""),
        ("Remember this:\n> quoted words\n> more\nGo on.", "> quoted words\n> more"),
        ("Remember this:\n\nplain words\nmore\n\nGo on.", "plain words\nmore"),
    ],
)
def test_a_list_or_block_after_a_closing_colon_belongs_to_the_content(text: str, content: str) -> None:
    assert kept(text) == ([content] if content else [])


def test_the_trigger_names_the_words_that_asked() -> None:
    (captured,) = capture("OK, please **keep  in\nmind** that tabs are fine")
    assert captured.trigger.replace("*", "") == "keep in mind that"
    assert [found.trigger for found in capture("N\u2019oublie pas que \u00e7a casse")] == ["N\u2019oublie pas que"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("I prefer spaces", Kind.PREFERENCE),
        ("we decided on gRPC", Kind.DECISION),
        ("we went with Kafka instead of SQS", Kind.DECISION),
        ("the upgrade is blocked by the vendor", Kind.BLOCKER),
        ("it turned out that the clock was wrong", Kind.LEARNING),
        ("always wrap errors", Kind.PATTERN),
        ("squash before merging", Kind.WORKFLOW),
        ("run the formatter before every push", Kind.WORKFLOW),
        ("the database listens on port 6543", Kind.ENVIRONMENT),
        ("my name is Ada", Kind.USER),
        ("the rewrite is currently half done", Kind.STATUS),
        ("a week has five working days", Kind.FACT),
        ("", Kind.FACT),
    ],
)
def test_the_kind_is_guessed_from_the_wording(content: str, kind: Kind) -> None:
    assert guess_kind(content) is kind


def test_a_captured_statement_carries_its_guessed_kind() -> None:
    (captured,) = capture("remember that I prefer short answers")
    assert captured.kind is Kind.PREFERENCE


@pytest.mark.parametrize(
    "text",
    [
        "Here is the log:\n\nremember that a is b",
        "This is from their readme:\n# Farm\nBuild it.\n\nPlease remember that a is b",
        "here are the docs I found:\nalways remember: a is b",
        "Here is the log:\n\n" + "".join(f"remember that a is {number}\n" for number in range(200)),
    ],
)
def test_what_an_announced_text_asks_is_not_asked_by_the_user(text: str) -> None:
    assert capture(text) == []


def test_a_request_before_an_announced_text_still_counts() -> None:
    text = "Remember that a is b.\n\nHere is the log:\n\nremember that c is d"
    assert kept(text) == ["a is b."]


def test_requests_that_another_text_makes_do_not_use_up_the_users() -> None:
    shown = "\n".join(f"> remember that box {number} is full" for number in range(300))
    fenced = "\n\n".join(f"remember that crate {number} is full" for number in range(300))
    text = f"{shown}\n\n```\n{fenced}\n```\n\nRemember that the mirror lags"
    assert kept(text) == ["the mirror lags"]


def test_what_lies_beyond_two_million_characters_is_not_looked_at_and_nothing_is_cut() -> None:
    paragraph = "It rains. " * 50 + "\n\n"
    before = paragraph * ((MOST_CHARS - 50) // len(paragraph))
    text = f"{before}Remember that the mirror lags.\n\nRemember that {'the pool is deep and ' * 40}cold."
    assert len(text) > MOST_CHARS
    assert kept(text) == ["the mirror lags."]
