"""Words by which files are told from hosts and products, and names in code from names of things."""

from __future__ import annotations

_FILE_ENDINGS_WORDS = """
    adoc astro avif bash bat bazel bzl c cc cfg cjs clj cljs cmake cnf conf cpp cs cshtml csproj css csv cts cu cxx
    dart ejs el elm erb erl ex exs feature fish fs fsproj gd gemspec gif glsl go gradle graphql groovy h haml hbs
    hcl hpp hrl hs htm html ico idl in ini ipynb j2 java jinja jl jpeg jpg js json json5 jsonc jsonl jsx kt kts less
    lhs lisp lock lua m4 mak md mdx mjs mk ml mli mm mod mts nim nix nomad php pl plist pm png po pp prisma
    properties proto ps1 psql pug py pyi pyx r rake rb rego rkt rs rst ru sass sbt scala scm scss sh sln snap sol
    sql sqlite storyboard styl sum svelte svg swift tcl tex tf tfvars thrift toml tpl ts tsv tsx twig txt vb vim vue
    wasm webp xib xml xsd xsl yaml yml zig zsh
"""
_FILES_WITHOUT_ENDING_WORDS = """
    BUILD Brewfile CHANGELOG CODEOWNERS Caddyfile Containerfile Dockerfile Earthfile Fastfile Gemfile Jenkinsfile
    Justfile LICENSE Makefile Pipfile Podfile Procfile README Rakefile Tiltfile Vagrantfile WORKSPACE
"""
_NO_FILES_WORDS = """
    alpine.js angular.js asp.net backbone.js brew.sh bun.sh chart.js d3.js day.js discord.js docs.rs electron.js
    ember.js express.js hugging.py knockout.js ml.net moment.js nest.js next.js node.js nuxt.js p5.js react.js
    socket.js solid.js svelte.js three.js vue.js
"""
_TOP_LEVEL_WORDS = """
    ai app at au be biz br ca ch cloud cn co com de dev edu es eu fr gov in info internal io it jp land local
    localhost me net nl online org site tech test tv uk us xyz
"""
_BRANDS_WORDS = """
    airpods airtable almalinux appstore bibtex bigquery bitbucket centos chatgpt clickhouse clickup cloudflare
    cloudfront cloudwatch cockroachdb codeql coffeescript commonjs couchdb crdt databricks datadog deepmind
    devcontainer devops dockerfile dockerhub dropbox duckdb dynamodb ebay es2020 es6 esbuild facebook fastapi finops
    firebase freebsd github gitlab gitops goland graphql grpc hubspot huggingface iaas influxdb intellij ios ipad
    ipados iphone ipv4 ipv6 iterm2 javadoc javascript jetbrains jsdoc langchain latex launchdarkly linkedin llmops
    macbook macos mailchimp makefile mariadb mcdonald mkdocs mlops mongodb mysql neo4j netbsd newrelic nextjs nodejs
    nosql numpy oauth oauth2 onedrive openai openapi openbsd opencode opengl opentelemetry paas pagerduty paypal
    pgvector phd planetscale postgresql powershell pycharm pypi pytorch quickbooks rabbitmq redhat redshift regex
    saas salesforce scipy scylladb sendgrid servicenow sharepoint sqlite supabase tensorflow testflight timescaledb
    turbopack typedoc typescript ubuntu utf_8 vscode vuejs webassembly webgl websocket websockets webstorm whatsapp
    wifi wordpress x86_64 xcode youtube
"""
_TOOLS_WORDS = """
    adb ansible ansible-playbook apt apt-get artisan aws az black brew bun bundle cargo cdk chmod cmake compose
    composer conda curl dart deno dnf docker eslint fastlane ffmpeg find flutter fly flyctl gcloud gem gh git go
    gradle gradlew grep helm heroku jest jq kill kubectl make mamba mvn mypy mysql netlify next nix node npm npx
    pacman pg_dump php pip pip3 pipx pnpm podman poetry prettier psql pulumi pytest rails rake redis-cli rg rsync
    ruff rustup sam screen sed ssh swift systemctl tar terraform tmux tofu tsc uv vercel vite vitest webpack wget
    wrangler xcodebuild yarn
"""

FILE_ENDINGS = frozenset(_FILE_ENDINGS_WORDS.split())
"""What the names of files in repositories end with; ``log`` and ``env`` are methods more often."""
FILES_WITHOUT_ENDING = frozenset(_FILES_WITHOUT_ENDING_WORDS.split())
"""Files that are known by their whole name."""
NO_FILES = frozenset(_NO_FILES_WORDS.split())
"""Products and hosts whose names end as those of files do."""
TOP_LEVEL = frozenset(_TOP_LEVEL_WORDS.split())
"""Ends of the names of hosts."""
BRANDS = frozenset(_BRANDS_WORDS.split())
"""Names with inner capitals or numbers that are no names in code, in lower case."""
TOOLS = frozenset(_TOOLS_WORDS.split())
"""Commands whose flags stand behind them: they are no flags of a repository."""
