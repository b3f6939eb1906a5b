//===- Arguments.cpp - ds-run's command line ------------------------------===//
#include "tools/ds-run/Arguments.h"
#include "runtime/session/Training.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace ds::run {
namespace {

/// Flags that later versions will have. They are parsed so that the answer is about them and not about their values.
constexpr const char *laterFlags[] = {"--save", "--save-interval", "--keep", "--resume",
                                      "--tag",  "--max-time",      "--set"};

class Parser {
public:
  Parser() : line_("Trains by a plan that ds-opt compiled.", "ds-run") {
    runtime::TrainingOptions &training = arguments_.training;
    line_.addOption("PLAN", training.planPath, "the plan, from ds-opt compile");
    line_.addOption("-n", ranks_, "ranks, all in this process; must be the plan's").positive();
    line_.addOption("--data", training.data, "safetensors or token files; several form one stream");
    line_.addOption("--steps", steps_, "optimizer steps; default: one epoch");
    line_
        .addOption("--device", training.device,
                   "cpu or cuda as the plan says, or null to walk it without computing; default: the plan's")
        .oneOf({"cpu", "cuda", "null"});
    line_.addOption("--seed", training.seed, "of dropout, shuffling and random first values; default: 0");
    line_.addOption("--threads", training.threads, "compute threads of a rank; default: the plan's").between(1, 4096);
    line_.addFlag("--shuffle", training.shuffle, "a seeded permutation of the samples each epoch");
    line_.addOption("--weights", training.weights, "safetensors file or folder that overrides the plan's first values");
    addResults();
    line_
        .addOption("--collective-timeout", collectiveTimeout_, "seconds that a rank waits for the others; default: 600")
        .between(0.001, 1e6);
    line_.addFlag("--check-memory", training.checkMemory, "NaN patterns in all memory that nobody owns");
    line_.addFlag("--check-numerics", training.checkNumerics, "stop at the first NaN or infinity, naming its op");
    line_.addFlag("--quiet", arguments_.quiet, "no progress");
    line_.addFlag("--verbose", arguments_.verbose, "every step, and what was loaded");
    line_.addFlag("--resume-if-present", resumeIfPresent_).hidden();
    for (const char *flag : laterFlags)
      line_.addOption(flag, later_).hidden();
    line_.addCommand("info", "devices, libraries, versions");
    line_.addHiddenCommand("export");
  }

  Arguments parse(int argc, char **argv) {
    try {
      if (std::optional<std::string> text = line_.parse(argc, argv)) {
        arguments_.command = Arguments::Command::Help;
        arguments_.text = *text;
        return arguments_;
      }
    } catch (const UsageError &error) {
      throw UsageError(std::string(error.what()) + "; ds-run --help lists the flags");
    }
    refuseLaterFlags();
    if (line_.hasCommand("info")) {
      arguments_.command = Arguments::Command::Info;
      return arguments_;
    }
    checkTogether();
    return arguments_;
  }

private:
  void addResults() {
    runtime::TrainingOptions &training = arguments_.training;
    line_.addOption("--metrics", training.metrics, "one JSON object a step, and a summary");
    line_.addOption("--trace", training.trace, "when each command ran, for chrome://tracing or ui.perfetto.dev");
    line_.addOption("--eval-data", training.evaluationData, "data for the forward-only program");
    line_
        .addOption("--eval-interval", training.evaluationInterval,
                   "steps between evaluations; default: only at the end")
        .positive();
    line_.addFlag("--eval", training.evaluateOnly, "evaluate and do not train");
    line_.addOption("--export", training.exportPath, "safetensors file for the final weights");
  }

  void refuseLaterFlags() const {
    for (const char *flag : laterFlags)
      if (line_.hasOption(flag))
        throw UsageError(std::string(flag) + " is not available yet in this version of ds-run");
    if (line_.hasOption("--resume-if-present"))
      throw UsageError("--resume-if-present is not available yet in this version of ds-run");
    if (line_.hasCommand("export"))
      throw UsageError(
          "ds-run export is not available yet, as there are no checkpoints; --export writes the weights at "
          "the end of a run");
  }

  void checkTogether() {
    runtime::TrainingOptions &training = arguments_.training;
    if (training.planPath.empty())
      throw UsageError("no plan was given: ds-run PLAN.dsplan --data DATA ...");
    if (line_.hasOption("-n"))
      training.ranks = ranks_;
    training.collectiveTimeout = std::chrono::milliseconds(int64_t(collectiveTimeout_ * 1000));
    if (line_.hasOption("--steps"))
      training.steps = steps_;
    if (training.evaluationInterval > 0 && training.evaluationData.empty())
      throw UsageError("--eval-interval needs --eval-data");
    if (training.evaluateOnly && (!training.exportPath.empty() || line_.hasOption("--steps")))
      throw UsageError("--eval does not train, so --steps and --export make no sense with it");
    if (arguments_.quiet && arguments_.verbose)
      throw UsageError("--quiet and --verbose exclude each other");
  }

  tool::CommandLine line_;
  Arguments arguments_;
  uint64_t ranks_ = 0, steps_ = 0;
  double collectiveTimeout_ = 600; // s
  bool resumeIfPresent_ = false;
  std::vector<std::string> later_;
};

} // namespace

Arguments parseArguments(int argc, char **argv) { return Parser().parse(argc, argv); }

} // namespace ds::run
