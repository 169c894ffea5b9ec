#!/usr/bin/env python3
"""Draw the first table of docs/measured.md as bars: docs/speed.svg.

    test/bench/picture.py docs/measured.md >docs/speed.svg

Each row of the table has a bar for PostgreSQL, as long as every other row's, and
one for gpusort, shorter by how many times faster it is.  Lint checks that
the picture is that of the table.
"""
import html
import re
import sys

WIDTH = 880
LABELS = 400  # width of the rows' names
BARS = 310  # width of PostgreSQL's bars
BAR = 11
ROW = 38
TITLE = "Milliseconds on one NVIDIA H200 and 16 cores, PostgreSQL 15.20, November 2026"
TOP = 66

STYLE = """
  text { font: 12.5px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .ms { font-size: 11px; fill: #59636e; }
  .title { font-size: 14px; font-weight: 600; }
  .times { font-weight: 600; }
  .stock { fill: #b7bfc8; }
  .ours { fill: #2f81c7; }
  .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .ms { fill: #9198a1; }
    .stock { fill: #57606a; }
    .ours { fill: #58a6ff; }
    .page { fill: #0d1117; }
  }
"""


def table_rows(document):
    """(name, PostgreSQL's ms, gpusort's ms) of each row of the first table that has times."""
    begin = document.index("<!-- measured: begin")
    end = document.index("<!-- measured: end", begin)
    for line in document[begin:end].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or not re.fullmatch(r"[\d.]+", cells[1]):
            continue
        name = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cells[0]).replace("`", "")
        yield name, float(cells[1]), float(cells[2])


def draw(rows):
    height = TOP + ROW * len(rows) + 6
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img" aria-label="Times of PostgreSQL and of gpusort">',
        f"<style>{STYLE}</style>",
        # the page around it may have colours that the reader's system has not
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="{WIDTH / 2:g}" y="20" text-anchor="middle">{TITLE}</text>',
        f'<rect class="stock" x="{LABELS}" y="38" width="{BAR}" height="{BAR}"/>',
        f'<text x="{LABELS + 18}" y="48">PostgreSQL at its best</text>',
        f'<rect class="ours" x="{LABELS + 180}" y="38" width="{BAR}" height="{BAR}"/>',
        f'<text x="{LABELS + 198}" y="48">gpusort</text>',
        f'<text class="ms" x="{WIDTH - 4}" y="48" text-anchor="end">each line has its own scale</text>',
    ]
    for i, (name, stock, ours) in enumerate(rows):
        y = TOP + ROW * i
        end = LABELS + BARS
        width = max(BARS * ours / stock, 1)
        out += [
            f'<text x="{LABELS - 12}" y="{y + 17}" text-anchor="end">{html.escape(name)}</text>',
            f'<rect class="stock" x="{LABELS}" y="{y}" width="{BARS}" height="{BAR}"/>',
            f'<rect class="ours" x="{LABELS}" y="{y + BAR + 2}" width="{width:.1f}" height="{BAR}"/>',
            f'<text class="ms" x="{end + 8}" y="{y + 10}">{stock:g} ms</text>',
            f'<text class="ms" x="{LABELS + width + 8:.1f}" y="{y + 2 * BAR + 1}">{ours:g} ms</text>',
            f'<text class="times" x="{WIDTH - 4}" y="{y + 17}" text-anchor="end">{stock / ours:.1f} times</text>',
        ]
    return "\n".join(out + ["</svg>"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = list(table_rows(file.read()))
    if not rows:
        sys.exit("no times found")
    print(draw(rows))


if __name__ == "__main__":
    main()
