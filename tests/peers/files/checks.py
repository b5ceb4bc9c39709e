"""The checks of the file mailbox. The names of the checks are what each of them requires."""

import datetime
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from mailbox import (
    FIELDS,
    ISO,
    PRIORITIES,
    TIMED_OUT,
    TYPES,
    Failed,
    ago,
    check_name,
    check_sorted,
    collect,
    fresh_mailbox,
    naive_file,
    need,
    new_agent,
    now,
    reference_bytes,
    send_many,
    settled,
    snapshot_tree,
    subjects,
    traced_send,
)

from harness import Skip, Tally

import naive_peer

WRITERS = 8
MESSAGES_PER_WRITER = 500
CRASH_ROUNDS = 10

CHECKS = []


def check(name):
    def register(function):
        CHECKS.append((name, function))
        return function

    return register


def run(binary, with_server, only):
    tally = Tally()
    with fresh_mailbox(binary, with_server) as mailbox:
        for name, function in CHECKS:
            if not re.search(only, name):
                continue
            try:
                function(mailbox)
            except Skip as skip:
                tally.skip(name, skip)
            except Failed as failure:
                tally.check(name, False, failure)
            except Exception as error:
                tally.check(name, False, f"{type(error).__name__}: {error}")
            else:
                tally.check(name, True)
        mailbox.stop()
    return tally.close()


def only_file(mailbox, to):
    """The one file in a mailbox: its name and bytes."""
    names = mailbox.wait_files(to, 1)
    need(len(names) == 1, f"expected one file in the mailbox, found {names}")
    return names[0], mailbox.raw(to, names[0])


# ---------------------------------------------------------------------------- sending


@check("send creates the mailbox and exactly one *.json")
def _(mailbox):
    to = new_agent("polecat")
    need(not os.path.exists(mailbox.box(to)), "mailbox exists already")
    mailbox.send_ok("mayor-a1b2c", to, subject="hello")
    only_file(mailbox, to)


@check("file name is {timestamp, colons as dashes}-{from}.json; timestamp is ISO 8601 UTC and now")
def _(mailbox):
    to = new_agent("polecat")
    mailbox.send_ok("mayor-a1b2c", to)
    name, raw = only_file(mailbox, to)
    message = json.loads(raw)
    need(":" not in name, f"colon in file name {name!r}")
    need(ISO.match(message["timestamp"]), f"timestamp {message['timestamp']!r} is not ISO 8601 UTC (…Z)")
    moment = datetime.datetime.fromisoformat(message["timestamp"][:19] + "+00:00")
    need(abs((now() - moment).total_seconds()) < 120, f"timestamp is not the creation time: {message['timestamp']}")
    check_name(name, message)


@check("all eight fields, right types, values as given, read=false")
def _(mailbox):
    to = new_agent("polecat")
    given = {"subject": "Bead gt-abc12 assigned", "body": "Implement it.", "type": "work_assignment", "priority": "urgent"}
    mailbox.send_ok("mayor-a1b2c", to, **given)
    _, raw = only_file(mailbox, to)
    message = json.loads(raw)
    for field, kind in FIELDS.items():
        need(field in message, f"field {field!r} missing")
        need(type(message[field]) is kind, f"field {field!r} is {type(message[field]).__name__}, not {kind.__name__}")
    for field, value in {**given, "from": "mayor-a1b2c", "to": to, "read": False}.items():
        need(message[field] == value, f"field {field!r} is {message[field]!r}, sent {value!r}")


@check("keys sorted at every level, two-space indent, one trailing newline")
def _(mailbox):
    to = new_agent("polecat")
    mailbox.send_ok("witness-d3e4f", to, subject="plain", body="ascii only")
    _, raw = only_file(mailbox, to)
    want = reference_bytes(check_sorted(raw))
    need(raw == want, f"bytes differ from sorted JSON with indent 2 and a final newline: {raw[:120]!r} {want[:120]!r}")


@check("the five types and the three priorities are accepted and stored verbatim")
def _(mailbox):
    to = new_agent("mayor")
    want = set()
    for index, kind in enumerate(TYPES):
        priority = PRIORITIES[index % 3]
        mailbox.send_ok(f"sender-{index}", to, subject=f"t{index}", type=kind, priority=priority)
        want.add((kind, priority))
    stored = [json.loads(mailbox.raw(to, name)) for name in mailbox.wait_files(to, 5)]
    got = {(message["type"], message["priority"]) for message in stored}
    need(got == want, f"stored {sorted(got)}, sent {sorted(want)}")


