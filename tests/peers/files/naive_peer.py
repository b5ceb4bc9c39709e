#!/usr/bin/env python3
"""A second implementation of the file mailbox, as simple as the published protocol allows, with the flaws of that protocol.

One temporary name shared by all writers, a rename that overwrites, no fsync of the directory. The checks use it as the peer that
posthaste has to get along with.

    naive_peer.py ROOT stream FROM TO COUNT SIZE      writes COUNT messages of SIZE bytes, prints the file name of each

ROOT is the mail root (`.chipset/state/mail`).
"""

import datetime
import json
import os
import sys


def serialize_sorted(obj):
    """JSON with sorted keys at every level, indented by two, with a newline at the end."""
    return json.dumps(obj, sort_keys=True, indent=2, ensure_ascii=False, separators=(",", ": ")) + "\n"


def now_iso():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def message(sender, to, subject, body, timestamp=None, type="coordination", priority="normal", **other):
    return {
        "from": sender,
        "to": to,
        "type": type,
        "subject": subject,
        "body": body,
        "timestamp": timestamp or now_iso(),
        "read": False,
        "priority": priority,
        **other,
    }


def write_file(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        while data:
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def send_mail(root, message):
    directory = os.path.join(root, message["to"])
    os.makedirs(directory, exist_ok=True)
    final = os.path.join(directory, message["timestamp"].replace(":", "-") + "-" + message["from"] + ".json")
    temporary = os.path.join(directory, ".msg.tmp")
    write_file(temporary, serialize_sorted(message).encode())
    os.rename(temporary, final)
    return os.path.basename(final)


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def check_mail(root, agent):
    """The names and messages of a mailbox."""
    directory = os.path.join(root, agent)
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".json"))
    except OSError:
        return []
    read = [(name, read_json(os.path.join(directory, name))) for name in names]
    return [(name, message) for name, message in read if message]


def mark_read(root, agent, name):
    path = os.path.join(root, agent, name)
    message = read_json(path)
    if not message or message.get("read"):
        return
    message["read"] = True
    write_file(path + ".tmp", serialize_sorted(message).encode())
    os.rename(path + ".tmp", path)


def stream(root, sender, to, count, size):
    first = datetime.datetime.now(datetime.timezone.utc)
    for index in range(count):
        moment = first + datetime.timedelta(milliseconds=index)
        timestamp = moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        print(send_mail(root, message(sender, to, f"naive-{index}", "n" * size, timestamp)), flush=True)


if __name__ == "__main__":
    root, command, sender, to, count, size = sys.argv[1:]
    if command != "stream":
        sys.exit(__doc__)
    stream(root, sender, to, int(count), int(size))
