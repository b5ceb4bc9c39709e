"""What the doors' checks share: pinned packages, servers, the programs that hold the checks, and the count.

Only Python's own library, because the check programs import this inside virtual environments of their own.
"""

import dataclasses
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

SUPPORT = os.path.dirname(os.path.abspath(__file__))
HERE = os.path.dirname(SUPPORT)
ROOT = os.path.dirname(os.path.dirname(HERE))

READY_SECONDS = 30
STOP_SECONDS = 15
PORT_RETRY_SECONDS = 20
INSTALL_SECONDS = 900

#: What servers and programs are started with: no setting of the caller's, and no proxy for loopback addresses.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("POSTHASTE_")},
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}

COUNT = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


class NotInstalled(Exception):
    """Packages that a door needs are not in the cache."""


class InstallFailed(Exception):
    """A package manager ended with an error."""


# ---------------------------------------------------------------------------- packages


def _digest(paths):
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def _run_installer(argv, cwd):
    try:
        ran = subprocess.run(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallFailed(f"{argv[0]}: {error}") from error
    if ran.returncode != 0:
        raise InstallFailed(f"{' '.join(argv[:4])}: {ran.stdout.strip()[-400:]}")


class Packages:
    """Packages of one package manager at pinned versions, in one folder of the cache.

    The file `installed` in that folder holds a digest of the pins; it is written last, so an interrupted or outdated
    installation counts as none.
    """

    def __init__(self, folder, pins):
        self.folder = folder
        self.pins = [os.path.join(HERE, pin) for pin in pins]

    def path(self, cache):
        return os.path.join(cache, self.folder)

    def installed(self, cache):
        try:
            with open(os.path.join(self.path(cache), "installed"), encoding="utf-8") as file:
                return file.read() == _digest(self.pins)
        except OSError:
            return False

    def available(self):
        """None, or why these packages cannot be installed on this machine."""
        return None

    def install(self, cache):
        os.makedirs(cache, exist_ok=True)
        with open(os.path.join(cache, "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.installed(cache):
                return
            path = self.path(cache)
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
            self.fill(path)
            with open(os.path.join(path, "installed"), "w", encoding="utf-8") as file:
                file.write(_digest(self.pins))


class Npm(Packages):
    """npm packages, from a folder's package.json and package-lock.json."""

    def __init__(self, folder):
        super().__init__(folder, [f"{folder}/package.json", f"{folder}/package-lock.json"])

    def __str__(self):
        return f"npm packages of tests/peers/{self.folder}/package.json"

    def available(self):
        return None if shutil.which("npm") and shutil.which("node") else "Node.js with npm is not installed"

    def fill(self, path):
        for pin in self.pins:
            shutil.copy(pin, path)
        _run_installer(["npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit", "--loglevel=error"], path)


class Venv(Packages):
    """PyPI packages, from a requirements file, in a virtual environment."""

    def __init__(self, folder, requirements, oldest_python=(3, 11)):
        super().__init__(folder, [requirements])
        self.requirements = requirements
        self.oldest_python = oldest_python

    def __str__(self):
        return f"PyPI packages of tests/peers/{self.requirements}"

    def installed(self, cache):
        return os.access(self.python(cache), os.X_OK) and super().installed(cache)

    def available(self):
        version = ".".join(map(str, self.oldest_python))
        return None if self._interpreter() else f"Python {version} or newer is not installed"

    def fill(self, path):
        _run_installer([self._interpreter(), "-m", "venv", path], None)
        _run_installer(
            [
                self.python_in(path),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--requirement",
                self.pins[0],
            ],
            None,
        )

    def python(self, cache):
        return self.python_in(self.path(cache))

    @staticmethod
    def python_in(path):
        return os.path.join(path, "bin", "python")

    def _interpreter(self):
        """The interpreter of this process if it is new enough, else the newest that is found by name."""
        if sys.version_info[:2] >= self.oldest_python:
            return sys.executable
        for minor in range(20, self.oldest_python[1] - 1, -1):
            for path in (shutil.which(f"python3.{minor}"), *_pyenv(minor)):
                if path and subprocess.run([path, "-c", ""], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0:
                    return path
        return None


def _pyenv(minor):
    versions = os.path.expanduser("~/.pyenv/versions")
    names = os.listdir(versions) if os.path.isdir(versions) else []
    return [os.path.join(versions, name, "bin", "python") for name in sorted(names) if name.startswith(f"3.{minor}.")]


# ---------------------------------------------------------------------------- servers


class ServerFailed(Exception):
    """A server did not start."""


class Server:
    """One `posthaste serve` on a free loopback port, with a data directory of its own."""

    def __init__(self, binary, data, flags=(), env=None):
        self.binary, self.data, self.flags = binary, data, list(flags)
        self.env = {**ENVIRONMENT, **(env or {})}
        self.process, self.url, self.port = None, None, 0
        self.log = data + ".log"
        os.makedirs(data, exist_ok=True)

    def start(self):
        """Starts the server, on the port it had before if it was started before."""
        end = time.monotonic() + PORT_RETRY_SECONDS
        while True:
            try:
                return self._start_once()
            except ServerFailed as failure:
                # Another process may have been given the port between stop and start.
                if self.port == 0 or "in use" not in str(failure) or time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def _start_once(self):
        out = self.data + ".out"
        argv = [self.binary, "serve", "--data", self.data, "--listen", f"127.0.0.1:{self.port}", *self.flags]
        with open(out, "wb") as stdout, open(self.log, "ab") as stderr:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=self.env)
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            with open(out, encoding="utf-8", errors="replace") as file:
                ready = re.search(r"^ready (http\S+)$", file.read(), re.MULTILINE)
            if ready:
                self.url = ready.group(1)
                self.port = int(self.url.rsplit(":", 1)[1])
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        code = self.process.poll()
        self.kill()
        why = f"ended with {code}" if code is not None else f"was not ready within {READY_SECONDS} s"
        raise ServerFailed(f"the server {why}: {self.log_text()[-400:]}")

    def stop(self):
        """Ends the server with SIGTERM. Returns its exit code; None if it had to be killed."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        self.process = None
        return code

    def kill(self):
        """Ends the server with SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
            self.process = None

    def restart(self):
        self.stop()
        self.start()

    @property
    def admin_token(self):
        with open(os.path.join(self.data, "admin.token"), encoding="utf-8") as file:
            return file.read().strip()

    def create_token(self, realm, role, name):
        argv = [self.binary, "token", "create", "--data", self.data, "--realm", realm, "--role", role, "--name", name]
        ran = subprocess.run(argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=READY_SECONDS)
        if ran.returncode != 0:
            raise ServerFailed(f"posthaste token create: {ran.stderr.strip()}")
        return ran.stdout.strip()

    def log_text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""


# ---------------------------------------------------------------------------- one door's run


@dataclasses.dataclass
class DoorRun:
    """What a door's `run` is given: the binary, the packages, a work directory; it starts servers and check programs."""

    binary: str
    cache: str
    work: str
    only: str = ""
    slow: bool = False
    verbose: bool = False
    passed: int = 0
    failed: int = 0
    servers: list = dataclasses.field(default_factory=list)

    def serve(self, name, *flags, env=None):
        """A running server; it is ended when the door has finished."""
        server = Server(self.binary, os.path.join(self.work, name), flags, env)
        self.servers.append(server)
        return server.start()

    def program(self, title, argv, limit_seconds, env=None):
        """Runs a program that prints one line per check and ends with `N passed, M failed`, and adds up its count.

        The program failed if it says so, ends with another code than it should, or passes nothing.
        """
        print(f"-- {title}", flush=True)
        env = {**ENVIRONMENT, "PYTHONPATH": SUPPORT, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        process = subprocess.Popen(
            argv,
            cwd=self.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        timer = threading.Timer(limit_seconds, process.kill)
        timer.start()
        passed = failed = 0
        tail, counted = [], False
        try:
            for line in process.stdout:
                line = line.rstrip("\n")
                tail = [*tail[-9:], line]
                count = COUNT.match(line)
                if count:
                    passed, failed, counted = int(count.group(1)), int(count.group(2)), True
                if self.verbose or line.startswith(("not ok", "skip ")):
                    print(line, flush=True)
            code = process.wait()
        finally:
            timer.cancel()
        self.passed += passed
        self.failed += failed
        if failed == 0 and (code != 0 or not counted or (passed == 0 and not self.only)):
            self.failed += 1
            print(
                f"not ok {title}: ended with {code} after {passed} checks; the end of its output:",
                *tail,
                sep="\n    ",
                flush=True,
            )

    def close(self):
        """Ends the servers. A server that did not end cleanly counts as a failed check."""
        for server in reversed(self.servers):
            code = server.stop()
            if code != 0:
                self.failed += 1
                print(f"not ok the server ended with {code}: {server.log_text()[-400:]}", flush=True)


# ---------------------------------------------------------------------------- check programs


class Skip(Exception):
    """Raised by a check that cannot be made here; the text says why."""


class Tally:
    """Prints one line per check and counts them."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, passed, detail=""):
        if passed:
            self.passed += 1
            print(f"ok {name}", flush=True)
        else:
            self.failed += 1
            text = " ".join(str(detail).split())[:600]
            print(f"not ok {name}" + (f": {text}" if text else ""), flush=True)
        return bool(passed)

    def skip(self, name, why):
        self.skipped += 1
        print(f"skip {name}: {why}", flush=True)

    def close(self):
        """Prints the count and returns the exit code."""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}", flush=True)
        return 1 if self.failed else 0