@check("no temporary files remain in the mailbox after successful sends")
def _(mailbox):
    to = new_agent("polecat")
    for index in range(5):
        mailbox.send_ok("mayor-a1b2c", to, subject=str(index))
    mailbox.wait_files(to, 5)
    entries = os.listdir(mailbox.box(to))
    left = [name for name in entries if not name.endswith(".json") and name != "archive" and "lock" not in name]
    need(not left, f"left behind: {left}")


@check("bodies survive: newlines, quotes, backslashes, tabs, emoji, markup, shell characters, 200 kB")
def _(mailbox):
    to = new_agent("polecat")
    bodies = [
        "line1\nline2\n",
        'say "hi" \\ and \ttab',
        "💌 ünïcödé 日本語",
        "`rm -rf /` $(id) $HOME 'x' {root} {from} %s %d",
        "--not-a-flag",
        "<script>alert(1)</script>",
        "x" * 200000,
    ]
    for index, body in enumerate(bodies):
        mailbox.send_ok("sender", to, subject=f"b{index}", body=body)
    stored = [json.loads(mailbox.raw(to, name).decode("utf-8")) for name in mailbox.wait_files(to, len(bodies))]
    got = {message["subject"]: message["body"] for message in stored}
    for index, body in enumerate(bodies):
        need(got.get(f"b{index}") == body, f"body {index} came out as {(got.get(f'b{index}') or '')[:60]!r}")


# ---------------------------------------------------------------------------- inbox, read, archive


@check("inbox lists every message once, in file name order, with the stored values")
def _(mailbox):
    to = new_agent("polecat")
    for index, hours in enumerate((3, 2, 1)):
        name, data, _ = naive_file(f"peer-{'cab'[index]}", to, ago(hours=hours), f"o{index}")
        mailbox.drop(to, name, data)
    mailbox.send_ok("last-sender", to, subject="o3")
    messages, _ = mailbox.inbox_until(to, lambda messages: len(messages) >= 4, "not all four listed")
    need(subjects(messages) == ["o0", "o1", "o2", "o3"], f"order/content: {subjects(messages)}")
    as_stored = all(message.get("to") == to and message.get("read") is False for message in messages)
    need(as_stored, f"wrong values: {messages[:1]}")


@check("inbox of an agent without a mailbox is an empty list, exit 0")
def _(mailbox):
    messages, _ = mailbox.inbox(new_agent("unknown"))
    need(messages == [], f"got {messages}")


@check("corrupt JSON is skipped with a warning, left in place byte for byte, and hides nothing else")
def _(mailbox):
    to = new_agent("polecat")
    mailbox.send_ok("good-one", to, subject="before")
    broken = {
        ago(minutes=5).replace(":", "-") + "-broken-1.json": b'{"from": "x", "to":',
        ago(minutes=4).replace(":", "-") + "-broken-2.json": b"",
        ago(minutes=3).replace(":", "-") + "-broken-3.json": b"not json at all",
    }
    for name, data in broken.items():
        mailbox.drop(to, name, data)
    mailbox.send_ok("good-two", to, subject="after")
    seen = {}

    def all_named():
        both = lambda messages: {"before", "after"} <= set(subjects(messages))
        seen["messages"], warnings = mailbox.inbox_until(to, both, "good messages missing next to corrupt ones")
        warnings += mailbox.server_log()
        seen["unnamed"] = [name for name in broken if name not in warnings]
        return not seen["unnamed"]

    settled(all_named)
    need(len(seen["messages"]) == 2, f"inbox returned {len(seen['messages'])} messages, expected 2")
    where = 'stderr of inbox, "warnings" in its output, or the server log'
    need(not seen["unnamed"], f"no warning naming {seen['unnamed']} ({where})")
    for name, data in broken.items():
        need(name in mailbox.files(to) and mailbox.raw(to, name) == data, f"{name} was changed, moved or deleted")


