"""Our own rows of secrets and of what only looks like one. Prefixes are split, so no scanner takes them for real."""

from __future__ import annotations

import pytest

from backstory.domain.redaction import redact_secrets

MIXED = "q7Rk2Vx9Lm4Tz8Bn"  # 16 characters as a machine draws them
HEX = "3b9d1f7c5a2e8460"
_BEGIN, _END = "-----BEGIN " + "{0}PRIVATE" + " KEY-----", "-----END " + "{0}PRIVATE" + " KEY-----"


def key_block(label: str = "", body: str = "MIIEvQIBADANBgkqhkiG\nx9Lm4Tz8BnQ7Rk2Vq1==", eol: str = "\n") -> str:
    body = body.replace("\n", eol)
    return _BEGIN.format(label) + eol + body + eol + _END.format(label)


# id: (kind, text with {} for the secret, secret)
SECRETS: dict[str, tuple[str, str, str]] = {
    "azure storage connection string": (
        "key",
        "DefaultEndpointsProtocol=https;AccountName=heron;AccountKey={};EndpointSuffix=core.windows.net",
        MIXED * 5 + "/+" + "A9==",
    ),
    "azure client secret by form": (
        "azure-secret",
        "app registration uses {} since May",
        "Xk9" + "8Q~" + MIXED * 2 + "ab",
    ),
    "azure shared access signature": (
        "signature",
        "https://heron.blob.core.windows.net/c/f.csv?sv=2022-11-02&sp=r&sig={}",
        MIXED * 2 + "%2Bq%3D",
    ),
    "azure service bus": (
        "key",
        "Endpoint=sb://heron.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey={}",
        MIXED * 2 + "Zk9=",
    ),
    "google service account": (
        "private-key",
        '{{"type": "service_account", "private_key": "{}\\n", "client_email": "a@heron.invalid"}}',
        key_block(eol="\\n"),
    ),
    "google oauth client": ("google-key", "client secret file has {}", "GOC" + "SPX-" + MIXED + "a_b-c1"),
    "google refresh token by name": ("token", "refresh_token: {}", "1//0" + MIXED * 3),
    "twilio auth token": ("token", "Twilio auth token: {}", HEX * 2),
    "twilio key": ("twilio-key", "use {} for the SMS worker", "S" + "K" + HEX * 2),
    "sendgrid": ("sendgrid-key", "mail goes out with {}.", "S" + "G." + MIXED + "abcdef." + MIXED * 2 + "x_y-z"),
    "digitalocean": ("digitalocean-token", "doctl auth init -t {}", "do" + "p_v1_" + HEX * 4),
    "age": (
        "age-key",
        "# created: 2024-05-01\n{}\n",
        "AGE-SECRET" + "-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHC",
    ),
    "gitlab runner": ("gitlab-token", "register --token {}", "gl" + "rt-" + MIXED + "abcd"),
    "slack app": ("slack-token", "socket mode needs {}", "xa" + "pp-1-A0" + MIXED),
    "stripe webhook": ("stripe-key", "endpoint signs with {}", "wh" + "sec_" + MIXED * 2),
    "pypi": ("pypi-token", "twine upload -u __token__ with {}", "pypi" + "-AgEIcHlwaS5vcmc" + MIXED),
    "docker hub": ("docker-token", "docker login -u heron then {}", "dckr" + "_pat_" + MIXED + "abcdef"),
    "vault": ("vault-token", "VAULT_TOKEN={}", "hv" + "s." + MIXED * 2),
    "databricks": ("databricks-token", "profile uses {}", "da" + "pi" + HEX * 2),
    "anthropic after full-width colon": ("anthropic-key", "密钥：{}。", "sk" + "-ant-api03-" + MIXED * 3),
    "github between curly quotes": ("github-token", "use “{}” here", "gh" + "p_" + MIXED * 2 + "abcd"),
    "github after a zero-width blank": ("github-token", "token\u200b{}\u200b ok", "gh" + "s_" + MIXED * 2 + "abcd"),
    "github glued to CJK": ("github-token", "令牌是{}请勿外传", "gh" + "o_" + MIXED * 2 + "abcd"),
    "github after an accented letter": ("github-token", "é{}é", "gh" + "u_" + MIXED * 2 + "abcd"),
    "unsigned jwt": ("jwt", "cookie holds {} now", "ey" + "JhbGciOiJub25lIn0." + "ey" + "JzdWIiOiJoZXJvbiJ9"),
    "encrypted jwt": ("jwt", "jwe: {}", "ey" + "JlbmMiOiJBMjU2R0NNIn0." + ".".join([MIXED] * 4)),
    "pkcs8 block": ("private-key", "cert:\n{}\nthat was it", key_block()),
    "indented block in yaml": ("private-key", "tls.key: |\n  {}\nnext: 1", key_block("EC ", eol="\n  ")),
    "quoted block in a mail": ("private-key", "> {}\nbye", key_block("RSA ", eol="\n> ")),
    "block with windows line ends": ("private-key", "{}\r\n", key_block("ENCRYPTED ", eol="\r\n")),
    "pgp block": ("private-key", "{}", key_block("PGP ").replace("KEY-----", "KEY BLOCK-----")),
    "block without its end": (
        "private-key",
        "head -3 id:\n{}",
        _BEGIN.format("RSA ") + "\n" + (MIXED * 4 + "\n") * 2 + MIXED,
    ),
    "block without its start": ("private-key", "tail -3 id:\n{}", (MIXED * 4 + "\n") * 2 + _END.format("")),
    "putty key": ("private-key", "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n{}\nPrivate-MAC: 1", MIXED * 3),
    "mongodb srv": ("password", "mongodb+srv://app:{}@heron.mongodb.invalid/app?w=majority", "brook9walnut"),
    "password with an at sign in a url": ("password", "amqp://app:{}@mq.invalid/vh", "br@ok9"),
    "password with a slash in a database url": ("password", "postgres://app:{}@db.invalid/app", "br/ok9x"),
    "token as user of a git url": ("token", "git clone https://{}@git.invalid/heron.git", MIXED + "Ab3"),
    "sql server connection string": (
        "password",
        "Server=db.invalid;User Id=sa;Password={};Encrypt=true",
        "Br00k!walnut",
    ),
    "libpq string": ("password", "host=db.invalid user=app password={} dbname=app", "walnut-brook9"),
    "jdbc query": ("password", "jdbc:mysql://db.invalid/app?user=app&password={}&useSSL=true", "brook77walnut"),
    "all letters in an env line": ("password", "REDIS_PASSWORD={}\nREDIS_DB=0", "walnutbrook"),
    "docker compose": ("password", "environment:\n  POSTGRES_PASSWORD: {}\n  POSTGRES_DB: app", "walnutbrook"),
    "env line with export and quotes": ("secret", "export JWT_SECRET='{}'", "walnut-brook-river"),
    "env name with a stage": ("secret", "CLIENT_SECRET_PROD={}", "walnutbrook7"),
    "escaped json": ("password", r"body: {{\"user\": \"app\", \"password\": \"{}\"}}", "brook-9-walnut"),
    "token after an escaped line end": ("github-token", r"stdout: ok\n{}\ndone", "gh" + "p_" + MIXED * 2 + "abcd"),
    "escaped line ends": ("password", r"stdout: DB_PASS={}\nPORT=8080", "brook9walnut"),
    "single quotes in python": ("password", "connect(user='app', password='{}')", "brook walnut river"),
    "escaped quote inside": ("password", 'password = "{}"', 'br\\"ook9'),
    "command flag with equals": ("password", "backup --password={} --all", "walnutbrook"),
    "command flag with a blank": ("token", "deploy --token {} --dry-run", MIXED + "Zz12"),
    "mysql short flag": ("password", "mysql -u root -p{} app", "Brook9walnut"),
    "sshpass": ("password", "sshpass -p '{}' ssh heron", "walnutbrook"),
    "redis-cli": ("password", "redis-cli -h cache.invalid -a {} ping", "walnutbrook"),
    "yaml block scalar": ("password", "password: |\n  {}\nuser: app", "brook9-walnut"),
    "value on the next line": ("key", "API key:\n{}\n", MIXED + "Zz12"),
    "markdown bold": ("password", "- **Password:** `{}`", "walnut9brook"),
    "markdown table": ("password", "| password | {} |", "walnut9brook"),
    "xml element": ("password", "<password>{}</password>", "walnut9brook"),
    "prose with a purpose": ("password", "the password for the staging database is {}", "Walnut9brook!x"),
    "prose, quoted word": ("password", 'password is "{}"', "swordfish"),
    "prose with nothing between": ("password", "log in with password {} please", "Walnut9brook"),
    "german prose": ("password", "Das Passwort lautet {}", "Walnut9brook"),
    "chinese prose": ("password", "数据库密码是{}，请记住", "Walnut9brook"),
    "postgres role": ("password", "ALTER ROLE app WITH LOGIN PASSWORD '{}';", "walnutbrook"),
    "mysql user": ("password", "CREATE USER app@localhost IDENTIFIED BY '{}';", "walnutbrook"),
    "password that contains a capital dotted i": ("password", "İ password={}\nİ", "walnut9brook"),
    "long value": ("password", "password={} end", "w4" * 900),
    "header with a key": ("key", "curl -H 'X-Api-Key: {}' https://api.invalid", HEX + "Zk9Q"),
    "authorization basic": ("authorization", "Authorization: Basic {}", "aGVyb246d2FsbnV0"),
    "session id": ("cookie", "Set-Cookie: connect.sid={}; Path=/; HttpOnly", "s%3A" + MIXED),
    "signed s3 link": ("signature", "https://s3.invalid/b/k?X-Amz-Expires=60&X-Amz-Signature={}", HEX * 4),
    "datadog key in hex": ("key", "datadog_key = {}", HEX * 2),
    "api key that is a uuid": ("key", "heroku api key: {}", "7c9e6679-7425-40de-944b-e07fc1f90ae7"),
    "discord bot": ("discord-token", "bot runs as {}", "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + MIXED + "abcdefghijk"),
    "teams webhook": (
        "teams-webhook",
        "https://heron.webhook.office.com/webhookb2/{}",
        HEX + "@" + HEX + "/IncomingWebhook/" + HEX,
    ),
}

KEPT: dict[str, str] = {
    "git hash": "fixed in 3b9d1f7c5a2e84603b9d1f7c5a2e84603b9d1f7c, see also 3b9d1f7c",
    "hash after key in code": 'cache.put(key="3b9d1f7c5a2e84603b9d1f7c5a2e8460", value=page)',
    "uuid after key": "key: 7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "uuid in json": '{"key": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "name": "heron"}',
    "docker digest": "FROM python@sha256:" + HEX * 4,
    "lock file integrity": '"integrity": "sha512-' + MIXED * 5 + '=="',
    "base64 image": "![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA" + MIXED * 20 + "==)",
    "cache key": "actions cache key: linux-pip-" + HEX * 2,
    "next page token": "nextPageToken: " + MIXED * 2,
    "public key": "public_key = " + MIXED * 3,
    "public key block": "-----BEGIN PUBLIC" + " KEY-----\n" + MIXED * 3 + "\n-----END PUBLIC" + " KEY-----",
    "certificate": "-----BEGIN CERTIFICATE-----\n" + MIXED * 3 + "\n-----END CERTIFICATE-----",
    "key fence in prose": "The file must start with " + _BEGIN.format("RSA ") + " and nothing else.",
    "key fences elided": _BEGIN.format("") + "\n...\n" + _END.format(""),
    "shell variable": "export DB_PASSWORD=$PGPASSWORD; curl -u admin:$TOKEN https://x.invalid",
    "shell default": "POSTGRES_PASSWORD=${POSTGRES_PASSWORD:-}",
    "github actions": "token: ${{ secrets.GITHUB_TOKEN }}",
    "node environment": "const secret = process.env.JWT_SECRET;",
    "python environment": 'api_key = os.environ["OPENAI_API_KEY"]',
    "python getenv": 'password=os.getenv("DB_PASSWORD")',
    "windows variable": "set PASSWORD=%DB_PASSWORD%",
    "template": "password: {{ vault_db_password }}",
    "vault reference": "DB_PASSWORD=op://infra/db/password",
    "ansible vault": "password: !vault |",
    "variable in url": "postgres://app:${DB_PASSWORD}@db.invalid/app",
    "doc url": "postgres://user:password@localhost:5432/app",
    "url with a port": "see http://localhost:3000/a and mail dev@heron.invalid",
    "scoped package in a url": "https://cdn.invalid:8443/npm/@heron/core@2.1.0/index.js",
    "angle placeholder": "OPENAI_API_KEY=<your-key>",
    "shouted placeholder": "api_key: YOUR_API_KEY",
    "placeholder after a prefix": "export OPENAI_API_KEY=sk" + "-your-api-key-goes-right-here",
    "crossed out": "token=xxxxxxxxxxxxxxxxxxxx",
    "crossed out after a prefix": "gh" + "p_" + "x" * 36,
    "stars": "password: ********",
    "stars after a prefix": "sk" + "-ant-********************",
    "documented aws example": "aws_access_key_id = AK" + "IAIOSFODNN7EXAMPLE",
    "documented aws secret": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    "type annotation": "def login(user: str, password: str, token: Token | None = None) -> None: ...",
    "interface": "interface Login { password: string; token?: string }",
    "keyword pass-through": "client = Client(password=password, api_key=api_key, secret=self.secret)",
    "call": "password = generate_password(16)",
    "attribute": "password: user.password,",
    "interface text": '"password": "Password must be at least 8 characters"',
    "schema": "password:\n  type: string\n  minLength: 12",
    "hash scheme": "The password is sha256-hashed, later argon2id.",
    "rule on length": "The password is 12+ characters; a token is 64-character hex.",
    "prose about a password": "The password is required and was rotated; the secret is stored in Vault.",
    "prose about tokens": "Access tokens: short-lived. Refresh token: rotates on use.",
    "test report": "PASS: test_login_v2 (12 of 12)\npass=12 fail=0",
    "bypass": "bypass: cache-v2-warm9 and compass=north77",
    "monkey": "monkey: patch9banana4tree",
    "working directory": "PWD=/home/dev/heron9 and OLDPWD=/home/dev",
    "kubernetes secret name": "secretName: heron-tls-2024",
    "key file": "private_key: ~/.ssh/id_ed25519 and ssl_key=/etc/ssl/private/heron9.pem",
    "css class": ".sk-folding-cube-container .sk-circle-fade-dot-variant-two { color: red }",
    "publishable key": "Stripe uses pk" + "_live_" + MIXED * 2 + " in the browser",
    "twilio account": "account AC" + HEX * 2,
    "docker user": "docker run -u 1000:1000 -p 8080:80 heron",
    "make directory": "mkdir -p build/heron9 && cp -a src/heron9 build",
    "issue after token": "token: PROJ-1234",
    "model name": "key: claude-3-opus-20240229 or text-embedding-3-small",
    "identifier": "The primary key is order_items_2024_idx; token: user_session_v2",
    "private key mention": "generate the private key with ssh-keygen -t ed25519",
    "basic mention": "Authorization: Basic authentication over TLS",
    "theme cookie": "Cookie: theme=dark; lang=en-GB; consent=accepted",
    "type of a key": "def cache_get(key: GenericTypesCacheKey) -> type[object]: ...",
    "header name": 'HEADER_ACCESS_TOKEN = "X-Heron-Access-Token"',
    "option in prose": "The --username and --password options cannot be combined.",
    "assembly token": 'publicKeyToken="1fc8b3b9a1e18e3b"',
    "keyboard": "keyboard: qwerty9layout3",
    "tokenizer": "tokenizer=o200k_base; max_tokens: 4096; token_count=12345678901234567890",
    "password hash column": "password_hash = models.CharField(max_length=128)",
    "windows path": r"keyfile: C:\heron\keys\dev9.pem",
}


@pytest.mark.parametrize("row", SECRETS, ids=list(SECRETS))
def test_a_secret_is_masked_and_its_surroundings_stay(row: str) -> None:
    kind, frame, secret = SECRETS[row]
    result = redact_secrets(frame.format(secret))
    assert result.text == frame.format(f"[secret:{kind}]")
    assert result.secrets == (kind,)


@pytest.mark.parametrize("row", KEPT, ids=list(KEPT))
def test_what_only_looks_like_a_secret_is_kept(row: str) -> None:
    assert redact_secrets(KEPT[row]).text == KEPT[row]


@pytest.mark.parametrize("row", SECRETS, ids=list(SECRETS))
def test_masking_twice_is_masking_once(row: str) -> None:
    _, frame, secret = SECRETS[row]
    once = redact_secrets(frame.format(secret)).text
    twice = redact_secrets(once)
    assert twice.text == once
    assert twice.secrets == ()
