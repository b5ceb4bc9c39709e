"""Results as a file, as one table of ratios, and as sentences about which side is faster."""
import json
import os

ORDER = ("map", "mcp", "nats", "redis", "postgres", "files", "sqlite")
# Metric, its title and unit, its scale, and whether more is better.
METRICS = (("per_second", "per second", 1, True), ("p50_us", "p50 ms", 1000, False), ("p99_us", "p99 ms", 1000, False),
           ("server_cpu_us", "server CPU µs", 1, False), ("memory", "memory MiB", 1 << 20, False))
# Two rounds of the same side differ by as much.
NOISE = 0.9


def load(path):
    if not os.path.exists(path):
        return None
    with open(path) as results:
        return json.load(results)


def save(path, results):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(f"{path}.new", "w") as out:
        json.dump(results, out, indent=1, ensure_ascii=False)
        out.write("\n")
    os.replace(f"{path}.new", path)


def all_pairs(results):
    for name in ORDER:
        yield from results["parts"].get(name, {}).get("results", [])


def ratio(metric, ours, theirs):
    """How many times better posthaste is; below one it is worse."""
    key, _, _, more = metric
    mine, its = (ours or {}).get(key), (theirs or {}).get(key)
    if not mine or not its:
        return None
    return mine / its if more else its / mine


def number(value):
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(metric, ours, theirs):
    key, _, scale, _ = metric
    shown = [None if not side or side.get(key) is None else side[key] / scale for side in (ours, theirs)]
    if shown == [None, None]:
        return ""
    times = ratio(metric, ours, theirs)
    return f"{number(shown[0])} / {number(shown[1])}" + (f" (**{times:.2f}**)" if times else "")


def table(results):
    """posthaste / peer (how many times better), a row for each pair and number in flight."""
    rows = [["posthaste / peer (ratio above 1: posthaste is better)", "in flight", *(metric[1] for metric in METRICS)]]
    for pair in all_pairs(results):
        for level, sides in pair["levels"].items():
            mark = ("" if pair["peer_synced"] else " †") + ("" if pair.get("ours_synced", True) else " ‡")
            failed = (sides["theirs"] or {}).get("failed")
            rows.append([f"{pair['ours']} / {pair['theirs']}{mark}", level + (f" ({failed:.0f} of the peer's failed)" if failed else ""),
                         *(cell(metric, sides["ours"], sides["theirs"]) for metric in METRICS)])
    return (f"{markdown(rows)}\n\n† The peer answers before the data is on disk, or never writes it. ‡ So does posthaste here: the sender asked for delivery to connected "
            "agents before the write. All other responses of posthaste come after the sync.")


def markdown(rows):
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    line = lambda row: "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |"
    return "\n".join([line(rows[0]), "| " + " | ".join("-" * width for width in widths) + " |", *map(line, rows[1:])])


def clients(results):
    """CPU time of the load generator for each message, because it runs on the same cores."""
    rows = [["load for", "1 in flight", "8", "64"]]
    for pair in all_pairs(results):
        for side, name in (("ours", f"posthaste, {pair['ours']}"), ("theirs", pair["theirs"])):
            figures = [(pair["levels"].get(level) or {}).get(side) or {} for level in ("1", "8", "64")]
            if any(figure.get("client_cpu_us") is not None for figure in figures) and name not in [row[0] for row in rows]:
                rows.append([name, *(number(figure.get("client_cpu_us")) for figure in figures)])
    return markdown(rows)


def worse(results):
    """Sentences about where posthaste is slower or larger than a peer."""
    lines = []
    for pair in all_pairs(results):
        phrases = []
        for metric in METRICS:
            found = [(level, ratio(metric, sides["ours"], sides["theirs"])) for level, sides in pair["levels"].items()]
            found = [(level, times) for level, times in found if times and times < NOISE]
            if not found:
                continue
            levels = ", ".join(level for level, _ in found)
            if metric[3]:
                values = ", ".join(f"{times * 100:.0f} %" for _, times in found)
                phrases.append(f"{values} of its rate at {levels} in flight")
            else:
                values = ", ".join(f"{1 / times:.1f}" for _, times in found)
                phrases.append(f"{values} times its {metric[1].rsplit(' ', 1)[0]} at {levels}")
        if phrases:
            synced = "" if pair["peer_synced"] else ", which does not sync before it answers"
            lines.append(f"- {pair['ours']} against {pair['theirs']}{synced}: {'; '.join(phrases)}.")
    for part, key, what in (("messages", "messages", "messages"), ("agents", "agents", "agents")):
        lines.extend(worse_growth(results["parts"].get(part, {}).get("results", []), key, what))
    return "\n".join(lines) or "- Nowhere."


def worse_growth(rows, key, what):
    """The same at the largest size of growth."""
    if not rows:
        return
    last = max(row[key] for row in rows)
    at_last = {row["system"]: row for row in rows if row[key] == last}
    ours = at_last.pop("posthaste", None)
    looks = (("memory", lambda row: row.get("memory_before")), ("CPU for a send", lambda row: row["send"].get("server_cpu_us")),
             ("p50 for a page of the inbox", lambda row: row.get("inbox", {}).get("p50_us")),
             ("p50 for a rare word", lambda row: row.get("rare", {}).get("p50_us")),
             ("p50 for a common word", lambda row: row.get("common", {}).get("p50_us")))
    for system, theirs in at_last.items() if ours else ():
        phrases = []
        for name, look in looks:
            mine, its = look(ours), look(theirs)
            if mine and its and its / mine < NOISE:
                phrases.append(f"{mine / its:.1f} times its {name}")
        if phrases:
            yield f"- With {last:,} {what}, against {system}: {'; '.join(phrases)}."


def sizes(results):
    """The tables of growth."""
    phrases = []
    messages = results["parts"].get("messages", {}).get("results", [])
    if messages:
        rows = [["holding messages", "messages", "memory MiB", "sends per second", "CPU µs per send", "p99 ms", "inbox page p50 ms", "rare word p50 ms",
                 "common word p50 ms"]]
        for row in messages:
            send, page = row["send"], lambda name: number(row[name]["p50_us"] / 1000 if row.get(name) and row[name]["p50_us"] else None)
            name = row["system"] + (" (1 in flight)" if row.get("in_flight") == 1 else "")
            rows.append([name, f"{row['messages']:,}", number(row["memory_before"] / (1 << 20)), number(send["per_second"]),
                         number(send["server_cpu_us"]), number(send["p99_us"] / 1000 if send["p99_us"] else None), page("inbox"), page("rare"),
                         page("common")])
        phrases.append(markdown(rows))
    agents = results["parts"].get("agents", {}).get("results", [])
    if agents:
        rows = [["registered agents", "agents", "memory before, MiB", "after the sends, MiB", "sends per second", "CPU µs per send", "p99 ms"]]
        systems = list(dict.fromkeys(row["system"] for row in agents))
        for row in sorted(agents, key=lambda row: systems.index(row["system"])):
            send = row["send"]
            rows.append([row["system"], f"{row['agents']:,}", number(row["memory_before"] / (1 << 20)), number(send["memory"] / (1 << 20)),
                         number(send["per_second"]), number(send["server_cpu_us"]), number(send["p99_us"] / 1000)])
        phrases.append(markdown(rows))
    return "\n\n".join(phrases)
