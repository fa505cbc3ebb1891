"""What counts as naming a part of a repository, and what only looks like it."""

from __future__ import annotations

import time

import pytest

from backstory.domain.anchors import MAX_ANCHORS, Anchor, AnchorKind, anchors


def named(text: str, *kinds: AnchorKind) -> list[str]:
    return [anchor.text for anchor in anchors(text) if not kinds or anchor.kind in kinds]


PATHS = {
    "Totals are rounded in src/cart.py.": ["src/cart.py"],
    "See ./docs/pricing.md:12 and src/tax.rs#L10-L20": ["docs/pricing.md", "src/tax.rs"],
    "(lib/round.ex) and \"web/app.tsx\", 'a/b.sql'": ["lib/round.ex", "web/app.tsx", "a/b.sql"],
    "`app/[id]/(shop)/page.tsx` renders it": ["app/[id]/(shop)/page.tsx"],
    "cart.py and Cart.test.tsx hold it": ["cart.py", "Cart.test.tsx"],
    "old code is in src/legacy/, tests in spec/": ["src/legacy/", "spec/"],
    "Makefile, Dockerfile and .eslintrc.json": ["Makefile", "Dockerfile", ".eslintrc.json"],
    ".github/workflows/ci.yml runs nightly": [".github/workflows/ci.yml"],
    "docker/Dockerfile is for CI": ["docker/Dockerfile"],
    "src/@types/cart.d.ts declares it": ["src/@types/cart.d.ts"],
    "HEAD:src/cart.py was read": ["src/cart.py"],
    "Ist die Steuer in src/steuer.py? Ja.": ["src/steuer.py"],
    "CONFIG=conf/base.toml starts it": ["conf/base.toml"],
    "Preise stehen in „data/preise.csv“": ["data/preise.csv"],
}


@pytest.mark.parametrize("text", PATHS)
def test_a_path_is_an_anchor_as_it_is_written(text: str) -> None:
    assert named(text, AnchorKind.PATH) == PATHS[text]


SYMBOLS = {
    "apply_discount rounds down": ["apply_discount"],
    "applyDiscount and CartService do": ["applyDiscount", "CartService"],
    "call total() first": ["total"],
    "STRIPE_API_KEY must be set, MAX_LINES is 40": ["STRIPE_API_KEY", "MAX_LINES"],
    "CartService.add_item() raises": ["CartService", "add_item"],
    "shop::CartError->lineItems": ["CartError", "lineItems"],
    "HTTPServer and parseURL stay": ["HTTPServer", "parseURL"],
    "__post_init__ checks it": ["__post_init__"],
    "Map<String, CartLine> is returned": ["CartLine"],
    "`$totalAmount` in PHP": ["$totalAmount"],
}


@pytest.mark.parametrize("text", SYMBOLS)
def test_a_name_in_the_style_of_code_is_an_anchor(text: str) -> None:
    assert named(text, AnchorKind.SYMBOL) == SYMBOLS[text]


FLAGS = {
    "--dry-run prints only": ["--dry-run"],
    "pass `--fail-fast=2` to the importer": ["--fail-fast"],
    "the importer takes --since and --until": ["--since", "--until"],
}


@pytest.mark.parametrize("text", FLAGS)
def test_a_flag_is_an_anchor(text: str) -> None:
    assert named(text, AnchorKind.FLAG) == FLAGS[text]


COMMITS = {
    "broken since a1b2c3d": ["a1b2c3d"],
    "fixed in commit 1234567": ["1234567"],
    "revert deadbeef if it comes back": ["deadbeef"],
    f"see {'0a' * 20}": ["0a" * 20],
    "(9f8e7d6c5)": ["9f8e7d6c5"],
}


@pytest.mark.parametrize("text", COMMITS)
def test_a_commit_is_an_anchor(text: str) -> None:
    assert named(text, AnchorKind.COMMIT) == COMMITS[text]


