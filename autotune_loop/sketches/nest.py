"""The loops of one stage, in the order and of the kinds that a sketch wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from halide_autotune.autotune_loop.draft.edit import reorder, split
from halide_autotune.autotune_loop.draft.model import LoopKind, StageDraft
from halide_autotune.autotune_loop.sketches.block import Block
from halide_autotune.autotune_loop.sketches.roles import Roles
from halide_autotune.autotune_loop.sketches.style import Channels

# Where only columns can be done at once, a task has so many vectors of them at most.
_VECTORS_OF_TASK = 16
# Of a signal, and of a picture of a few long rows, a task has so many points at most: more do not stay in the cache.
_POINTS_OF_TASK = 4096
# So many rows of an update that data send anywhere are done in turns.
_ROWS_IN_TURNS = 4
_PAIR = 2


@dataclass(frozen=True)
class Tasks:
    """How a Func at the root is cut into what cores do at once.

    Attributes:
        rows: of one task; 0 runs on one core.
        columns: of a tile within it; 0 is all of the row.
        block: what is unrolled.
        tasks: how many there should be at least, where rows cannot be cut.
        are_columns: each tile of columns is a task, with all its rows.
    """

    rows: int
    columns: int
    block: Block
    tasks: int
    pairs: bool = False
    are_columns: bool = False


class Nest:
    """Makes the loops of a stage: `places` collects them from the inside out."""

    def __init__(self, stage: StageDraft, roles: Roles, is_constant: Callable[[str], bool]) -> None:
        self.stage = stage
        self.roles = roles
        self._is_constant = is_constant

    def has(self, loop: str | None) -> bool:
        """Whether the stage has this loop, not split yet."""
        return loop is not None and loop in self.stage.order

    def cut(self, loop: str, factor: int, kind: LoopKind | None = None) -> tuple[str, str]:
        """Split a loop; returns the inner and the outer one. The inner one gets the kind."""
        self.stage, outer, inner = split(self.stage, loop, factor)
        if kind is not None:
            self.stage = self.stage.with_kind(inner, kind)
        return inner, outer

    def mark(self, loop: str, kind: LoopKind) -> None:
        """Make a loop of that kind."""
        self.stage = self.stage.with_kind(loop, kind)

    def channels(self) -> tuple[list[str], list[str]]:
        """Unroll the loops over channels; returns them, and what is left of those whose extent is not fixed."""
        inner, outer = [], []
        for loop in filter(self.has, self.roles.channels):
            if self._is_constant(loop):
                self.mark(loop, LoopKind.UNROLLED)
                inner.append(loop)
            else:
                unrolled, rest = self.cut(loop, self.roles.extents[loop], LoopKind.UNROLLED)
                inner.append(unrolled)
                outer.append(rest)
        return inner, outer

    def in_order(self, *places: Iterable[str]) -> StageDraft:
        """The stage with its loops in that order, those that are not named outside."""
        named = [*dict.fromkeys(loop for place in places for loop in place if loop in self.stage.order)]
        return reorder(self.stage, (*named, *(loop for loop in self.stage.order if loop not in named)))


def root_nest(nest: Nest, tasks: Tasks, *, channels: Channels, reductions: Sequence[str], is_scan: bool) -> StageDraft:
    """The loops of a stage at the root: vectors inside, then rows, tasks outside."""
    roles = nest.roles
    chunks = []
    if reductions and tasks.rows and not nest.has(roles.row) and nest.has(roles.vector):
        # Nothing but columns can be done at once: each task has a few vectors of them.
        is_scan = True
        chunks = _cut_chunks(nest, tasks, _VECTORS_OF_TASK)
        tasks = replace(tasks, columns=0, block=Block())
    elif tasks.rows and roles.row is None and nest.has(roles.vector):
        chunks = _cut_chunks(nest, tasks, _POINTS_OF_TASK // roles.lanes)
    vectors, columns, blocks, tiles = _cut_columns(nest, tasks)
    for tile in (tiles or columns) if tasks.are_columns else ():
        nest.mark(tile, LoopKind.PARALLEL)
    inner, left = nest.channels() if channels is Channels.INSIDE else ([], [])
    around = [*filter(nest.has, roles.channels)] if channels is Channels.AROUND_ROWS else []
    others = [*filter(nest.has, roles.others)]
    rows: list[str] = []
    outside = chunks
    if nest.has(roles.row):
        assert roles.row is not None
        rows, outside = _cut_rows(nest, roles.row, tasks)
    _cut_block(nest, tasks.block, others, rows, blocks)
    if is_scan:
        return nest.in_order(vectors, inner, columns, reductions, around, others, rows, tiles, outside, left)
    if blocks and tasks.are_columns and tiles:
        # The vectors of a task stay in the second cache, what goes with a block's rows in the first.
        return nest.in_order(vectors, inner, blocks, reductions, columns, around, others, rows, tiles, outside, left)
    if blocks:
        # What a block needs of one operand then serves all rows of the task.
        return nest.in_order(vectors, inner, blocks, reductions, around, others, rows, columns, tiles, outside, left)
    return nest.in_order(vectors, inner, reductions, columns, around, others, rows, tiles, outside, left)


def _cut_columns(nest: Nest, tasks: Tasks) -> tuple[list[str], list[str], list[str], list[str]]:
    """The vectors, the loop of vectors, unrolled loops of blocks, the loop of tiles.

    The outer cuts come first: the inner ones then divide evenly.
    """
    roles = nest.roles
    if not nest.has(roles.vector) or roles.lanes < 2:
        return [], [roles.vector] if roles.vector and nest.has(roles.vector) else [], [], []
    assert roles.vector is not None
    extent, column = roles.extents[roles.vector], roles.vector
    vectors = tasks.block.vectors if extent >= roles.lanes * tasks.block.vectors else 1
    width = roles.lanes * vectors
    columns: list[str] = []
    tiles: list[str] = []
    if tasks.columns >= 2 * width and extent >= 2 * tasks.columns:
        column, tile = nest.cut(column, tasks.columns - tasks.columns % width)
        tiles.append(tile)
    if vectors > 1:
        column, outer = nest.cut(column, width)
        columns.append(outer)
    inner, outer = nest.cut(column, roles.lanes, LoopKind.VECTORIZED)
    if vectors > 1:
        nest.mark(outer, LoopKind.UNROLLED)
        return [inner], columns, [outer], tiles
    return [inner], [outer], [], tiles


def _cut_chunks(nest: Nest, tasks: Tasks, most: int) -> list[str]:
    """The loop of tasks, each of so many vectors of columns at most; the vectors' loop is then within one."""
    loop = nest.roles.vector
    assert loop is not None
    vectors = nest.roles.extents[loop] // nest.roles.lanes
    within = max(1, min(most, vectors // tasks.tasks))
    if vectors < 2 * within:
        return []
    inner, outer = nest.cut(loop, within * nest.roles.lanes)
    nest.mark(outer, LoopKind.PARALLEL)
    nest.roles = replace(nest.roles, vector=inner, extents={**nest.roles.extents, inner: within * nest.roles.lanes})
    return [outer]


def _cut_rows(nest: Nest, row: str, tasks: Tasks) -> tuple[list[str], list[str]]:
    """The loops of rows within a task, and of tasks."""
    extent = nest.roles.extents[row]
    inside, outside = [row], []
    block = tasks.block.rows
    count = tasks.rows if block == 1 else max(block, tasks.rows - tasks.rows % block)
    if tasks.rows and extent >= 2 * count:
        inner, outer = nest.cut(row, count)
        nest.mark(outer, LoopKind.PARALLEL)
        inside, outside = [inner], [outer]
        extent = tasks.rows
    if tasks.pairs and count % 2 == 0 and extent >= 2 * _PAIR:
        inside = [*nest.cut(inside[0], _PAIR)]
    return inside, outside


def _cut_block(nest: Nest, block: Block, others: list[str], rows: list[str], blocks: list[str]) -> None:
    """Unroll a block's points and rows: `blocks` gets their loops, and `others` and `rows` what is left of theirs."""
    places = [(others, 0), (rows, 0) if rows else (others, 1)]
    for (loops, place), count in zip(places, (block.points, block.rows), strict=True):
        if count > 1 and place < len(loops):
            inner, loops[place] = nest.cut(loops[place], count, LoopKind.UNROLLED)
            blocks.append(inner)


def inner_nest(
    nest: Nest, *, reductions: Sequence[str], is_scan: bool, pairs: Sequence[str] = (), most_copies: int
) -> StageDraft:
    """The loops of a stage inside others: vectors, unrolled blocks of at most so many copies, then the rest."""
    roles = nest.roles
    vectors, columns, _, _ = _cut_columns(nest, Tasks(0, 0, Block(), 1))
    inner, left = nest.channels()
    copies = 1
    for loop in inner:
        copies *= roles.extents.get(loop, 3)
    blocks = []
    counts = {loop: -(-roles.extents[roles.vector or ""] // roles.lanes) for loop in columns if roles.lanes > 1}
    rest = [loop for loop in (*roles.others, roles.row) if loop is not None and nest.has(loop)]
    for loop in filter(pairs.__contains__, [*rest]):
        pair, outer = nest.cut(loop, _PAIR, LoopKind.UNROLLED)
        blocks.append(pair)
        rest[rest.index(loop)] = outer
        roles.extents[outer] = max(1, roles.extents[loop] // _PAIR)
    counts.update({loop: roles.extents[loop] for loop in rest})
    is_block = _product(counts.values()) <= most_copies
    for loop, count in counts.items():
        if is_block and count > 1 and copies * count <= most_copies:
            copies *= count
            nest.mark(loop, LoopKind.UNROLLED)
            blocks.append(loop)
    if is_scan:
        return nest.in_order(vectors, inner, blocks, columns, reductions, rest, left)
    return nest.in_order(vectors, inner, blocks, reductions, columns, rest, left)


def scatter_nest(nest: Nest, tasks: Tasks, *, reductions: Sequence[str]) -> StageDraft:
    """The loops of an update that data send anywhere: one point after the other, tasks by rows.

    A few rows are done in turns: two updates of the same place then wait for one another less often.
    """
    roles = nest.roles
    inner, left = nest.channels()
    rest = [loop for loop in (roles.vector, *roles.others) if loop is not None and nest.has(loop)]
    rows: list[str] = []
    outside: list[str] = []
    if nest.has(roles.row):
        assert roles.row is not None
        rows, outside = _cut_rows(nest, roles.row, Tasks(tasks.rows, 0, Block(), 1))
        if (tasks.rows or roles.extents[roles.row]) >= 2 * _ROWS_IN_TURNS:
            _cut_block(nest, Block(rows=_ROWS_IN_TURNS), [], rows, inner)
    return nest.in_order(inner, reductions, rest, rows, outside, left)


def _product(numbers: Iterable[int]) -> int:
    """The product."""
    product = 1
    for number in numbers:
        product *= number
    return product
