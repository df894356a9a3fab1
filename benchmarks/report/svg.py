# SPDX-License-Identifier: Apache-2.0
"""Two kinds of plot as SVG: bars, and lines with logarithmic scales."""
import math
from html import escape

COLOURS = {"kclxx": "#0b62a4", "kclxx-waited": "#5b9bd0", "kclxx-static": "#8fb8dd", "kclxx-each": "#3f86bb",
           "floor": "#555555", "floor-unwaited": "#777777", "print_records": "#2f8fb5", "answer-only": "#999999",
           "rust": "#c1541c", "node": "#4f8a3c", "python": "#b08900", "cpp-dom": "#8a4f9e"}


class Drawing:
    def __init__(self, width, height, title):
        self.size = (width, height)
        self.parts = [f'<rect width="{width}" height="{height}" fill="white"/>']
        self.text(16, 26, title, size=16, weight="bold")

    def text(self, x, y, text, size=12, anchor="start", weight="normal", colour="#222222"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
                          f'font-weight="{weight}" fill="{colour}">{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, colour="#dddddd", width=1):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{colour}" stroke-width="{width}"/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 2):.1f}" height="{height}" '
                          f'fill="{colour}"/>')

    def points(self, points, colour, dashed=False):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if not dashed:
            self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]

    def write(self, path):
        width, height = self.size
        body = "\n".join(self.parts)
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                        f'height="{height}" font-family="DejaVu Sans, Verdana, sans-serif">\n{body}\n</svg>\n')


def plain(value):
    """A number as people read it."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _axis(groups, length):
    """Bars begin at 0 where all values are small, else at 1 with a logarithmic scale; the ticks show which."""
    most = max(value for _, group in groups for _, value in group)
    if most < 8:
        ticks = range(math.ceil(most) + 1)
        return ticks, lambda value: value / ticks[-1] * length
    decades = math.ceil(math.log10(most))
    return [10 ** i for i in range(decades + 1)], lambda value: math.log10(max(value, 1)) / decades * length


def bars(path, title, note, groups):
    """`groups`: a title and rows of (client, value). Shorter is better."""
    left, right, row_height, width = 130, 70, 20, 760
    rows = sum(len(group) for _, group in groups)
    drawing = Drawing(width, 62 + rows * row_height + len(groups) * 44, title)
    drawing.text(16, 46, note, colour="#555555")
    ticks, to_x = _axis(groups, width - left - right)
    y = 62
    for heading, group in groups:
        y += 24
        drawing.text(16, y - 6, heading, weight="bold")
        bottom = y + len(group) * row_height
        for tick in ticks:
            x = left + to_x(tick)
            drawing.line(x, y, x, bottom, colour="#777777" if tick == 1 else "#dddddd")
            drawing.text(x, bottom + 13, f"{tick:,}", size=10, anchor="middle", colour="#777777")
        for client, value in group:
            length = to_x(value)
            drawing.bar(left, y + 3, length, row_height - 6, COLOURS.get(client, "#777777"))
            drawing.text(left - 8, y + 14, client, anchor="end")
            drawing.text(left + max(length, 2) + 6, y + 14, plain(value))
            y += row_height
        y += 20
    drawing.write(path)


def _scale(values, length):
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return low, high, lambda value: (math.log10(value) - low) / max(high - low, 1) * length


def lines(path, title, panels):
    """`panels`: heading, x title, y title, and {client: [(x, y), ...]}. The dashed lines grow as x does."""
    width, height, box = 860, 420, (310, 270)
    drawing = Drawing(width, height, title)
    for index, (heading, x_title, y_title, curves) in enumerate(panels):
        left, top = 80 + index * 420, 80
        x_low, x_high, to_x = _scale([x for points in curves.values() for x, _ in points], box[0])
        y_low, y_high, to_y = _scale([y for points in curves.values() for _, y in points], box[1])
        drawing.text(left, top - 14, heading, weight="bold")
        for decade in range(x_low, x_high + 1):
            x = left + to_x(10 ** decade)
            drawing.line(x, top, x, top + box[1])
            drawing.text(x, top + box[1] + 16, plain(10 ** decade), size=10, anchor="middle", colour="#777777")
        for decade in range(y_low, y_high + 1):
            y = top + box[1] - to_y(10 ** decade)
            drawing.line(left, y, left + box[0], y)
            drawing.text(left - 6, y + 4, plain(10 ** decade), size=10, anchor="end", colour="#777777")
        drawing.text(left + box[0] / 2, top + box[1] + 34, x_title, anchor="middle")
        drawing.text(left - 62, top - 14, y_title, size=10, colour="#777777")
        for client, points in curves.items():
            place = [(left + to_x(x), top + box[1] - to_y(y)) for x, y in points]
            colour = COLOURS.get(client, "#777777")
            drawing.points(place, colour)
            last_x, last_y = points[-1]
            ideal = [(x, last_y * x / last_x) for x, _ in points if last_y * x / last_x >= 10 ** y_low]
            drawing.points([(left + to_x(x), top + box[1] - to_y(y)) for x, y in ideal], colour, dashed=True)
            drawing.text(left + 10, top + 18 + 16 * list(curves).index(client), client, weight="bold", colour=colour)
    drawing.write(path)
