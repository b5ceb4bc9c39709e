"""Bar and line charts as SVG for light and dark pages."""
import math
from xml.sax.saxutils import escape

WIDTH = 860
STYLE = """<style>
text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #24292f; }
.head { font-size: 16px; font-weight: 600; } .small { font-size: 11.5px; fill: #57606a; }
.grid { stroke: #d0d7de; stroke-width: 1; } .axis { stroke: #8c959f; stroke-width: 1; }
.a { fill: #0a69da; stroke: #0a69da; } .b { fill: #9a6700; stroke: #9a6700; } .c { fill: #1a7f37; stroke: #1a7f37; }
.d { fill: #8250df; stroke: #8250df; } .e { fill: #cf222e; stroke: #cf222e; } .f { fill: #57606a; stroke: #57606a; }
.line { fill: none; stroke-width: 2.2; } .bar { stroke: none; } .peer { fill: #9a9fa6; stroke: none; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .small { fill: #9da7b3; } .grid { stroke: #30363d; } .axis { stroke: #6e7681; }
.a { fill: #58a6ff; stroke: #58a6ff; } .b { fill: #d29922; stroke: #d29922; } .c { fill: #3fb950; stroke: #3fb950; }
.d { fill: #bc8cff; stroke: #bc8cff; } .e { fill: #ff7b72; stroke: #ff7b72; } .f { fill: #9da7b3; stroke: #9da7b3; }
.line { fill: none; } .bar { stroke: none; } .peer { fill: #7d8590; stroke: none; }
}
</style>"""


def page(height, title, parts):
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
            f'aria-label="{escape(title)}">\n{STYLE}\n{text(16, 26, title, "head")}\n{body}\n</svg>\n')


def text(x, y, label, style="", anchor="start"):
    named = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(label)}</text>'


def short(value):
    """A number in short form."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g} M"
    if value >= 10_000:
        return f"{value / 1000:.0f} k"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def bars(title, note, rows):
    """Pairs of bars on one logarithmic scale: `(what, peer's name, ours, theirs, the ratio in words)`."""
    left, right, top, step = 310, 150, 66, 50
    values = [value for _, _, ours, theirs, _ in rows for value in (ours, theirs) if value]
    if not values:
        return None
    low, high = math.floor(math.log10(min(values)) - 0.2), math.ceil(math.log10(max(values)))
    span = max(high - low, 1)
    position = lambda value: left + (WIDTH - left - right) * (math.log10(value) - low) / span
    height = top + step * len(rows) + 34
    parts = [text(16, 46, note, "small")]
    for power in range(low, high + 1):
        x = position(10.0 ** power)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top - 6}" x2="{x:.1f}" y2="{height - 28}"/>')
        parts.append(text(x, height - 12, short(10.0 ** power), "small", "middle"))
    for at, (what, peer, ours, theirs, label) in enumerate(rows):
        y = top + step * at
        for line, (name, value, style) in enumerate(((what, ours, "a bar"), (peer, theirs, "peer"))):
            parts.append(text(left - 8, y + 12 + line * 17, name, "small" if line else "", "end"))
            if value:
                parts.append(f'<rect class="{style}" x="{left}" y="{y + 1 + line * 17}" width="{max(position(value) - left, 1):.1f}" height="14" rx="2"/>')
                parts.append(text(position(value) + 6, y + 12 + line * 17, short(value) + (f"  {label}" if line == 0 and label else ""), "small"))
            else:
                parts.append(text(left + 6, y + 12 + line * 17, "not measured", "small"))
    return page(height, title, parts)


def lines(title, across, up, series):
    """Lines on two logarithmic scales: `{name: [(x, y), …]}`; the name is at the end of its line."""
    left, right, top, height, bottom = 70, 230, 62, 400, 48
    points = [point for line in series.values() for point in line if point[1]]
    if not points:
        return None
    xs, ys = sorted({x for x, _ in points}), [y for _, y in points]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)) + 1e-9)
    high = max(high, low + 1)
    first, last = math.log10(xs[0]), math.log10(xs[-1])
    wide = (last - first) or 1
    across_at = lambda x: left + (WIDTH - left - right) * (math.log10(x) - first) / wide
    up_at = lambda y: height - bottom - (height - bottom - top) * (math.log10(y) - low) / (high - low)
    parts = [text(16, 46, up, "small")]
    for power in range(low, high + 1):
        y = up_at(10.0 ** power)
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{WIDTH - right}" y2="{y:.1f}"/>')
        parts.append(text(left - 8, y + 4, short(10.0 ** power), "small", "end"))
    for x in xs:
        parts.append(f'<line class="axis" x1="{across_at(x):.1f}" y1="{height - bottom}" x2="{across_at(x):.1f}" y2="{height - bottom + 5}"/>')
        parts.append(text(across_at(x), height - bottom + 20, short(x), "small", "middle"))
    parts.append(f'<line class="axis" x1="{left}" y1="{height - bottom}" x2="{WIDTH - right}" y2="{height - bottom}"/>')
    parts.append(text((left + WIDTH - right) / 2, height - 8, across, "small", "middle"))
    # Overlapping names are moved apart.
    ends = sorted(((up_at(line[-1][1]), name) for name, line in series.items() if line), key=lambda end: end[0])
    labels, above = {}, top - 20
    for y, name in ends:
        above = max(y + 4, above + 17)
        labels[name] = above
    excess = max(0, above - (height - bottom + 10))
    for at, (name, line) in enumerate(series.items()):
        line = [(x, y) for x, y in line if y]
        if not line:
            continue
        style = "abcdef"[at % 6]
        track = " ".join(f"{across_at(x):.1f},{up_at(y):.1f}" for x, y in line)
        parts.append(f'<polyline class="{style} line" points="{track}"/>')
        parts.extend(f'<circle class="{style}" cx="{across_at(x):.1f}" cy="{up_at(y):.1f}" r="3.2"/>' for x, y in line)
        parts.append(f'<text class="{style} bar" x="{across_at(line[-1][0]) + 10:.1f}" y="{labels[name] - excess:.1f}">'
                     f"{escape(name)} {short(float(f'{line[-1][1]:.3g}'))}</text>")
    return page(height, title, parts)
