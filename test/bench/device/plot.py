#!/usr/bin/env python3
"""Draw the cells of the device benchmark.

	test/bench/device/plot.py cells.tsv >plot.svg

A group of bars for each dataset, a bar for each engine, milliseconds on a
logarithmic axis; a line across each group marks its bound, what reading the
distinguishing bytes takes.  Numbers printed by papers are rings.  Needs
nothing but Python.
"""
import math
import sys
from xml.sax.saxutils import escape

COLORS = {
    'ours': '#1b7837',
    'radix2013': '#2166ac',
    'merge2012': '#d95f0e',
    'radix2011': '#fec44f',
    'comparator': '#999999',
    'arraysort2016': '#8c510a',
    'sta': '#dfc27d',
}
OTHER_COLORS = ['#762a83', '#af8dc3', '#e7d4e8', '#5ab4ac', '#01665e', '#c51b7d']
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 60, 110
BAR, GAP, HEIGHT = 9, 14, 360


def read_cells(path):
    """The cells of each dataset, in the order of the file."""
    datasets = {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            fields = line.rstrip('\n').split('\t')
            engine = fields[3]
            if engine == 'ours, with keys':
                continue
            datasets.setdefault(fields[1], []).append({
                'engine': engine,
                'ms': float(fields[4]),
                'least': float(fields[5]),
                'most': float(fields[6]),
                'bound': float(fields[8]),
                'printed': float(fields[10]) if fields[10] else None,
            })
    return datasets


def draw(datasets):
    engines = []
    for cells in datasets.values():
        for cell in cells:
            if cell['engine'] not in engines:
                engines.append(cell['engine'])
    others = iter(OTHER_COLORS * len(engines))
    color = {engine: COLORS.get(engine) or next(others) for engine in engines}

    values = [value for cells in datasets.values() for cell in cells
              for value in (cell['ms'], cell['bound'], cell['printed']) if value]
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))

    def y(ms):
        return TOP + HEIGHT * (1 - (math.log10(ms) - low) / (high - low))

    width = LEFT + RIGHT + sum(len(cells) * BAR + GAP for cells in datasets.values())
    width = max(width, LEFT + RIGHT + 150 * len(engines))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + BOTTOM}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, engine in enumerate(engines):
        x = LEFT + 150 * number
        parts.append(f'<rect x="{x}" y="14" width="11" height="11" fill="{color[engine]}"/>')
        parts.append(f'<text x="{x + 16}" y="24">{escape(engine)}</text>')
    parts.append(f'<text x="{LEFT}" y="44" fill="#555">Milliseconds. Line: bound. Ring: printed in the'
                 ' paper, on its hardware.</text>')
    for exponent in range(low, high + 1):
        at = y(10 ** exponent)
        parts.append(f'<line x1="{LEFT}" x2="{width - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0 ** exponent:g}</text>')

    x = LEFT + GAP / 2
    for name, cells in datasets.items():
        begin = x
        for cell in cells:
            top = y(cell['ms'])
            middle = x + BAR / 2
            parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="{BAR - 1}" height="{TOP + HEIGHT - top:.1f}"'
                         f' fill="{color[cell["engine"]]}"><title>{escape(name)}, {escape(cell["engine"])}:'
                         f' {cell["ms"]:.3f} ms</title></rect>')
            parts.append(f'<line x1="{middle - .5:.1f}" x2="{middle - .5:.1f}" y1="{y(cell["least"]):.1f}"'
                         f' y2="{y(cell["most"]):.1f}" stroke="black"/>')
            if cell['printed']:
                parts.append(f'<circle cx="{middle - .5:.1f}" cy="{y(cell["printed"]):.1f}" r="3" fill="none"'
                             f' stroke="{color[cell["engine"]]}" stroke-width="1.5"/>')
            x += BAR
        if cells[0]['bound'] > 0:
            at = y(cells[0]['bound'])
            parts.append(f'<line x1="{begin:.1f}" x2="{x - 1:.1f}" y1="{at:.1f}" y2="{at:.1f}"'
                         ' stroke="#b2182b" stroke-width="2"/>')
        parts.append(f'<text transform="translate({(begin + x) / 2:.1f} {TOP + HEIGHT + 14}) rotate(40)">'
                     f'{escape(name)}</text>')
        x += GAP
    parts.append('</svg>')
    return '\n'.join(parts)


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cells_by_dataset = read_cells(sys.argv[1])
    if not cells_by_dataset:
        sys.exit('no cells')
    print(draw(cells_by_dataset))
