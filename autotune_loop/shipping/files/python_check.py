"""The Python that shipped modules check pipelines with: what pipeline_check.h does, as far as Halide's Python tells."""

PYTHON_CHECK = '''\
def normal_names(text):
    """Without the numbers by which Halide tells apart what has one name in one process."""
    numbers = {}

    def normal(found):
        if not re.match("[A-Za-z_]", found[0]):
            return found[0]
        first, *others = found[0].split("$")
        if re.fullmatch("[a-z][0-9]+", first):
            first = numbers.setdefault(first, f"{first[0]}#{len(numbers)}")
        elif re.fullmatch("lambda_[0-9]+", first):
            first = "lambda"
        return "$".join([first, *(part for part in others if part and not part.isdigit())])

    return re.sub("[A-Za-z_][A-Za-z0-9_$]*|[0-9][A-Za-z0-9_]*", normal, text)


def hash_of(text):
    """FNV-1a, never 0."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value or 1


def definition_of(func):
    """A hash of what a Func computes. What its reductions run over is not in it: Halide's Python does not tell that."""

    def text(expressions):
        # str gives "<halide.Expr of type uint8: ...>".
        return "".join(str(value).partition(": ")[2][:-1] + "\\n" for value in expressions)

    if func.is_extern() or not func.defined():
        return hash_of("extern\\n")
    lines = "".join(arg.name() + "\\n" for arg in func.args()) + "=\\n" + text(func.values())
    for update in range(func.num_update_definitions()):
        lines += "update\\n" + text(func.update_args(update)) + "=\\n" + text(func.update_values(update))
    return hash_of(normal_names(lines))


def all_funcs(pipeline):
    """The Funcs in the order of their indices."""
    funcs = []
    while True:
        try:
            funcs.append(pipeline.get_func(len(funcs)))
        except (hl.HalideError, RuntimeError, IndexError):
            return funcs


def check_pipeline(pipeline, strict):
    """Raise RuntimeError where the Funcs are not those that the schedule was made for; warn where only their
    definitions or Halide itself have changed. With `strict` a changed definition raises, too."""
    funcs = all_funcs(pipeline)
    names = [normal_names(func.name()).partition("#")[0] for func in funcs]
    for index in range(max(len(names), len(FUNCS))):
        now = repr(names[index]) if index < len(names) else "missing"
        was = repr(FUNCS[index][0]) if index < len(FUNCS) else "not there"
        if now != was:
            counts = "" if len(names) == len(FUNCS) else f"; there are {len(names)} Funcs, were {len(FUNCS)}"
            raise RuntimeError(
                f"The schedule {NAME} was made for another pipeline: Func {index} is now {now}, was {was}{counts}. "
                "Tune again, or give the Func its old name."
            )
    version = importlib.metadata.version("halide")
    if version != HALIDE_VERSION:
        warnings.warn(
            f"The schedule {NAME} was made with Halide {HALIDE_VERSION}, and this is Halide {version}: time it again.",
            stacklevel=3,
        )
    # Another version may print expressions in another way.
    if version.partition(".")[0] == HALIDE_VERSION.partition(".")[0]:
        check_definitions(funcs, names, strict)


def check_definitions(funcs, names, strict):
    """Raise RuntimeError where Funcs have changed places; warn, or raise if `strict`, where definitions have."""
    rows = [definition_of(func) if row[1] else 0 for func, row in zip(funcs, FUNCS)]
    changed = [index for index, row in enumerate(FUNCS) if rows[index] != row[1]]
    for index in changed:
        for other in changed:
            if index != other and rows[index] == FUNCS[other][1]:
                raise RuntimeError(
                    f"The schedule {NAME} was made for another pipeline: Func {index} {names[index]!r} is defined as "
                    f"Func {other} {FUNCS[other][0]!r} was: their order has changed. Tune again."
                )
    if changed:
        named = ", ".join(f"Func {index} {names[index]!r}" for index in changed)
        verb = "is" if len(changed) == 1 else "are"
        message = (
            f"The algorithm has changed since the schedule {NAME} was made: {named} {verb} defined differently. "
            "Tune again."
        )
        if strict:
            raise RuntimeError(message)
        warnings.warn(message, stacklevel=4)


'''