@pytest.mark.parametrize(
    "text",
    [
        "Use tabs, never spaces; reviews take two days.",
        "react-dom 18.2.0 and lodash@4.17 with @scope/pkg/button.js",
        "since 2026-03-02 or 2026/03/02, at 12:30:05, version v1.2.3 or 1.2.3-rc.1",
        "https://example.com/src/cart.py and www.example.com/a.html",
        "api.example.com, example.com/a/b.html, github.com/ada/shop/main.go, 10.0.0.1/x.html, localhost:8080",
        "and/or, TCP/IP, client/server, application/json, origin/main, feature/basket, ada/shop",
        "Node.js, Next.js, Vue.js, docs.rs, ASP.NET, e.g. i.e. etc.",
        "GitHub, JavaScript, PostgreSQL, iPhone, macOS, OAuth2, IPv6, LaTeX, YouTube",
        "PDFs, URLs, APIs and IDs; JSON, TODO; en_US and pt_BR; x86_64",
        "ada@example.com, git@example.com:ada/shop.py, deploy@host:/srv/app.py",
        "~/.bashrc, /etc/hosts.conf, $HOME/x.py, ../other/x.py, C:\\src\\cart.py",
        "src/**/*.ts and src/{a,b}.ts and src/<name>.ts",
        "550e8400-e29b-41d4-a716-446655440000, sha256:0a1b2c3d4e5f6071, #a1b2c3d, 1e1000000",
        "defaced, 1234567, effaced, 20260302",
        "git push --force, `npm install --legacy-peer-deps`, docker run --rm",
        "-v and -- and ---- and em--dash",
        "*.py files, .py, .com, .net and a .md",
        "3.5 GB, 9/10, 1/2.5, 50.000",
        "",
    ],
)
def test_what_only_looks_like_it_is_none(text: str) -> None:
    assert named(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "`apply_discount` in src/cart.py rounds down",
        "apply_discount (src/cart.py) rounds down",
        "apply_discount() is defined in `src/cart.py`",
        "src/cart.py::apply_discount rounds down",
        "src/cart.py:apply_discount rounds down",
        "src/cart.py#apply_discount, and apply_discount rounds",
    ],
)
def test_a_name_knows_the_file_in_which_the_text_says_it_stands(text: str) -> None:
    placed = Anchor(kind=AnchorKind.SYMBOL, text="apply_discount", place="src/cart.py")
    assert placed in anchors(text)
    assert named(text, AnchorKind.PATH) == ["src/cart.py"]


def test_a_name_beside_a_file_is_in_no_particular_one() -> None:
    assert {anchor.place for anchor in anchors("src/api.py calls apply_discount from src/cart.py")} == {None}


GONE = {
    "src/cart.py was removed": ["src/cart.py"],
    "We deleted src/cart.py. Totals are in src/total.py.": ["src/cart.py"],
    "src/cart.py was renamed to src/basket.py": ["src/cart.py"],
    "removed apply_discount from src/cart.py": ["apply_discount"],
    "Biome replaced .eslintrc.json; run it with biome.json": [".eslintrc.json"],
    "src/cart.py no longer exists, do not re-add it": ["src/cart.py"],
    "use src/basket.py instead of src/cart.py": ["src/basket.py", "src/cart.py"],
    "src/korb.py wurde gelöscht": ["src/korb.py"],
    "apply_discount -> compute_discount: renamed apply_discount to compute_discount": [
        "apply_discount",
        "compute_discount",
    ],
    "src/cart.py rounds down": [],
}


@pytest.mark.parametrize("text", GONE)
def test_what_the_text_itself_says_is_gone_is_told(text: str) -> None:
    assert [anchor.text for anchor in anchors(text) if anchor.said_gone] == GONE[text]


def test_each_thing_counts_once_and_in_order() -> None:
    assert named("CartService in src/cart.py; src/cart.py has CartService") == ["CartService", "src/cart.py"]


def test_there_is_a_bound_to_what_one_text_names() -> None:
    assert len(anchors(" ".join(f"src/file{number}.py" for number in range(500)))) == MAX_ANCHORS


@pytest.mark.parametrize("piece", ["a/", "((", "_", "aB", "-", "a.b", "[", "`", "--a ", "0a", "in ", "a@", "http://a "])
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    began = time.process_time()
    anchors(piece * (100_000 // len(piece)))
    assert time.process_time() - began < 5.0
