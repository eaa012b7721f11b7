"""Makes one sketch: from the outputs on, each Func is placed where its readers' loops let it be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halide_autotune.autotune_loop.draft.cases import cases_of
from halide_autotune.autotune_loop.draft.factor import can_be_factored, factored, factoring_for, plain_func
from halide_autotune.autotune_loop.draft.lookups import Lookup, lookup_at, tables_of, with_values_together
from halide_autotune.autotune_loop.draft.model import Draft, StageDraft
from halide_autotune.autotune_loop.draft.names import PipelineNames
from halide_autotune.autotune_loop.draft.partitioning import with_short_code
from halide_autotune.autotune_loop.draft.structure import DraftStructure, Site
from halide_autotune.autotune_loop.schedule.check import make_identifier
from halide_autotune.autotune_loop.schedule.directives import AlignBounds
from halide_autotune.autotune_loop.schedule.model import Clone
from halide_autotune.autotune_loop.schedule.values import ROOT, LoopLevel
from halide_autotune.autotune_loop.sketches.block import Block, adds_up, blocks_of
from halide_autotune.autotune_loop.sketches.inlined import (
    LARGE_BYTES,
    TRIVIAL,
    bytes_of,
    is_sum,
    is_trivial,
    is_worth_inlining,
    weights,
)
from halide_autotune.autotune_loop.sketches.nest import Nest, Tasks, inner_nest, root_nest, scatter_nest
from halide_autotune.autotune_loop.sketches.places import is_around_tasks, packed_at, place_of
from halide_autotune.autotune_loop.sketches.roles import WORTH_TASKS, Roles, roles_of, work_of
from halide_autotune.autotune_loop.sketches.style import Channels, Fusion, Style
from halide_autotune.targets.pipeline.shape import STEP, FuncShape, ReadShape

# A Func is computed so many times at most, once for each of its readers.
_MOST_COPIES = 3
# And only if a point is no more than so many operations.
_CHEAP_COPY = 40
# So many copies of a loop's body at most, where small blocks are unrolled.
_COPIES = 16
# So many rows a task has, unless it is said otherwise.
_ROWS = 32
# While the last tasks run some cores have none: each is to have had so many before, of so many rows at least.
_ROUNDS, _FEW_ROWS = 8, 8
# What stays in a cache whoever reads it.
_TABLE_BYTES = 2**15


class SketchBuilder:
    """Builds one draft in one style."""

    def __init__(self, names: PipelineNames, cores: int, style: Style) -> None:
        self._names = names
        self._cores = cores
        self._style = style
        self._weights = weights(names, style.budget, in_pairs=style.pairs)
        self._draft = Draft({name: plain_func(self._names, name, None) for name in names.shapes})

    def draft(self) -> Draft:
        """The sketch's draft, not yet repaired."""
        for name in self._consumers_first():
            shape = self._names.shapes[name]
            structure = DraftStructure(self._draft, self._names)
            if shape.is_output or shape.is_extern:
                if not self._take_apart(structure, name):
                    self._schedule(name, ROOT, None)
            elif structure.users.get(name):
                self._place(structure, name)
        if self._style.pairs:
            self._pair_rows()
        self._store_tables()
        self._tell_cases()
        return with_short_code(DraftStructure(self._draft, self._names))

    def _tell_cases(self) -> None:
        """Channels of an output that are computed each in its own way are compiled apart."""
        structure = DraftStructure(self._draft, self._names)
        for name, func in structure.draft.funcs.items():
            if cases := cases_of(structure, name):
                self._draft = self._draft.with_func(name, replace(func, cases=cases))

    def _store_tables(self) -> None:
        """Where vectors of a table are looked up, the table has them side by side."""
        for name in self._consumers_first():
            structure = DraftStructure(self._draft, self._names)
            lookup = None if structure.is_inlined(name) else self._lookup(structure, name)
            if lookup is not None:
                self._draft = with_values_together(structure, lookup) or self._draft

    def _lookup(self, structure: DraftStructure, name: str) -> Lookup | None:
        """How a Func reads tables of vectors, if these fill the target's, and it need not be stored as a whole."""
        if self._style.fusion is Fusion.ROOT or name not in self._names.shapes or is_sum(self._names.shapes[name]):
            return None
        lookup = lookup_at(structure, Site(name, 0))
        if lookup is None or lookup.extent < self._lanes(name) or not structure.may_have_vectors(name):
            return None
        return lookup if tables_of(structure, lookup, lambda each: not is_trivial(self._names, each)) else None

    def _says_where(self, structure: DraftStructure, name: str) -> bool:
        """Whether a Func says where in a table of vectors its reader looks: else that is worked out for one point."""
        readers = [each.func for each in structure.users[name] if not structure.draft.funcs[each.func].frozen]
        lookups = [self._lookup(structure, reader) for reader in readers]
        return self._weights[name] > TRIVIAL and any(each is not None and name in each.others for each in lookups)

    def _pair_rows(self) -> None:
        for name in self._consumers_first():
            func = self._draft.funcs[name]
            pairs = self._halved(name, name, {})
            if pairs and func.compute is not None and func.compute != ROOT:
                self._draft = self._draft.with_func(name, plain_func(self._names, name, None))
                self._schedule(name, func.compute, func.store, pairs)

    def _place(self, structure: DraftStructure, name: str) -> None:
        is_inlined = self._is_inlined(structure, name)
        if is_inlined and (self._lookup(structure, name) is not None or self._says_where(structure, name)):
            is_inlined = False
        users = [site for site in structure.users[name] if not structure.draft.funcs[site.func].frozen]
        scattered = [site.func for site in users if structure.is_scatter(site)]
        if is_inlined and self._weights[name] > TRIVIAL and scattered:
            # An update that data send anywhere is no vector: what it reads is better made beside it, as vectors.
            readers = [site.func for site, called in structure.reads.items() if name in called]
            for reader in dict.fromkeys(scattered):
                if len({*readers}) > 1 and reader in readers:
                    self._clone(name, reader)
                elif {*readers} == {reader}:
                    is_inlined = False
        if is_inlined:
            packs = self._style.block is not None and self._style.fusion is Fusion.COLUMNS
            packed = packed_at(structure, name) if packs and is_trivial(self._names, name) else None
            if packed is not None:
                self._schedule(name, packed, None)
            return
        if self._take_apart(structure, name):
            return
        compute, store = place_of(structure, name, self._style, self._lanes(name))
        if compute != ROOT or not self._style.clones or not self._cloned(structure, name):
            self._schedule(name, compute, store)

    def _take_apart(self, structure: DraftStructure, name: str) -> bool:
        """Take a long reduction apart; False leaves all as it was."""
        is_long = work_of(self._names.shapes[name]) >= WORTH_TASKS
        if self._style.parts is None or not is_long or not can_be_factored(structure, name):
            return False
        lanes = self._lanes(name)
        how = factoring_for(structure, name, lanes, self._style.parts * self._cores)
        self._draft = factored(structure, name, how, lanes)
        return True

    def _cloned(self, structure: DraftStructure, name: str) -> bool:
        """Give readers copies of their own, inlined or computed beside them; False leaves all as it was."""
        shape = self._names.shapes[name]
        readers = [*dict.fromkeys(site.func for site, called in structure.reads.items() if name in called)]
        if is_sum(shape) or bytes_of(shape) < LARGE_BYTES or not 2 <= len(readers) <= _MOST_COPIES:
            return False
        if any(self._draft.funcs[reader].origin is not None for reader in readers):
            return False  # copies of copies
        if not all(self._is_cheap_to_read(read) for read in structure.reads[Site(name, 0)].values()):
            return False
        before = self._draft
        if self._copied(name, readers) and self._placed_inside(name):
            return True
        self._draft = before
        return False

    def _copied(self, name: str, readers: Sequence[str]) -> bool:
        """Give all readers but one copies of a Func; False where one would be computed at the root or costs much."""
        others = []
        for reader in readers:
            before = self._draft
            clone = self._inlined_clone(name, reader)
            if not self._is_inlined(DraftStructure(self._draft, self._names), clone, of=name):
                self._draft = before
                others.append(reader)
        if len(others) > 1 and self._weights[name] > _CHEAP_COPY:
            return False
        clones = [self._clone(name, reader) for reader in others[:-1]]
        return all(self._draft.funcs[clone].compute != ROOT for clone in clones)

    def _placed_inside(self, name: str) -> bool:
        """Inline a Func or compute it in its readers' loops; False where it would be at the root."""
        structure = DraftStructure(self._draft, self._names)
        if structure.users.get(name) and not self._is_inlined(structure, name):
            compute, store = place_of(structure, name, self._style, self._lanes(name))
            if compute == ROOT:
                return False
            self._schedule(name, compute, store)
        return True

    def _is_cheap_to_read(self, read: ReadShape) -> bool:
        """Whether a copy of what reads this needs no copy of it, too."""
        name = self._names.funcs[read.name]
        shape = self._names.shapes[name]
        is_near = is_trivial(self._names, name) or read.is_of_one_point
        return is_near or bytes_of(shape) <= _TABLE_BYTES

    def _clone(self, name: str, reader: str) -> str:
        """Give a reader a copy that is computed beside it."""
        clone = self._inlined_clone(name, reader)
        structure = DraftStructure(self._draft, self._names)
        self._schedule(clone, *place_of(structure, clone, self._style, self._lanes(name)))
        return clone

    def _inlined_clone(self, name: str, reader: str) -> str:
        clone = make_identifier(f"{name}_for_{reader}", {*self._draft.funcs})
        plain = plain_func(self._names, name, None)
        self._draft = self._draft.with_func(clone, replace(plain, origin=Clone(name, (reader,))))
        return clone

    def _consumers_first(self) -> list[str]:
        return [*reversed([*self._names.shapes])]

    def _is_inlined(self, structure: DraftStructure, name: str, of: str = "") -> bool:
        """Whether a Func, or a copy `of` another one, is better inlined."""
        share = self._style.channels is Channels.INSIDE and not self._style.per_vector
        weight, pairs = self._weights[of or name], self._style.pairs
        return is_worth_inlining(structure, name, weight, self._style.budget, channels_share=share, in_pairs=pairs)

    def _lanes(self, name: str) -> int:
        """How many values fill a vector: of the widest type that is computed with, or of the Func's own."""
        if not self._style.is_wide:
            return self._lanes_of_widest(name)
        lanes = self._names.shape.vector_bytes // max(1, self._original(name).narrowest_bytes)
        return max(1, lanes, self._least_lanes(name))

    def _lanes_of_widest(self, name: str) -> int:
        original = self._original(name)
        widest = max(1, original.narrowest_bytes)
        seen = set()
        todo = [original]
        while todo:
            for read in (read for stage in todo.pop().stages for read in stage.reads):
                inner = self._names.funcs.get(read.name)
                if inner is None or inner in seen:
                    continue
                seen.add(inner)
                if not any(dimension.slopes for dimension in read.dimensions):
                    continue  # a table or a scalar: not read by vectors
                shape = self._names.shapes[inner]
                widest = max(widest, shape.narrowest_bytes)
                if self._draft.funcs[inner].compute is None and len(shape.stages) == 1:
                    todo.append(shape)
        return max(1, self._names.shape.vector_bytes // widest, self._least_lanes(name))

    def _least_lanes(self, name: str) -> int:
        return DraftStructure(self._draft, self._names).least_lanes(name)

    def _original(self, name: str) -> FuncShape:
        """The Func, or the one that it is a copy of."""
        origin = self._draft.funcs[name].origin
        return self._names.shapes[origin.of if isinstance(origin, Clone) else name]

    def _schedule(self, name: str, compute: LoopLevel, store: LoopLevel | None, pairs: tuple[str, ...] = ()) -> None:
        func = replace(self._draft.funcs[name], compute=compute, store=store)
        if pairs:
            # Halide then knows which of two points a vector starts with.
            func = replace(func, storage=(*func.storage, *(AlignBounds(loop, 2, 0) for loop in pairs)))
        self._draft = self._draft.with_func(name, func)
        structure = DraftStructure(self._draft, self._names)
        lookup = self._lookup(structure, name)
        along = None if lookup is None else lookup.loop
        roles = roles_of(structure, name, structure.region(name), self._lanes(name), along)
        if roles.vector in pairs:
            # What two of them read is to fill a vector, too.
            lanes = max(self._lanes(name), 2 * self._lanes_of_widest(name))
            roles = roles_of(structure, name, structure.region(name), lanes)
        is_root = compute == ROOT or is_around_tasks(structure, name, compute)
        stages = tuple(
            self._stage(structure, Site(name, index), roles, pairs, is_root=is_root)
            for index in range(len(func.stages))
        )
        self._draft = self._draft.with_func(name, replace(func, stages=stages))

    def _halved(self, name: str, host: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
        """The loops over a Func's arguments of which every second point reads the same points, or others' loops do.

        Args:
            host: the Func in whose loops all is computed.
            known: of Funcs that are read in several ways, which would take exponential time.
        """
        if name not in known:
            known[name] = self._found_halved(name, host, known)
        return known[name]

    def _found_halved(self, name: str, host: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
        if len(self._draft.funcs[name].stages) != 1 or self._draft.funcs[name].origin is not None:
            return ()
        shape = self._names.shapes[name]
        found: set[str] = set()
        for read in shape.stages[0].reads:
            inner = self._names.funcs.get(read.name)
            if inner is None:
                continue
            compute = self._draft.funcs[inner].compute
            is_inside = compute is None or compute.func == host
            deeper: tuple[str, ...] = self._halved(inner, host, known) if is_inside else ()
            loops = [variable.identifier for variable in self._names.loops(inner, 0)]
            found.update(read.halved_loops)
            for loop, dimension in zip(loops, read.dimensions, strict=False):
                if loop in deeper:
                    found.update(argument for argument, slope in (dimension.slopes or {}).items() if slope == STEP)
        own = zip(shape.args, self._names.loops(name, 0), strict=True)
        return tuple(variable.identifier for argument, variable in own if argument in found)

    def _stage(
        self, structure: DraftStructure, site: Site, roles: Roles, pairs: tuple[str, ...], *, is_root: bool
    ) -> StageDraft:
        shape = structure.shape(site.func)
        assert shape is not None
        stage = structure.draft.funcs[site.func].stages[site.stage]
        loops = structure.loops(site)
        reductions = [variable.identifier for variable in loops if variable.is_reduction]
        missing = {variable.identifier for variable in structure.loops(Site(site.func, 0))} - set(stage.order)
        is_missing_long = any(roles.extents.get(loop, 1) > 1 for loop in missing)
        nest = Nest(stage, roles, lambda loop: structure.is_constant(site, loop))
        tasks = self._tasks(shape, roles) if is_root else Tasks(0, 0, Block(), 1)
        if structure.is_scatter(site):
            return scatter_nest(nest, tasks, reductions=reductions)
        is_scan = bool(reductions) and is_missing_long
        if is_root:
            return root_nest(nest, tasks, channels=self._style.channels, reductions=reductions, is_scan=is_scan)
        copies = self._names.shape.vector_registers if len(shape.stages) > 1 else _COPIES
        return inner_nest(nest, reductions=reductions, is_scan=is_scan, pairs=pairs, most_copies=copies)

    def _tasks(self, shape: FuncShape, roles: Roles) -> Tasks:
        work = work_of(shape)
        rows = 0
        least = 2 * self._cores
        if roles.row is not None:
            extent = roles.extents[roles.row]
            rows = min(self._style.rows or self._usual_rows(shape, roles.row, roles), max(1, -(-extent // least)))
        elif work >= WORTH_TASKS:
            rows = 1
        if work < WORTH_TASKS:
            rows = 0
        block = self._block(shape, roles)
        if block is not None and self._style.fusion is Fusion.COLUMNS:
            return Tasks(0, self._style.columns or 0, block, least, are_columns=True)
        if rows and self._style.fusion is Fusion.COLUMNS and roles.vector is not None:
            columns = min(self._style.columns or 0, roles.extents[roles.vector] // least)
            if columns >= 2 * roles.lanes:
                return Tasks(0, columns, Block(), least, are_columns=True)
        return Tasks(rows, self._style.columns or 0, block or Block(), least, self._style.pairs)

    def _usual_rows(self, shape: FuncShape, row: str, roles: Roles) -> int:
        """32, or fewer where rows are few and no two tasks compute the same ones."""
        place = [*roles.extents].index(row)
        if self._style.block is not None or self._overlaps(shape, shape.args[place]):
            return _ROWS
        return min(_ROWS, max(_FEW_ROWS, roles.extents[row] // (_ROUNDS * self._cores) // 4 * 4))

    def _overlaps(self, shape: FuncShape, arg: str) -> bool:
        """Whether neighbours along an argument read the same points of a Func, by way of others, too."""
        todo, seen = [(shape, arg)], {(shape.name, arg)}
        while todo:
            reader, arg = todo.pop()
            for read in (read for stage in reader.stages for read in stage.reads):
                inner = self._names.shapes.get(self._names.funcs.get(read.name, ""))
                if inner is None or inner is reader:
                    continue
                for place, dimension in enumerate(read.dimensions):
                    if arg not in (dimension.slopes or {}):
                        continue
                    if dimension.width != 1:
                        return True
                    reached = inner.name, inner.args[place]
                    if reached not in seen:
                        seen.add(reached)
                        todo.append((inner, reached[1]))
        return False

    def _block(self, shape: FuncShape, roles: Roles) -> Block | None:
        """What of a sum is kept in registers at once, if the style has it so."""
        if self._style.block is None or roles.vector is None or not adds_up(self._names, shape):
            return None
        points, second, *_ = [*(roles.extents[loop] for loop in roles.others), 1, 1]
        rows = roles.extents[roles.row] if roles.row is not None else second
        vectors = max(1, roles.extents[roles.vector] // roles.lanes)
        blocks = blocks_of(vectors, points, rows, self._names.shape.vector_registers)
        return blocks[min(self._style.block, len(blocks) - 1)]
