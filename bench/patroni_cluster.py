"""A cluster of three Postgres servers under Patroni, with three members of etcd, on this machine's loopback.

Each server and its agent can be killed and started again. Where the programs come from is in ``patroni_programs.py``,
what is done to the cluster in ``ha.py``.
"""

from __future__ import annotations

import contextlib
import json
import random
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.patroni_node import HOST, Node
from bench.patroni_programs import Programs

SIZE = 3
TTL_S = 20  # the shortest that Patroni takes: how long a leader that says nothing remains the leader
LOOP_WAIT_S = 2
RETRY_TIMEOUT_S = 9  # the longest for these two: loop_wait + 2 * retry_timeout may not exceed ttl
READY_WITHIN_S = 180.0
OWNER, DATABASE = "team", "backstory"
_PORTS = (20_000, 32_000)
_STOP_WITHIN_S = 5.0
_LOOK_EVERY_S = 0.1

_DYNAMIC = {
    "ttl": TTL_S,
    "loop_wait": LOOP_WAIT_S,
    "retry_timeout": RETRY_TIMEOUT_S,
    # strict: without a standby that confirms, commits wait rather than be acknowledged on one machine alone
    "synchronous_mode": True,
    "synchronous_mode_strict": True,
    "postgresql": {
        "use_pg_rewind": True,
        "use_slots": True,
        "parameters": {"synchronous_commit": "on", "max_connections": 100, "shared_buffers": "64MB"},
    },
}


class NotReady(Exception):
    """The cluster did not come to a state within the time it was given; the message says which."""


@dataclass(slots=True)
class Cluster:
    """The whole. ``password`` is that of every role in it, new in each run."""

    programs: Programs
    folder: Path
    nodes: list[Node] = field(default_factory=list)
    etcd: list[subprocess.Popen[bytes]] = field(default_factory=list)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        """The address that people put into their settings; the password comes from the environment."""
        hosts = ",".join(f"{HOST}:{node.port}" for node in self.nodes)
        return f"postgresql://{OWNER}@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def start(self) -> None:
        """Start everything and make an empty database with pgvector. Raises NotReady."""
        self.programs.own(self.folder)
        ports = _free_ports(4 * SIZE)
        peers = _start_etcd(self, ports)
        for number in range(1, SIZE + 1):
            folder = self.folder / f"node{number}"
            folder.mkdir(mode=0o700)
            node = Node(name=f"node{number}", folder=folder, port=next(ports), rest_port=next(ports))
            (folder / "patroni.json").write_text(json.dumps(_settings(self, node, peers)))
            for path in (folder, folder / "patroni.json"):
                self.programs.own(path)
            self.nodes.append(node)
        for node in self.nodes:
            node.start(self.programs)
        leader = self.wait_until_whole()
        self._make_database(leader)

    def leader(self) -> Node | None:
        """Who takes writes now, as the agents that live say; None where nobody does."""
        names = [
            member["name"]
            for member in self._members()
            if member["role"] in ("leader", "standby_leader") and member["state"] == "running"
        ]
        living = {node.name: node for node in self.nodes if node.is_up}
        return living.get(names[0]) if names else None

    def wait_for_leader(self, *, within_s: float = READY_WITHIN_S) -> Node:
        """The leader, as soon as there is one that lives. Raises NotReady."""
        return _wait_for(self.leader, "leader", within_s)

    def wait_until_whole(self, *, within_s: float = READY_WITHIN_S) -> Node:
        """The leader, once all others follow it and one of them confirms its commits. Raises NotReady."""
        return _wait_for(self._leader_of_all, "three nodes, one of them synchronous", within_s)

    def stop(self) -> None:
        """End everything at once: its data goes with the folder, so nobody says goodbye. Calling twice is fine."""
        for node in self.nodes:
            node.kill()
        for member in self.etcd:
            member.terminate()
        for member in self.etcd:
            _end(member)
        self.etcd.clear()

    def _leader_of_all(self) -> Node | None:
        members = self._members()
        followers = [member for member in members if member["state"] == "streaming"]
        confirming = [member for member in followers if member["role"] in ("sync_standby", "quorum_standby")]
        timelines = {member.get("timeline") for member in members}
        return self.leader() if len(followers) == SIZE - 1 and confirming and len(timelines) == 1 else None

    def _members(self) -> list[dict[str, Any]]:  # Any: whatever Patroni's interface tells of a member
        for node in self.nodes:
            if node.is_up:
                with contextlib.suppress(OSError, urllib.error.URLError, ValueError, KeyError):
                    found: list[dict[str, Any]] = _get(f"http://{HOST}:{node.rest_port}/cluster")["members"]
                    return found
        return []

    def _make_database(self, leader: Node) -> None:
        import psycopg
        from psycopg import sql

        address: dict[str, Any] = {
            "host": HOST, "port": leader.port, "user": "postgres", "password": self.password, "autocommit": True,
        }  # fmt: skip
        with psycopg.connect(dbname="postgres", **address) as raw:
            role = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(OWNER), sql.Literal(self.password))
            raw.execute(role)
            raw.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), sql.Identifier(OWNER)))
        with psycopg.connect(dbname=DATABASE, **address) as raw:
            raw.execute("CREATE EXTENSION vector")


