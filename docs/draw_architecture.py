"""Draws docs/architecture.svg from the imports: `python -m docs.draw_architecture` (or `make diagram`).

A band for each package, a box for each room; an arrow is an import between two rooms of one package. An arrow that
follows from others is left out, so that the picture shows the order and not every import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

PICTURE = Path(__file__).with_name("architecture.svg")
# The packages from top to bottom; those of one line import each other no more than those below do.
_NAMESPACE = "halide_autotune"
_BANDS = (("sdk",), ("autotune_loop",), ("devices", "weights"), ("targets",))
_COLOURS = {
    "sdk": "#dbeafe",
    "autotune_loop": "#dcfce7",
    "devices": "#fef3c7",
    "weights": "#ede9fe",
    "targets": "#fee2e2",
}
_WIDTH, _BOX, _LINE, _MARGIN, _GAP = 1000, 24, 46, 14, 26
_CHARACTER = 7.1

Edges = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class _Box:
    name: str
    x: float
    y: float
    width: float


def picture() -> str:
    """The whole picture as SVG."""
    packages = [package for band in _BANDS for package in band]
    graph = grimp.build_graph(*(f"{_NAMESPACE}.{package}" for package in packages), cache_dir=None)
    shapes: list[str] = []
    y = float(_MARGIN)
    for band in _BANDS:
        widths = _widths({package: _rooms(graph, package) for package in band})
        x, lowest = float(_MARGIN), y
        for package in band:
            drawn, bottom = _band(package, _rooms(graph, package), x, y, widths[package])
            shapes += drawn
            x, lowest = x + widths[package] + _MARGIN, max(lowest, bottom)
        if band != _BANDS[-1]:
            middle = _WIDTH / 2
            shapes.append(_arrow(middle, lowest, middle, lowest + _GAP, "#475569"))
        y = lowest + _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y - _GAP + _MARGIN:.0f}"'
        ' font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12">'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#475569"/></marker></defs>'
    )
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([head, marker, background, *shapes, "</svg>"]) + "\n"


def _rooms(graph: grimp.ImportGraph, package: str) -> Edges:
    """Each room of a package (a folder, or a module beside the folders) with the rooms that it imports."""
    children = sorted(graph.find_children(f"{_NAMESPACE}.{package}"))
    edges: dict[str, frozenset[str]] = {}
    for child in children:
        imported = {
            other
            for other in children
            if other != child and graph.direct_import_exists(importer=child, imported=other, as_packages=True)
        }
        edges[child] = frozenset(imported)
    return {room: targets for room, targets in edges.items() if targets or any(room in t for t in edges.values())}


def _ranks(edges: Edges) -> dict[str, int]:
    """How many rooms lie below each, on the longest way down."""
    ranks: dict[str, int] = {}

    def rank(room: str) -> int:
        if room not in ranks:
            ranks[room] = 1 + max((rank(below) for below in edges[room]), default=-1)
        return ranks[room]

    for room in sorted(edges):
        rank(room)
    return ranks


def _reduced(edges: Edges) -> Edges:
    """Without the arrows that follow from others."""
    below = {room: _all_below(room, edges) for room in edges}
    return {
        room: frozenset(target for target in targets if not any(target in below[other] for other in targets))
        for room, targets in edges.items()
    }


def _all_below(room: str, edges: Edges) -> set[str]:
    found: set[str] = set()
    waiting = [room]
    while waiting:
        for target in edges[waiting.pop()]:
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _widths(band: Mapping[str, Edges]) -> dict[str, float]:
    """Of the packages of a line, by the longest row of boxes in each."""
    space = _WIDTH - _MARGIN * (len(band) + 1)
    longest = {package: max(sum(map(_box_width, row)) for row in _rows(edges)) for package, edges in band.items()}
    return {package: space * width / sum(longest.values()) for package, width in longest.items()}


def _rows(edges: Edges) -> list[list[str]]:
    ranks = _ranks(edges)
    return [sorted(room for room in edges if ranks[room] == rank) for rank in sorted(set(ranks.values()), reverse=True)]


def _box_width(room: str) -> float:
    return len(room.rpartition(".")[2]) * _CHARACTER + 18


def _band(package: str, edges: Edges, x: float, y: float, width: float) -> tuple[list[str], float]:
    rows = _rows(edges)
    boxes: dict[str, _Box] = {}
    top = y + 30
    reduced = _reduced(edges)
    for index, row in enumerate(rows):
        for box in _placed(_ordered(row, reduced, boxes), x, top + index * _LINE, width):
            boxes[box.name] = box
    bottom = top + (len(rows) - 1) * _LINE + _BOX + 12
    shapes = [
        _rectangle(x, y, width, bottom - y, f'rx="6" fill="{_COLOURS[package]}" stroke="#94a3b8"'),
        _text(x + 10, y + 18, package + "/", 'font-weight="bold"'),
    ]
    for room in sorted(boxes):
        for target in sorted(reduced[room]):
            here, there = boxes[room], boxes[target]
            shapes.append(_arrow(here.x + here.width / 2, here.y + _BOX, there.x + there.width / 2, there.y, "#64748b"))
    for box in boxes.values():
        shapes.append(_rectangle(box.x, box.y, box.width, _BOX, 'rx="4" fill="#ffffff" stroke="#475569"'))
        shapes.append(_text(box.x + box.width / 2, box.y + 16, box.name.rpartition(".")[2], 'text-anchor="middle"'))
    return shapes, bottom


def _ordered(row: Iterable[str], edges: Edges, boxes: Mapping[str, _Box]) -> list[str]:
    """Each room near the middle of those above that import it, so that arrows cross little."""

    def middle(room: str) -> tuple[float, str]:
        above = [boxes[other].x + boxes[other].width / 2 for other in boxes if room in edges[other]]
        return (sum(above) / len(above) if above else 0.0, room)

    return sorted(row, key=middle)


def _placed(row: list[str], x: float, y: float, width: float) -> list[_Box]:
    widths = [_box_width(room) for room in row]
    gap = (width - sum(widths)) / (len(row) + 1)
    boxes, left = [], x + gap
    for room, box_width in zip(row, widths, strict=True):
        boxes.append(_Box(room, left, y, box_width))
        left += box_width + gap
    return boxes


def _rectangle(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" {look}/>'


def _text(x: float, y: float, text: str, look: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {look}>{escape(text)}</text>'


def _arrow(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    bend = (to_y - y) / 2
    return (
        f'<path d="M{x:.0f},{y:.0f} C{x:.0f},{y + bend:.0f} {to_x:.0f},{to_y - bend:.0f} {to_x:.0f},{to_y:.0f}"'
        f' fill="none" stroke="{colour}" marker-end="url(#tip)"/>'
    )


if __name__ == "__main__":
    drawn = picture()
    if "--check" in sys.argv[1:]:
        if PICTURE.read_text() != drawn:
            sys.exit(f"{PICTURE.name} is not current. Draw it again: make diagram")
    else:
        PICTURE.write_text(drawn)
