"""A Kerberos realm on loopback for tests: the KDC of MIT krb5, all of its files in one folder.

    with Kdc(folder) as kdc:
        keytab = kdc.keytab("alice")
        kdc.use(monkeypatch)            # this process belongs to the realm now

Needs the Debian packages krb5-kdc, krb5-admin-server, krb5-user and faketime, and for kclient the extra [kerberos]:
`make kerberos` installs them.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pytest

from localkafka.processes import Child, Processes

REALM = "KCLIENT.TEST"
HOST = "127.0.0.1"
SERVICE = "kafka"
SECONDS = 20
SYSTEM_PATH = "/usr/sbin:/sbin"  # where Debian has a KDC, and not every user's path has it
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "kdestroy", "faketime")


def missing() -> str:
    """Why no realm can be made here, in a few words, or nothing."""
    absent = [name for name in PROGRAMS if program(name) is None]
    if absent:
        return f"no {', '.join(absent)} (Debian: krb5-kdc krb5-admin-server krb5-user faketime)"
    return "" if importlib.util.find_spec("gssapi") else "the extra [kerberos] is not installed"


def require() -> None:
    """Skip a test, or the module that calls this, where no realm can be made; in CI it fails."""
    if reason := missing():
        if os.environ.get("CI") == "true":
            pytest.fail(f"Kerberos must be tested in CI: {reason}", pytrace=False)
        pytest.skip(f"no Kerberos: {reason}; make kerberos installs it", allow_module_level=True)


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")


def loopback_name() -> str:
    """What Java and MIT krb5 call the host of an address of loopback: they look the address up."""
    return socket.getnameinfo((HOST, 0), 0)[0]


class Kdc:
    """A realm with its KDC. Tickets live as long as `life` says, and a principal's own `life`."""

    def __init__(self, folder: Path, life: str = "1h") -> None:
        self.folder = folder
        self._life = life
        self._stack = ExitStack()
        self._child: Child | None = None
        self.port = _free_port()
        self.environment = {
            "KRB5_CONFIG": str(folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder / 'tickets'}",
            "KRB5_CLIENT_KTNAME": f"FILE:{folder / 'no.keytab'}",
            "KRB5RCACHENAME": "none:",
        }

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            logs = Path(tempfile.mkdtemp(prefix="kdc-"))
            self._processes = stack.enter_context(Processes(logs))
            self.configure()
            self._run("kdb5_util", "create", "-s", "-P", "of the database", "-r", REALM)
            self.add(self.broker)
            self.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def broker(self) -> str:
        """The principal of brokers on loopback, without the realm."""
        return f"{SERVICE}/{loopback_name()}"

    def configure(self, **libdefaults: str) -> None:
        """Write the realm's files; `libdefaults` go into that section of krb5.conf."""
        defaults = {
            "default_realm": REALM,
            "dns_lookup_kdc": "false",
            "dns_lookup_realm": "false",
            "udp_preference_limit": "1",
            **libdefaults,
        }
        write_profile(
            self.folder / "krb5.conf",
            libdefaults=[f"{name} = {value}" for name, value in defaults.items()],
            realms=[f"{REALM} = {{", f"kdc = {HOST}:{self.port}", "}"],
        )
        write_profile(
            self.folder / "kdc.conf",
            kdcdefaults=[f"kdc_listen = {HOST}:{self.port}", f"kdc_tcp_listen = {HOST}:{self.port}"],
            realms=[
                f"{REALM} = {{",
                f"database_name = {self.folder / 'principals'}",
                f"key_stash_file = {self.folder / 'stash'}",
                f"max_life = {self._life}",
                "max_renewable_life = 1h",
                "supported_enctypes = aes256-cts-hmac-sha1-96:normal",
                "}",
            ],
        )

    # --- principals

    def add(self, principal: str, life: str = "", preauth: bool = False) -> None:
        """Add a principal with a random key; its tickets live for `life`."""
        options = [
            "-randkey",
            *(["-maxlife", life] if life else []),
            *(["+requires_preauth"] if preauth else []),
        ]
        self._run("kadmin.local", "-r", REALM, "-q", " ".join(["addprinc", *options, principal]))

    def delete(self, principal: str) -> None:
        self._run("kadmin.local", "-r", REALM, "-q", f"delprinc -force {principal}")

    def keytab(self, principal: str, name: str = "") -> Path:
        """Write the keys of a principal into a keytab and return its path. The principal's keys do not change."""
        path = self.folder / (name or f"{principal.replace('/', '_')}.keytab")
        self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -norandkey -k {path} {principal}")
        return path

    def change_keys(self, principal: str) -> None:
        """Give a principal new keys: its keytabs are out of date."""
        self._run("kadmin.local", "-r", REALM, "-q", f"change_password -randkey {principal}")

    # --- tickets

    def kinit(self, keytab: Path, principal: str, *options: str, cache: str = "") -> str:
        """Put a ticket into the cache of the realm's environment or another one; return the cache's name."""
        name = cache or self.environment["KRB5CCNAME"]
        self._run("kinit", "-c", name, "-k", "-t", str(keytab), *options, principal)
        return name

    def kdestroy(self, cache: str = "") -> None:
        self._run("kdestroy", "-c", cache or self.environment["KRB5CCNAME"])

    # --- the KDC

    def start(self, *before: str) -> None:
        """Start the KDC, or start it again; `before` are words in front of its command."""
        command = [*before, program("krb5kdc") or "krb5kdc", "-n", "-r", REALM]
        self._child = self._processes.start("krb5kdc", command, env=self._environment())
        deadline = time.monotonic() + SECONDS
        while not _listens(self.port):
            self._child.check()
            assert time.monotonic() < deadline, self._child.log_tail()
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the KDC: nothing listens on its port."""
        assert self._child is not None
        self._processes.kill(self._child)

    def pause(self) -> None:
        """Stop it with SIGSTOP: it takes connections and does not answer."""
        assert self._child is not None
        self._child.pause()

    def resume(self) -> None:
        assert self._child is not None
        self._child.resume()

    def use(self, monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
        """Let this process belong to the realm; `more` are environment variables too."""
        for name, value in {**self.environment, **more}.items():
            monkeypatch.setenv(name, value)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    def _run(self, name: str, *arguments: str) -> None:
        run(name, arguments, self._environment())


def run(name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program of krb5. kadmin.local ends with 0 whatever happens, so its words are looked at."""
    ended = subprocess.run(
        [program(name) or name, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    text = ended.stdout + ended.stderr
    failed = name == "kadmin.local" and " while " in text
    assert ended.returncode == 0, f"{name} {' '.join(arguments)}: {text}"
    assert not failed, f"{name} {' '.join(arguments)}: {text}"


def write_profile(path: Path, **sections: Sequence[str]) -> None:
    """Write a file in the format of krb5.conf."""
    path.write_text(
        "".join(f"[{name}]\n" + "".join(f"  {line}\n" for line in lines) for name, lines in sections.items())
    )


def _listens(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex((HOST, port)) == 0


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        return int(listening.getsockname()[1])
