"""posthaste's file mailbox as its users see it: the commands of the command line, and the directory itself."""

import collections
import datetime
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time

from harness import Server, Skip

import naive_peer

#: Seconds that a server may lag behind the directory.
SETTLE_SECONDS = 5
COMMAND_SECONDS = 30
BATCH_SECONDS = 600
TIMED_OUT, NOT_STARTED = 124, 125

FIELDS = {
    "from": str,
    "to": str,
    "type": str,
    "subject": str,
    "body": str,
    "timestamp": str,
    "read": bool,
    "priority": str,
}
TYPES = ("work_assignment", "completion_report", "merge_notification", "health_escalation", "coordination")
PRIORITIES = ("urgent", "normal", "low")
ISO = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$")


class Failed(Exception):
    """A check failed; the text says how."""


def need(condition, why):
    if not condition:
        raise Failed(why)


def tail(error_output):
    return error_output.decode(errors="replace")[-300:]


class Mailbox:
    """The commands, bound to one mail root, and a server on that root if there is to be one.

    The root lies inside a sandbox, three levels down, so that escapes from it can be seen.
    """

    def __init__(self, binary, directory, with_server):
        self.binary = binary
        self.with_server = with_server
        self.sandbox = os.path.join(directory, "sandbox")
        self.root = os.path.join(self.sandbox, ".chipset", "state", "mail")
        os.makedirs(self.root)
        self.server = Server(binary, os.path.join(directory, "server"), [f"--mail-dir={self.root}"])
        self.start()

    # the server

    def start(self):
        if self.with_server:
            self.server.start()

    def kill(self):
        self.server.kill()

    def stop(self):
        need(self.server.stop() == 0, "the server did not end cleanly")

    def server_log(self):
        return self.server.log_text()

    # the commands

    def command(self, name, *args, prefix=()):
        return [*prefix, self.binary, name, f"--mail-dir={self.root}", *args]

    def run(self, name, *args, stdin=b"", prefix=()):
        """The exit code and what was written to standard output and error."""
        argv = self.command(name, *args, prefix=prefix)
        try:
            ran = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            return TIMED_OUT, b"", b"the command did not end in time"
        except (ValueError, OSError) as error:
            return NOT_STARTED, b"", str(error).encode()
        return ran.returncode, ran.stdout, ran.stderr

    def send(self, sender, to, subject="s", body="b", type="coordination", priority="normal", prefix=()):
        options = {"from": sender, "to": to, "type": type, "priority": priority, "subject": subject}
        args = [f"--{name}={value}" for name, value in options.items()]
        return self.run("send", *args, stdin=body.encode("utf-8"), prefix=prefix)

    def send_ok(self, *args, **options):
        code, _, error = self.send(*args, **options)
        need(code == 0, f"send exited {code}: {tail(error)}")

    def batch(self, stderr=subprocess.PIPE):
        """A process that reads messages as JSON lines and prints a line for each message that is durable."""
        return subprocess.Popen(self.command("send", "--batch"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)

    def inbox(self, agent):
        """The messages, and what was warned of."""
        code, out, error = self.run("inbox", f"--agent={agent}", "--json")
        need(code == 0, f"inbox exited {code}: {tail(error)}")
        try:
            messages = json.loads(out.decode("utf-8"))
        except ValueError as problem:
            raise Failed(f"inbox did not print JSON: {problem} ({out[:200]!r})") from problem
        warnings = error.decode(errors="replace")
        if isinstance(messages, dict):
            warnings += json.dumps(messages.get("warnings", ""))
            messages = messages.get("messages")
        need(isinstance(messages, list), 'inbox must print a JSON array of messages (or {"messages": [...]})')
        return messages, warnings

    def inbox_until(self, agent, holds, why):
        """The inbox once `holds` is true of its messages: a server may lag behind the directory."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            messages, warnings = self.inbox(agent)
            if holds(messages):
                return messages, warnings
            need(time.monotonic() < end, f"{why} (inbox has {len(messages)}: {subjects(messages)[:8]})")
            time.sleep(0.1)

    def mark_read(self, agent, name):
        return self.run("read", f"--agent={agent}", name)

    def mark_read_ok(self, agent, name):
        code, _, error = self.mark_read(agent, name)
        need(code == 0, f"read exited {code}: {tail(error)}")

    def archive_ok(self, agent):
        code, _, error = self.run("archive", f"--agent={agent}")
        need(code == 0, f"archive exited {code}: {tail(error)}")

    # the directory

    def box(self, agent):
        return os.path.join(self.root, agent)

    def files(self, agent, folder=""):
        try:
            return sorted(name for name in os.listdir(os.path.join(self.root, agent, folder)) if name.endswith(".json"))
        except FileNotFoundError:
            return []

    def wait_files(self, agent, count, folder=""):
        settled(lambda: len(self.files(agent, folder)) >= count)
        return self.files(agent, folder)

    def wait_read(self, agent, name):
        settled(lambda: json.loads(self.raw(agent, name)).get("read") is True)

    def raw(self, agent, name, folder=""):
        with open(os.path.join(self.root, agent, folder, name), "rb") as file:
            return file.read()

    def drop(self, agent, name, data):
        """Puts a file into a mailbox as a correct peer does: a temporary name of its own, fsync, rename."""
        os.makedirs(self.box(agent), exist_ok=True)
        temporary = os.path.join(self.box(agent), f".drop-{random.getrandbits(48):x}.tmp")
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, os.path.join(self.box(agent), name))


class fresh_mailbox:
    """A mailbox in a directory of its own, as a context."""

    def __init__(self, binary, with_server):
        self.binary, self.with_server = binary, with_server

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="files-", dir=".")
        self.mailbox = Mailbox(self.binary, os.path.abspath(self.directory), self.with_server)
        return self.mailbox

    def __exit__(self, *_):
        self.mailbox.server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def settled(holds):
    """Whether something holds within the time that a server may lag behind."""
    end = time.monotonic() + SETTLE_SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


# ---------------------------------------------------------------------------- what a message looks like


def reference_bytes(message):
    return naive_peer.serialize_sorted(message).encode("utf-8")


def check_sorted(data):
    """The JSON value; its keys must be sorted at every level."""

    def pairs_hook(pairs):
        keys = [key for key, _ in pairs]
        need(keys == sorted(keys), f"keys not sorted: {keys}")
        return dict(pairs)

    return json.loads(data.decode("utf-8"), object_pairs_hook=pairs_hook)


def check_name(name, message):
    want = message["timestamp"].replace(":", "-") + "-" + message["from"] + ".json"
    need(name == want, f"file is named {name!r} but timestamp and sender say {want!r}")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def ago(**delta):
    return (now() - datetime.timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def naive_file(sender, to, timestamp, subject, **other):
    """A file as the naive peer writes it: its name, its bytes, its message."""
    message = naive_peer.message(sender, to, subject, "body of " + subject, timestamp, **other)
    return timestamp.replace(":", "-") + "-" + sender + ".json", reference_bytes(message), message


def subjects(messages):
    return [message.get("subject") for message in messages if isinstance(message, dict)]


_agents = 0


def new_agent(prefix="agent"):
    """The id of an agent that has no mailbox yet, with dashes like the examples of the contract."""
    global _agents
    _agents += 1
    return f"{prefix}-{_agents:02d}-{random.getrandbits(16):04x}"


# ---------------------------------------------------------------------------- many messages at once


def send_many(mailbox, to, sender_of, writers, per, timestamp=None, size=64, kind="u"):
    """`per` messages from each of several writers at once. Returns the acknowledged subjects with their bodies, and errors."""
    acknowledged, errors, lock = {}, [], threading.Lock()

    def body(writer, index):
        return f"{kind}:{writer}:{index}:" + chr(97 + writer % 26) * size

    def write(writer):
        process = mailbox.batch()
        lines = []
        for index in range(per):
            message = {
                "ref": f"{writer}-{index}",
                "from": sender_of(writer),
                "to": to,
                "type": "coordination",
                "priority": "normal",
                "subject": f"{kind}-{writer}-{index}",
                "body": body(writer, index),
            }
            if timestamp:
                message["timestamp"] = timestamp
            lines.append(json.dumps(message, ensure_ascii=False) + "\n")
        try:
            out, error = process.communicate("".join(lines).encode("utf-8"), timeout=BATCH_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, error = process.communicate()
        with lock:
            if process.returncode:
                errors.append(f"writer {writer} exited {process.returncode}: {tail(error)}")
            for line in out.decode("utf-8", "replace").splitlines():
                try:
                    writer_text, index_text = json.loads(line)["ref"].split("-")
                except (ValueError, KeyError, TypeError):
                    errors.append(f"bad acknowledgement {line[:80]!r}")
                    continue
                acknowledged[f"{kind}-{writer_text}-{index_text}"] = body(int(writer_text), int(index_text))

    run_threads([threading.Thread(target=write, args=(writer,)) for writer in range(writers)])
    return acknowledged, errors


def run_threads(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def collect(mailbox, to, acknowledged):
    """Counts the files of each acknowledged subject. Returns the counts, the missing subjects, and files that are not whole."""
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        seen, broken = collections.Counter(), []
        for folder in ("", "archive"):
            for name in mailbox.files(to, folder):
                try:
                    message = json.loads(mailbox.raw(to, name, folder).decode("utf-8"))
                except ValueError:
                    broken.append(name)
                    continue
                except FileNotFoundError:
                    continue
                if message.get("subject") in acknowledged:
                    if message.get("body") != acknowledged[message["subject"]]:
                        broken.append(name + " (wrong body)")
                    seen[message["subject"]] += 1
                    check_name(name, message)
        missing = [subject for subject in acknowledged if not seen[subject]]
        if (not missing and not broken) or time.monotonic() > end:
            return seen, missing, broken
        time.sleep(0.1)


def snapshot_tree(top):
    """Mode, size and time of every file and folder below a folder."""
    entries = {}
    for directory, folders, files in os.walk(top):
        for name in files + folders:
            path = os.path.join(directory, name)
            stat = os.lstat(path)
            is_file = name in files
            entries[os.path.relpath(path, top)] = (
                stat.st_mode,
                stat.st_size if is_file else 0,
                stat.st_mtime_ns if is_file else 0,
            )
    return entries


# ---------------------------------------------------------------------------- system calls

TRACED = (
    "open,openat,creat,write,pwrite64,writev,fsync,fdatasync,syncfs,sync,sync_file_range,"
    "rename,renameat,renameat2,link,linkat,io_uring_enter"
)


def strace(output):
    return ["strace", "-f", "-y", "-qq", "-s", "256", "-e", "signal=none", "-e", "trace=" + TRACED, "-o", output]


def parse_strace(path, final_name):
    """The calls (name, arguments, result); the index of the call that made the file visible; the name it had before."""
    calls, unfinished = [], {}
    with open(path, errors="replace") as file:
        for line in file:
            match = re.match(r"^(\d+)\s+(.*)$", line)
            if not match:
                continue
            pid, rest = match.groups()
            if rest.rstrip().endswith("<unfinished ...>"):
                unfinished[pid] = rest.rstrip()[: -len("<unfinished ...>")]
                continue
            resumed = re.match(r"^<\.\.\. (\w+) resumed>(.*)$", rest)
            if resumed:
                rest = unfinished.pop(pid, resumed.group(1) + "(") + resumed.group(2)
            call = re.match(r"^(\w+)\((.*)\)\s+=\s+(-?\d+)", rest)
            if call:
                calls.append((call.group(1), call.group(2), int(call.group(3))))
    for index, (name, args, result) in enumerate(calls):
        if name.startswith(("rename", "link")) and result == 0 and final_name in args:
            strings = re.findall(r'"((?:[^"\\]|\\.)*)"', args)
            if strings and os.path.basename(strings[-1]) == final_name:
                return calls, index, strings[0]
        if name in ("open", "openat", "creat") and result >= 0 and "O_CREAT" in args and f'/{final_name}"' in args:
            return calls, index, None
    return calls, None, None


def traced_send(mailbox):
    """Sends under strace. Returns what `parse_strace` does."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    to = new_agent("traced")
    mailbox.send_ok("warm-up", to)
    before = set(mailbox.wait_files(to, 1))
    output = os.path.join(os.path.dirname(mailbox.sandbox), "strace.txt")
    mailbox.send_ok("mayor", to, subject="traced", prefix=strace(output))
    names = [name for name in mailbox.wait_files(to, 2) if name not in before]
    need(len(names) == 1, "traced message not found")
    calls, visible, source = parse_strace(output, names[0])
    if not calls:
        raise Skip("strace recorded nothing (ptrace not permitted?)")
    if any(name == "io_uring_enter" for name, _, _ in calls):
        raise Skip("io_uring in use: calls are not visible")
    return calls, visible, source
