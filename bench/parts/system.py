"""Processes that this run started: their CPU time and memory, and how they are stopped."""
import os
import platform
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BODY = ("The migration is done and the tests pass on both branches. Two files are left for you: the parser and its golden samples. "
        "Please look at the open question in the thread before you merge.")
SUBJECT = "Ready for review"
TICK = os.sysconf("SC_CLK_TCK")


class Workspace:
    """A temporary directory on one disk, and the processes that were started in it. Leaving it ends them all, by their ids."""

    def __init__(self, parent=None):
        self.path = tempfile.mkdtemp(prefix="posthaste-bench-", dir=parent)
        # PostgreSQL refuses to run as root, so another user needs access.
        os.chmod(self.path, 0o711)
        self.running = []

    def __enter__(self):
        def leave(number, _frame):
            raise KeyboardInterrupt(number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, leave)
        return self

    def __exit__(self, *_):
        # A second Ctrl-C must not leave servers behind.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for server in list(self.running):
            server.stop()
        shutil.rmtree(self.path, ignore_errors=True)

    def folder(self, name):
        path = tempfile.mkdtemp(prefix=f"{name}-", dir=self.path)
        os.chmod(path, 0o711)
        return path

    def start(self, name, command, ready=None, user=None, stop=signal.SIGTERM, patience=60, **further):
        """Starts a server and waits until `ready(server)` is true."""
        server = Server(self, name, command, user, stop, further)
        self.running.append(server)
        end = time.monotonic() + patience
        while ready is not None and not ready(server):
            if server.process.poll() is not None or time.monotonic() > end:
                log = server.log()[-1500:]
                server.stop()
                raise RuntimeError(f"{name} did not start: {log}")
            time.sleep(0.05)
        return server


class Server:
    def __init__(self, workspace, name, command, user, stop, further):
        self.workspace, self.name, self.signal = workspace, name, stop
        self.log_path = os.path.join(workspace.path, f"{name}-{time.monotonic_ns()}.log")
        with open(self.log_path, "wb") as log:
            as_user = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
            # A process group of its own: Ctrl-C in the terminal reaches this program only, which then stops its servers.
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            start_new_session=True, **as_user, **further)
        self.pid = self.process.pid

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def stop(self):
        if self in self.workspace.running:
            self.workspace.running.remove(self)
        if self.process.poll() is None:
            self.process.send_signal(self.signal)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                end_all(tree(self.pid))
                self.process.wait()

    def cpu(self):
        """CPU seconds of the process and its children, also those that have ended."""
        spent = 0
        for pid in tree(self.pid):
            try:
                with open(f"/proc/{pid}/stat") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
                spent += sum(int(fields[at]) for at in (11, 12, 13, 14))
            except (OSError, IndexError):
                pass
        return spent / TICK

    def memory(self):
        """Bytes in memory; shared pages count once."""
        held = 0
        for pid in tree(self.pid):
            try:
                with open(f"/proc/{pid}/smaps_rollup") as maps:
                    held += sum(int(line.split()[1]) * 1024 for line in maps if line.startswith("Pss:"))
            except OSError:
                pass
        return held


def tree(pid):
    """A process and all its descendants."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children") as children:
                    todo.extend(int(child) for child in children.read().split())
        except OSError:
            pass
    return found


def end_all(pids):
    for pid in reversed(pids):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def answers(port):
    """A check that a server listens on the port."""
    def ask(_server):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False
    return ask


def run(command, timeout=300, **further):
    """Runs a program to its end: its output, and its CPU seconds (including children that it waited for)."""
    before = os.times()
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **further)
    try:
        out, errors = started.communicate(timeout=timeout)
    except BaseException:
        # It may have started a server, which it stops on SIGINT and which would outlive it after SIGKILL.
        below = tree(started.pid)
        started.send_signal(signal.SIGINT)
        try:
            started.wait(5)
        except subprocess.TimeoutExpired:
            end_all(below)
            started.wait()
        raise
    after = os.times()
    if started.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))[:300]}: {errors.strip()[-800:]}")
    return out, after.children_user + after.children_system - before.children_user - before.children_system


def rank(times, share):
    """The quantile of the times, in microseconds."""
    times = sorted(times)
    return round(times[min(len(times) - 1, int(len(times) * share))]) if times else None


def figure(times_us, wall, cpu=None, client=None, memory=None, failed=0):
    """One measurement, in the form of the results."""
    count = len(times_us)
    each = lambda seconds: None if seconds is None or not count else round(seconds * 1e6 / count, 2)
    return {"messages": count, "per_second": round(count / wall, 1) if wall else None, "p50_us": rank(times_us, 0.5),
            "p99_us": rank(times_us, 0.99), "server_cpu_us": each(cpu), "client_cpu_us": each(client), "memory": memory,
            **({"failed": failed} if failed else {})}


def middle(figures):
    """The median of each value, so that one bad round does not count."""
    figures = [one for one in figures if one]
    if not figures:
        return None
    joined = {}
    for key in figures[0]:
        values = sorted(one[key] for one in figures if one.get(key) is not None)
        half = len(values) // 2
        joined[key] = None if not values else values[half] if len(values) % 2 else round((values[half - 1] + values[half]) / 2, 2)
    return joined


def machine(directory):
    """The machine on which the figures were taken."""
    processor = "unknown"
    with open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as info:
        memory = int(info.readline().split()[1]) // 1024
    system = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True).stdout.strip()
    return {"processor": processor, "cores": os.cpu_count(), "memory_mib": memory, "file_system": system,
            "system": f"{platform.system()} {platform.release()}", "load_before": [round(n, 2) for n in os.getloadavg()]}
