// Two autoschedulers that write the loop nests that schedules are lowered to. `loop_nest.py` reads what they write.
//
// SdkLower lowers schedules without generating code for them, and ends the process. The generator runs once, however
// many schedules there are: each is applied and lowered in a child process, because a schedule cannot be taken off a
// pipeline that `rfactor` or `in()` has changed, and because some crash Halide or take very long.
//
// Its parameters: `schedules` (a folder with 0.json, 1.json, …, see replay_plugin.cpp; of each comes 0.nest, or
// 0.refused with the reason), `schedule_count`, `limit_s` (of processor time, for each), and `applied_by` (the
// autoscheduler that applies one).
//
// SdkDescribed runs another autoscheduler, and writes the loop nest on the way to its code. Where that fails there is
// none. Its parameters, besides those of the other one: `described_for` (its name) and `nest_path`.

#include "Halide.h" // first: it is parsed once for all plug-ins

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop_nest.h"

namespace {

using namespace halide_sdk;

[[noreturn]] void fail(const std::string &message) {
    std::fprintf(stderr, "SdkLower: %s\n", message.c_str());
    _exit(1);
}

std::string take(Halide::AutoschedulerParams &parameters, const std::string &key) {
    const auto found = parameters.extra.find(key);
    if (found == parameters.extra.end()) fail("the parameter " + key + " is missing");
    const std::string value = found->second;
    parameters.extra.erase(found);
    return value;
}

// Written beside and then renamed, so that what is there is whole; false if it cannot be.
bool is_written(const std::string &path, const std::string &text) {
    const std::string part = path + ".part";
    FILE *file = std::fopen(part.c_str(), "wb");
    if (file == nullptr) return false;
    const bool is_whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && is_whole && std::rename(part.c_str(), path.c_str()) == 0;
}

void write(const std::string &path, const std::string &text) {
    if (!is_written(path, text)) fail("cannot write " + path);
}

// Halide's lowering calls it last but for what makes tasks of parallel loops: all loops are still in one statement.
class SeeNest : public Halide::Internal::IRMutator {
public:
    SeeNest(const Halide::Pipeline &pipeline, const Halide::Target &target, std::string path)
        : arguments_(pipeline), target_(target), path_(std::move(path)) {}

    Halide::Expr mutate(const Halide::Expr &expr) override { return expr; }

protected:
    std::string described(const Halide::Internal::Stmt &statement) const {
        LoopNest nest(target_, arguments_);
        statement.accept(&nest);
        const int bytes = target_.natural_vector_size<uint8_t>();
        return object({{"version", "4"}, {"vector_bytes", std::to_string(bytes)}, {"root", json_of(nest.root())}});
    }

    const std::string &path() const { return path_; }

private:
    const EstimatedArguments arguments_;
    const Halide::Target target_;
    const std::string path_;
};

struct WriteNest : SeeNest {
    using SeeNest::SeeNest;
    using SeeNest::mutate;

    Halide::Internal::Stmt mutate(const Halide::Internal::Stmt &statement) override {
        write(path(), described(statement));
        _exit(0);
    }
};

// What fails here must not take the code with it.
struct WriteNestInPassing : SeeNest {
    using SeeNest::SeeNest;
    using SeeNest::mutate;

    Halide::Internal::Stmt mutate(const Halide::Internal::Stmt &statement) override {
        try {
            is_written(path(), described(statement));
        } catch (const std::exception &) {
        }
        return statement;
    }
};

// Of the processor, so that other load ends nothing. What hangs without computing is ended with the whole process.
void limit_time(unsigned limit_s) {
    const rlimit time{limit_s, limit_s + 1}, no_core{0, 0};
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &no_core);
}

[[noreturn]] void refuse(const std::string &stem, const std::string &reason) {
    write(stem + ".refused", reason);
    _exit(0);
}

[[noreturn]] void lower(Halide::Pipeline pipeline, const Halide::Target &target,
                        const Halide::AutoschedulerParams &applying, const std::string &stem) {
    try {
        pipeline.apply_autoscheduler(target, applying);
        WriteNest pass(pipeline, target, stem + ".nest");
        pipeline.add_custom_lowering_pass(&pass, nullptr);
        pipeline.compile_to_module(pipeline.infer_arguments(), "lowered", target);
    } catch (const Halide::Error &error) {
        refuse(stem, error.what());
    } catch (const std::exception &error) {
        refuse(stem, error.what());
    }
    fail("lowering did not come to its end");
}

struct Lower {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &target,
                    const Halide::AutoschedulerParams &given, Halide::AutoSchedulerResults *) {
        Halide::AutoschedulerParams own = given;
        const std::string folder = take(own, "schedules"), applied_by = take(own, "applied_by");
        const unsigned limit_s = std::atoi(take(own, "limit_s").c_str());
        const int count = std::atoi(take(own, "schedule_count").c_str());
        for (int i = 0; i < count; i++) {
            const std::string stem = folder + "/" + std::to_string(i);
            Halide::AutoschedulerParams applying;
            applying.name = applied_by;
            applying.extra["schedule_path"] = stem + ".json";
            const pid_t child = fork();
            if (child < 0) fail(std::string("cannot fork: ") + std::strerror(errno));
            if (child == 0) {
                limit_time(limit_s);
                lower(pipeline, target, applying, stem);
            }
            int status = 0;
            if (waitpid(child, &status, 0) != child) fail("a child was lost");
            if (WIFSIGNALED(status)) {
                const int signal = WTERMSIG(status);
                const std::string limit = "Lowering takes longer than " + std::to_string(limit_s) + " s.";
                const std::string crash = std::string("Lowering crashed: ") + strsignal(signal) + ".";
                write(stem + ".refused", signal == SIGXCPU ? limit : crash);
            } else if (WEXITSTATUS(status) != 0) {
                fail("a child ended with " + std::to_string(WEXITSTATUS(status)));
            }
        }
        _exit(0);
    }
};

struct Describe {
    void operator()(const Halide::Pipeline &pipeline, const Halide::Target &target,
                    const Halide::AutoschedulerParams &given, Halide::AutoSchedulerResults *results) {
        Halide::AutoschedulerParams parameters = given;
        const std::string path = take(parameters, "nest_path");
        parameters.name = take(parameters, "described_for");
        *results = pipeline.apply_autoscheduler(target, parameters);
        Halide::Pipeline same = pipeline;
        same.add_custom_lowering_pass(new WriteNestInPassing(pipeline, target, path));
    }
};

struct Register {
    Register() {
        Halide::Pipeline::add_autoscheduler("SdkLower", Lower());
        Halide::Pipeline::add_autoscheduler("SdkDescribed", Describe());
    }
} at_load;

}  // namespace
