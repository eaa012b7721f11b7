#ifndef HALIDE_SDK_HALIDES_COMPILER
#define HALIDE_SDK_HALIDES_COMPILER

#include <dlfcn.h>
#include <string>
#include <vector>

#include "Halide.h"

namespace halide_sdk_1 {

// Whether a generator runs this pipeline itself, to find out numbers for the one that it makes.
inline bool is_run_by_generator(const Halide::Target &target) {
    return target.has_feature(Halide::Target::JIT);
}

// What libHalide has under the name Halide::Pipeline::compile_to_module, for a library that is loaded before it and
// takes its place.
inline Halide::Module compile_by_halide(Halide::Pipeline &pipeline, const std::vector<Halide::Argument> &arguments,
                                        const std::string &name, const Halide::Target &target,
                                        Halide::LinkageType linkage) {
    using Compile = Halide::Module (*)(Halide::Pipeline *, const std::vector<Halide::Argument> &, const std::string &,
                                       const Halide::Target &, Halide::LinkageType);
    static const auto compile = reinterpret_cast<Compile>(
        dlsym(RTLD_NEXT, "_ZN6Halide8Pipeline17compile_to_moduleERKSt6vectorINS_8ArgumentESaIS2_EERKNSt7__cxx1112basic_"
                         "stringIcSt11char_traitsIcESaIcEEERKNS_6TargetENS_11LinkageTypeE"));
    return compile(&pipeline, arguments, name, target, linkage);
}

}  // namespace halide_sdk_1

#endif  // HALIDE_SDK_HALIDES_COMPILER