def _start_etcd(cluster: Cluster, ports: Iterator[int]) -> list[str]:
    """Start three members; the addresses at which clients reach them."""
    pairs = [(next(ports), next(ports)) for _ in range(SIZE)]
    everybody = ",".join(f"etcd{number}=http://{HOST}:{peer}" for number, (_, peer) in enumerate(pairs, 1))
    for number, (client, peer) in enumerate(pairs, 1):
        folder = cluster.folder / f"etcd{number}"
        folder.mkdir(mode=0o700)
        cluster.programs.own(folder)
        options = {
            "name": f"etcd{number}",
            "data-dir": str(folder / "data"),
            "listen-client-urls": f"http://{HOST}:{client}",
            "advertise-client-urls": f"http://{HOST}:{client}",
            "listen-peer-urls": f"http://{HOST}:{peer}",
            "initial-advertise-peer-urls": f"http://{HOST}:{peer}",
            "initial-cluster": everybody,
            "initial-cluster-token": cluster.folder.name,
            "heartbeat-interval": "200",
            "election-timeout": "2000",  # ten heartbeats, as etcd recommends
        }
        command = [cluster.programs.etcd, *(f"--{name}={value}" for name, value in options.items())]
        cluster.etcd.append(cluster.programs.start(command, home=folder, log=folder / "etcd.log"))
    return [f"{HOST}:{client}" for client, _ in pairs]


def _settings(cluster: Cluster, node: Node, etcd: list[str]) -> dict[str, object]:
    """A node's settings. JSON is YAML, which Patroni reads."""
    roles = {"superuser": "postgres", "replication": "replicator", "rewind": "rewinder"}
    return {
        "scope": "backstory",
        "name": node.name,
        "etcd3": {"hosts": etcd},
        "restapi": {"listen": f"{HOST}:{node.rest_port}", "connect_address": f"{HOST}:{node.rest_port}"},
        "bootstrap": {"dcs": _DYNAMIC, "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"]},
        "postgresql": {
            "listen": f"{HOST}:{node.port}",
            "connect_address": f"{HOST}:{node.port}",
            "data_dir": str(node.data),
            "bin_dir": str(cluster.programs.postgres_bin),
            "pgpass": str(node.folder / "pgpass"),
            "authentication": {kind: {"username": name, "password": cluster.password} for kind, name in roles.items()},
            "pg_hba": [
                f"host replication replicator {HOST}/32 scram-sha-256",
                f"host all all {HOST}/32 scram-sha-256",
            ],
            "parameters": {"unix_socket_directories": ""},  # whose lock files would outlive a kill
            "remove_data_directory_on_rewind_failure": True,
            "remove_data_directory_on_diverged_timelines": True,
        },
    }


def _free_ports(count: int) -> Iterator[int]:
    """Ports that nobody listens on, below those that the system gives to outgoing connections: while a node is down,
    none of these may take its place."""
    choose = random.Random()
    found: list[int] = []
    while len(found) < count:
        port = choose.randrange(*_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            found += [] if port in found else [port]
    return iter(found)


def _wait_for(look: Callable[[], Node | None], what: str, within_s: float) -> Node:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if (found := look()) is not None:
            return found
        time.sleep(_LOOK_EVERY_S)
    raise NotReady(f"the cluster had no {what} within {within_s:.0f} s")


def _get(url: str) -> Mapping[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=3) as answer:
        found: Mapping[str, Any] = json.load(answer)
        return found


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def running_cluster(programs: Programs, folder: Path) -> Iterator[Cluster]:
    """A cluster that has started, and is gone afterwards."""
    cluster = Cluster(programs, folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