@check("mark-read flips the read field and nothing else; same name; inbox shows it")
def _(mailbox):
    to = new_agent("polecat")
    mailbox.send_ok("mayor-a1b2c", to, subject="to read", body='αβγ "q"\n')
    name, raw = only_file(mailbox, to)
    before = json.loads(raw)
    mailbox.mark_read_ok(to, name)
    mailbox.wait_read(to, name)
    need(mailbox.files(to) == [name], f"files now {mailbox.files(to)}")
    after = check_sorted(mailbox.raw(to, name))
    need(after.get("read") is True, f"read is {after.get('read')!r}")
    changed = {key: (before.get(key), after.get(key)) for key in {*before, *after} if before.get(key) != after.get(key)}
    need({**before, "read": True} == after, f"other fields changed: {changed}")
    need(mailbox.raw(to, name) == raw.replace(b'"read": false', b'"read": true'), "bytes other than the flag changed")
    read = lambda messages: [message.get("read") for message in messages] == [True]
    mailbox.inbox_until(to, read, "inbox does not show read=true")


@check("mark-read keeps fields it does not know")
def _(mailbox):
    to = new_agent("polecat")
    unknown = {
        "thread_id": "th-1",
        "x_list": [3, 1, 2],
        "x_obj": {"b": 1, "a": {"z": None, "y": True}},
        "x_num": 1.5,
        "x_big": "9007199254740993",
    }
    name, data, message = naive_file("peer-x", to, ago(minutes=1), "extended", **unknown)
    mailbox.drop(to, name, data)
    mailbox.inbox_until(to, lambda messages: len(messages) == 1, "not listed")
    mailbox.mark_read_ok(to, name)
    mailbox.wait_read(to, name)
    need(json.loads(mailbox.raw(to, name)) == {**message, "read": True}, f"now {mailbox.raw(to, name)[:300]!r}")
    check_sorted(mailbox.raw(to, name))


@check("mark-read twice changes nothing the second time; of a missing file creates nothing")
def _(mailbox):
    to = new_agent("polecat")
    mailbox.send_ok("mayor-a1b2c", to)
    name, _ = only_file(mailbox, to)
    mailbox.mark_read(to, name)
    mailbox.wait_read(to, name)
    once = mailbox.raw(to, name)
    mailbox.mark_read_ok(to, name)
    need(mailbox.raw(to, name) == once, "content changed")
    mailbox.mark_read(to, "2026-03-05T10-30-00Z-ghost.json")
    need(mailbox.files(to) == [name], f"files: {mailbox.files(to)}")


@check("archive moves what is older than 24 h to archive/ unchanged, leaves the rest")
def _(mailbox):
    to = new_agent("polecat")
    files = []
    for hours, subject in ((100, "old-a"), (25, "old-b"), (24.2, "old-c"), (23.8, "new-a"), (1, "new-b")):
        name, data, _ = naive_file(f"peer-{subject}", to, ago(hours=hours), subject)
        mailbox.drop(to, name, data)
        files.append((name, data, subject.startswith("old")))
    mailbox.send_ok("now-sender", to, subject="new-c")
    mailbox.inbox_until(to, lambda messages: len(messages) == 6, "not all listed before archiving")
    mailbox.archive_ok(to)
    archived = mailbox.wait_files(to, 3, "archive")
    need(archived == sorted(name for name, _, old in files if old), f"archive holds {archived}")
    for name, data, old in files:
        need(mailbox.raw(to, name, "archive" if old else "") == data, f"{name} changed on the way")
    need(len(mailbox.files(to)) == 3, f"left in the mailbox: {mailbox.files(to)}")
    rest = lambda messages: sorted(subjects(messages)) == ["new-a", "new-b", "new-c"]
    mailbox.inbox_until(to, rest, "inbox after archiving")


@check("archive reads the stamp of fractional seconds and of dash-rich sender ids; leaves unparsable names")
def _(mailbox):
    to = new_agent("polecat")
    old = ago(days=3)
    names = {
        old[:-1].replace(":", "-") + ".123456789Z-mayor-a1b2c.json": True,
        old.replace(":", "-") + "-2026-03-05T10-30-00Z-impostor.json": True,
        ago(hours=1)[:-1].replace(":", "-") + ".5Z-x-y-z.json": False,
        "notes.json": False,
        "1-2-3-x.json": False,
    }
    for name in names:
        mailbox.drop(to, name, reference_bytes(naive_peer.message("x", to, name, "b", old)))
    mailbox.send_ok("now-sender", to, subject="n")
    mailbox.inbox_until(to, lambda messages: "n" in subjects(messages), "new message not listed")
    mailbox.archive_ok(to)
    archived = mailbox.wait_files(to, 2, "archive")
    left = mailbox.files(to)
    for name, moves in names.items():
        want = "be in archive/" if moves else "stay"
        need((name in archived) == moves and (name in left) == (not moves), f"{name} should {want}")


