"""How a printed header finds a Func whose index nobody knows."""

# Pipeline::get_func ends the generator with its own message where there is no such Func.
FUNC_NAMED_CPP = """\
const auto func_named = [&](const std::string &name) {
    for (size_t index = 0;; index++) {
        Func func = pipeline.get_func(index);
        if (func.name() == name) return func;
    }
};
"""