# ---------------------------------------------------------------------------- names that escape


def names_that_escape(mailbox):
    """Each escape ends inside the sandbox: the mail root lies three levels deep, and at most three `..` leave it."""
    return [
        "../evil",
        "..",
        ".",
        "",
        "../../hooks",
        "../../../evil-mail",
        "a/b",
        "polecat-alpha/archive",
        os.path.join(mailbox.sandbox, "abs-evil"),
    ]


def need_refusals(mailbox, command):
    """The command refuses each of these names and creates and changes nothing."""
    accepted = []
    before = snapshot_tree(mailbox.sandbox)
    for name in names_that_escape(mailbox):
        code, _, _ = command(name)
        if code == 0:
            accepted.append(name)
        need(code != TIMED_OUT, f"does not end for {name!r}")
    after = snapshot_tree(mailbox.sandbox)
    new = [path for path in after if path not in before and not os.path.basename(path).startswith(".")]
    changed = [path for path in before if path in after and after[path] != before[path] and path.endswith(".json")]
    need(not accepted, f"accepted (exit 0): {accepted}")
    stray = [path for path in new if path.endswith(".json") or "evil" in path]
    need(not stray and not changed, f"appeared or changed: {stray} {changed}")


@check("recipient ids that could leave the mail root are refused and create nothing")
def _(mailbox):
    need_refusals(mailbox, lambda name: mailbox.send("mayor-a1b2c", name, subject="t"))


@check("sender ids that could leave the mailbox are refused and create nothing")
def _(mailbox):
    to = new_agent("polecat")
    hooks = os.path.join(mailbox.sandbox, ".chipset", "state", "hooks")
    os.makedirs(hooks, exist_ok=True)
    hook, text = os.path.join(hooks, "polecat-alpha.json"), '{"status": "empty"}\n'
    with open(hook, "w") as file:
        file.write(text)
    mailbox.send_ok("mayor", to)
    need_refusals(mailbox, lambda name: mailbox.send(name or "/../../../hooks/polecat-alpha", to, subject="t"))
    with open(hook) as file:
        need(file.read() == text, "another agent's hook file was overwritten")
    need(len(mailbox.files(to)) == 1, f"mailbox: {mailbox.files(to)}")


# ---------------------------------------------------------------------------- beside another implementation


@check("a naive peer drops a file: it is picked up")
def _(mailbox):
    to = new_agent("polecat")
    for index in range(3):
        message = naive_peer.message(
            f"naive-{index}", to, f"n{index}", "from a naive peer", type="completion_report", priority="low"
        )
        naive_peer.send_mail(mailbox.root, message)
    messages, _ = mailbox.inbox_until(to, lambda messages: len(messages) == 3, "naive mail not picked up")
    as_sent = all(
        message["type"] == "completion_report" and message["priority"] == "low" and message["body"] == "from a naive peer"
        for message in messages
    )
    need(sorted(subjects(messages)) == ["n0", "n1", "n2"] and as_sent, str(messages)[:200])


@check("a naive reader reads what posthaste wrote")
def _(mailbox):
    to = new_agent("mayor")
    for index in range(3):
        mailbox.send_ok(f"polecat-{index}", to, subject=f"r{index}", body=f"ß{index}", type="completion_report")
    mailbox.wait_files(to, 3)
    read = naive_peer.check_mail(mailbox.root, to)
    need(sorted(message["subject"] for _, message in read) == ["r0", "r1", "r2"], str(read)[:200])
    need(all(message["read"] is False and message["to"] == to for _, message in read), str(read)[:200])


@check("read flags travel both ways between posthaste and a naive peer")
def _(mailbox):
    to = new_agent("mayor")
    mailbox.send_ok("polecat-1", to, subject="ours")
    naive_peer.mark_read(mailbox.root, to, mailbox.wait_files(to, 1)[0])
    read = lambda messages: [message.get("read") for message in messages] == [True]
    mailbox.inbox_until(to, read, "a naive mark-read is not seen")
    name = naive_peer.send_mail(mailbox.root, naive_peer.message("naive-9", to, "theirs", "b", ago(minutes=2)))
    mailbox.inbox_until(to, lambda messages: len(messages) == 2, "naive mail not picked up")
    mailbox.mark_read_ok(to, name)
    seen = settled(lambda: dict(naive_peer.check_mail(mailbox.root, to))[name]["read"] is True)
    need(seen, "the naive peer does not see posthaste's mark-read")


# ---------------------------------------------------------------------------- many writers, crashes, durability


@check("atomicity: a concurrent reader never sees partial JSON while writers run")
def _(mailbox):
    to = new_agent("busy")
    os.makedirs(mailbox.box(to), exist_ok=True)
    stop, partial, changed, sizes = threading.Event(), [], [], {}

    def read():
        while not stop.is_set():
            for name in mailbox.files(to)[-60:]:
                try:
                    raw = mailbox.raw(to, name)
                except FileNotFoundError:
                    continue
                try:
                    json.loads(raw.decode("utf-8"))
                except ValueError:
                    partial.append((name, len(raw)))
                if sizes.setdefault(name, len(raw)) != len(raw):
                    changed.append(name)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    try:
        acknowledged, errors = send_many(mailbox, to, lambda writer: f"writer-{writer}", 4, 25, size=120000, kind="at")
    finally:
        stop.set()
        for thread in readers:
            thread.join()
    need(len(acknowledged) == 100, f"{len(acknowledged)} of 100 acknowledged: {errors[:2]}")
    need(not partial, f"{len(partial)} partial reads, e.g. {partial[:3]}")
    need(not changed, f"files changed size after they became visible: {changed[:3]}")
    need(sizes, "the readers read nothing")
    _, missing, broken = collect(mailbox, to, acknowledged)
    need(not missing and not broken, f"missing {missing[:3]} broken {broken[:3]}")


@check("uniqueness: N writers, one sender id, one mailbox, one second: every acknowledged message has its own file")
def _(mailbox):
    to = new_agent("hot")
    acknowledged, errors = send_many(
        mailbox, to, lambda _: "mayor-a1b2c", WRITERS, MESSAGES_PER_WRITER, timestamp="2026-03-05T10:30:00Z", kind="uq"
    )
    count = WRITERS * MESSAGES_PER_WRITER
    need(len(acknowledged) == count, f"{len(acknowledged)} of {count} acknowledged; errors: {errors[:3]}")
    seen, missing, broken = collect(mailbox, to, acknowledged)
    need(not broken, f"broken: {broken[:3]}")
    need(not missing, f"{len(missing)} of {count} acknowledged messages are not on disk (e.g. {missing[:3]})")
    repeated = [subject for subject, files in seen.items() if files > 1]
    need(not repeated, f"in more than one file: {repeated[:3]}")
    need(len(mailbox.files(to)) == count, f"{len(mailbox.files(to))} files for {count} messages")


@check("crash: kill -9 the writer (or the server) mid-run; every acknowledged message is present and whole")
def _(mailbox):
    total = 0
    for number in range(CRASH_ROUNDS):
        with fresh_mailbox(mailbox.binary, mailbox.with_server) as own:
            to = new_agent("victim")
            acknowledged = crash(own, to)
            total += len(acknowledged)
            own.kill()
            own.start()
            _, missing, broken = collect(own, to, acknowledged)
            lost = f"{len(missing)} of {len(acknowledged)} acknowledged messages lost, e.g. {missing[:3]}"
            need(not missing, f"round {number}: {lost}")
            need(not broken, f"round {number}: broken files {broken[:3]}")
            for name in own.files(to):
                json.loads(own.raw(to, name).decode("utf-8"))
            own.send_ok("after-crash", to, subject="alive")
            own.inbox_until(to, lambda messages: "alive" in subjects(messages), "no service after the crash")
    need(total >= CRASH_ROUNDS, f"only {total} acknowledged in all rounds: nothing was tested")


def crash(mailbox, to):
    """Three writers, killed while they write; the server first, if there is one. Returns what was acknowledged until then."""
    acknowledged, begun = {}, threading.Event()
    processes = [mailbox.batch(stderr=subprocess.DEVNULL) for _ in range(3)]

    def body(writer, index):
        return f"cr:{writer}:{index}:" + "z" * 2000

    def feed(writer, process):
        try:
            for index in range(100000):
                message = {
                    "ref": f"{writer}-{index}",
                    "from": f"w-{writer}",
                    "to": to,
                    "type": "coordination",
                    "priority": "normal",
                    "subject": f"cr-{writer}-{index}",
                    "body": body(writer, index),
                }
                process.stdin.write((json.dumps(message) + "\n").encode())
                process.stdin.flush()
        except (OSError, ValueError):
            pass  # the process was killed

    def read(process):
        for line in process.stdout:
            try:
                writer, index = json.loads(line)["ref"].split("-")
            except (ValueError, KeyError, TypeError):
                continue  # a line that the kill cut off
            acknowledged[f"cr-{writer}-{index}"] = body(int(writer), int(index))
            begun.set()

    readers = [threading.Thread(target=read, args=(process,)) for process in processes]
    writers = [threading.Thread(target=feed, args=pair, daemon=True) for pair in enumerate(processes)]
    for thread in writers + readers:
        thread.start()
    begun.wait(20)
    time.sleep(random.uniform(0.01, 0.4))
    mailbox.kill()
    if mailbox.with_server:
        time.sleep(0.05)
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
    for thread in readers:
        thread.join(10)
    for process in processes:
        try:
            process.stdin.close()
        except OSError:
            pass
    return acknowledged


@check("a peer's half-written .msg.tmp is not used, renamed or removed")
def _(mailbox):
    to = new_agent("shared")
    os.makedirs(mailbox.box(to))
    path = os.path.join(mailbox.box(to), ".msg.tmp")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    half = b'{"from": "naive-peer", "body": "half of a mess'
    os.write(fd, half)
    inode = os.fstat(fd).st_ino
    for index in range(5):
        mailbox.send_ok("mayor", to, subject=f"m{index}")
    mailbox.wait_files(to, 5)
    untouched = os.path.exists(path) and os.stat(path).st_ino == inode
    if untouched:
        with open(path, "rb") as file:
            untouched = file.read() == half
    need(untouched, ".msg.tmp was touched")
    os.write(fd, b'age"}')
    os.close(fd)
    inodes = [os.stat(os.path.join(mailbox.box(to), name)).st_ino for name in mailbox.files(to)]
    need(inode not in inodes, "one of posthaste's files is the peer's inode")
    os.unlink(path)


@check("one naive writer and four of posthaste's on the same mailbox: nothing is lost on either side")
def _(mailbox):
    to = new_agent("mixed")
    os.makedirs(mailbox.box(to), exist_ok=True)
    naive = subprocess.Popen(
        [sys.executable, naive_peer.__file__, mailbox.root, "stream", "naive-w", to, "150", "3000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    acknowledged, errors = send_many(mailbox, to, lambda writer: f"ours-{writer}", 4, 40, size=3000, kind="mx")
    out, error = naive.communicate(timeout=120)
    need(naive.returncode == 0, f"the naive writer failed next to posthaste: {error.decode()[-200:]}")
    theirs = out.decode().split()
    need(len(acknowledged) == 160, f"acknowledged {len(acknowledged)} of 160: {errors[:2]}")
    _, missing, broken = collect(mailbox, to, acknowledged)
    need(not missing and not broken, f"missing {missing[:3]} broken {broken[:3]}")
    present = set(mailbox.files(to))
    lost = [name for name in theirs if name not in present]
    need(not lost, f"the naive peer's mail is gone: {lost[:3]}")
    for name in theirs:
        message = json.loads(mailbox.raw(to, name))
        need(message["from"] == "naive-w" and message["body"] == "n" * 3000, f"{name} was overwritten")
    count = 160 + len(theirs)
    mailbox.inbox_until(to, lambda messages: len(messages) == count, f"inbox should list all {count}")


@check("the data is fsynced before the message becomes visible (strace)")
def _(mailbox):
    with fresh_mailbox(mailbox.binary, mailbox.with_server) as own:
        calls, visible, source = traced_send(own)
    need(visible is not None, "no rename/link/creation of the final name seen")
    need(source is not None, "the final name was opened for writing directly: readers can see a partial file")
    temporary = os.path.basename(source)

    def syncs(name, args, result):
        if name in ("fsync", "fdatasync"):
            return result == 0 and (bool(temporary) and temporary in args or "(deleted)" in args)
        if name in ("syncfs", "sync"):
            return result == 0
        return name in ("open", "openat") and temporary in args and ("O_SYNC" in args or "O_DSYNC" in args)

    need(any(syncs(*call) for call in calls[:visible]), f"no fsync/fdatasync of {temporary} before it became visible")
