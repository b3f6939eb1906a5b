//===- Arguments.cpp - ds-run's command line ------------------------------===//
#include "tools/ds-run/Arguments.h"
#include "runtime/session/NonFinite.h"
#include "runtime/session/Training.h"
#include "tools/ds-run/CheckpointArguments.h"
#include "tools/usage/Usage.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ds::run {
namespace {

class Parser {
public:
  Parser() : app_("Trains by a plan that ds-opt compiled.", "ds-run") {
    runtime::TrainingOptions &training = arguments_.training;
    app_.add_option("PLAN", training.planPath, "the plan, from ds-opt compile");
    app_.add_option("-n", ranks_, "ranks, all in this process; must be the plan's")->check(positive());
    app_.add_option("--data", training.data,
                    "safetensors or token files; several form one stream;\n"
                    "-: stdin names files while the run goes on, one a line, each with the samples of whole steps");
    app_.add_option("--steps", steps_, "optimizer steps; default: one epoch")
        ->check(CLI::Range(uint64_t(0), uint64_t(1) << 48));
    app_.add_option("--device", training.device,
                    "cpu or cuda as the plan says, or null to walk it without computing; default: the plan's")
        ->check(CLI::IsMember({"cpu", "cuda", "null"}));
    app_.add_option("--nvme-path", training.nvme.folder,
                    "folder for what the plan keeps on NVMe, in a file of each rank; default: the plan's");
    app_.add_flag("--nvme-checksums", training.nvme.checksums,
                  "compare each page of these files with its checksum when it is read");
    app_.add_option("--seed", training.seed,
                    "of dropout, shuffling and random first values; default: 0, or the resumed run's");
    app_.add_option("--threads", training.threads,
                    "compute threads of a rank; default: the plan's, which its machine file says (cpu: 8)")
        ->check(CLI::Range(1, 4096));
    app_.add_flag("--shuffle", training.shuffle, "a seeded permutation of the samples each epoch");
    training.checkData = uint64_t(256) << 20;
    app_.add_option("--check-data", training.checkData,
                    "bytes of --data and of --eval-data that are looked at for values that the model does not\n"
                    "take, before the first step; 0: none; default: 256MiB")
        ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
    app_.add_option("--weights", training.weights, "safetensors file or folder that overrides the plan's first values");
    addResults();
    addCheckpoints();
    app_.add_option("--collective-timeout", collectiveTimeout_,
                    "seconds that a rank waits for the others; default: 600")
        ->check(CLI::Range(0.001, 1e6));
    app_.add_flag("--check-memory", training.checkMemory, "NaN patterns in all memory that nobody owns");
    app_.add_flag("--check-numerics", training.checkNumerics, "stop at the first NaN or infinity, naming its op");
    app_.add_option("--on-nonfinite", onNonFinite_,
                    "when a loss or gradient norm is NaN or infinite: stop with code 3, skip (undo the step) or "
                    "continue; default: stop")
        ->check(CLI::IsMember({"stop", "skip", "continue"}));
    app_.add_option("--replica-digest-interval", training.replicaDigestInterval,
                    "steps between comparisons of what several ranks hold alike; 0: none; default: 100, on cuda 1000");
    app_.add_option("--certify", arguments_.certificate,
                    "the plan's certificate, from ds-opt verify: refuses another plan, appends what the run measures");
    app_.add_option("--bisect", arguments_.bisect, "two plans: the first tensor on which they differ (docs/bisect.md)")
        ->expected(2)
        ->type_name("A.dsplan B.dsplan");
    app_.add_flag(
        "--tune", tunes_,
        "on a GPU: times the algorithms that cuBLASLt has for each product, and writes into PLAN the fastest\n"
        "that give the same bits as its own choice; trains nothing (docs/cuda.md)");
    app_.add_flag("--quiet", arguments_.quiet, "no progress");
    app_.add_flag("--verbose", arguments_.verbose, "every step, and what was loaded");
    addPostmortem();
    app_.add_subcommand("info", "devices, libraries, versions");
    addCheckpointCommands(app_, arguments_);
    app_.set_version_flag("--version", "ds-run " DS_VERSION);
    refuseOddValues(app_);
  }

  Arguments parse(int argc, char **argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp &) {
      arguments_.command = Arguments::Command::Help;
      arguments_.text = app_.help(); // of the subcommand, if one is asked about
      return arguments_;
    } catch (const CLI::CallForVersion &version) {
      arguments_.command = Arguments::Command::Help;
      arguments_.text = version.what() + std::string("\n");
      return arguments_;
    } catch (const CLI::ParseError &error) {
      throw UsageError(usageSentence(app_, error) + "; ds-run --help lists the flags");
    }
    if (app_.got_subcommand("info")) {
      arguments_.command = Arguments::Command::Info;
      return arguments_;
    }
    if (app_.got_subcommand("postmortem")) {
      arguments_.command = Arguments::Command::Postmortem;
      return arguments_;
    }
    if (tookCheckpointCommand(app_, arguments_))
      return arguments_;
    checkTogether();
    return arguments_;
  }

private:
  void addResults() {
    runtime::TrainingOptions &training = arguments_.training;
    app_.add_option("--metrics", training.metrics, "one JSON object a step, and a summary");
    app_.add_option("--peak-tflops", training.peakTflops,
                    "what one rank can do, in 10^12 FLOP/s of the type it computes in: --metrics then has\n"
                    "model_flops_utilization, the share that the model's own products are of it")
        ->check(positive());
    app_.add_option("--trace", training.trace, "when each command ran, for chrome://tracing or ui.perfetto.dev");
    app_.add_option("--flight-recorder", training.flightFolder,
                    "folder for what each rank did last, written on failure and SIGUSR2; default: PLAN.flight");
    app_.add_option("--eval-data", training.evaluationData, "data for the forward-only program");
    app_.add_option("--eval-interval", training.evaluationInterval,
                    "steps between evaluations; default: only at the end")
        ->check(positive());
    app_.add_flag("--eval", training.evaluateOnly, "evaluate and do not train");
    app_.add_option("--export", training.exportPath, "safetensors file for the final weights");
  }

  void addCheckpoints() {
    runtime::TrainingOptions &training = arguments_.training;
    app_.add_option("--save", training.saving.folder, "folder for checkpoints: one at the end, or when asked to stop");
    app_.add_option("--save-interval", training.saving.interval, "steps between checkpoints; default: only at the end")
        ->check(positive());
    app_.add_option("--keep", training.saving.keep, "newest checkpoints that stay; default: all")->check(positive());
    app_.add_option("--resume", training.resume, "folder of checkpoints: goes on from the newest");
    app_.add_option("--tag", training.resumeTag, "another checkpoint than the newest: global_step300");
    app_.add_flag("--resume-if-present", training.resumeIfPresent,
                  "a folder without checkpoints starts a first run; --resume's default is then that of --save");
    app_.add_option("--set", training.set,
                    "key.path=value: changes a learning rate, its schedule or clipping; repeatable")
        ->allow_extra_args(false);
    app_.add_option("--max-time", maxTime_, "ends after the step under way: seconds, or 90m, 12h; with --save it saves")
        ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"m", 60}, {"h", 3600}},
                                          CLI::AsNumberWithUnit::CASE_SENSITIVE))
        ->check(positive());
  }

  void addPostmortem() {
    CLI::App &app = *app_.add_subcommand("postmortem", "who held up a run that hung");
    PostmortemArguments &asked = arguments_.postmortem;
    app.description(
        "Reads what the ranks of a run wrote when it failed, timed out or got SIGUSR2, and says who held it up.\n\n"
        "  kill -USR2 PID ...                             # each ds-run writes PLAN.flight/flight-RANK.json and goes "
        "on\n"
        "  ds-run postmortem PLAN.flight PLAN             # who is behind, in which op, and what to look at\n"
        "  ds-run postmortem PLAN.flight PLAN --trace t   # the last commands as a timeline, for ui.perfetto.dev\n\n"
        "Copy the files of all hosts into one folder first, unless all hosts see it. A rank without a file is worth\n"
        "knowing: it was stopped, killed, or its host is gone. docs/postmortem.md has an example.");
    app.add_option("DIR", asked.folder, "the folder with flight-0.json, flight-1.json, ...")->required();
    app.add_option("PLAN", asked.planPath, "the plan that was run")->required();
    app.add_option("--trace", asked.trace, "the last commands of all ranks, for chrome://tracing or ui.perfetto.dev");
  }

  /// What --bisect would not do. It runs steps and compares them, nothing else.
  void checkBisect() {
    const runtime::TrainingOptions &training = arguments_.training;
    arguments_.command = Arguments::Command::Bisect;
    if (!training.planPath.empty())
      throw UsageError("--bisect takes two plans, and " + training.planPath + " is a third");
    if (training.data.empty())
      throw UsageError("--bisect needs --data: ds-run --bisect A.dsplan B.dsplan --data DATA");
    if (training.device == "null")
      throw UsageError("--device null computes nothing, so --bisect would compare nothing");
    if (app_.count("--steps") > 0 && steps_ == 0)
      throw UsageError("--bisect compares steps, so --steps 0 makes no sense with it");
    for (const char *flag : {"-n",
                             "--metrics",
                             "--trace",
                             "--flight-recorder",
                             "--eval",
                             "--eval-data",
                             "--eval-interval",
                             "--export",
                             "--check-memory",
                             "--check-numerics",
                             "--on-nonfinite",
                             "--replica-digest-interval",
                             "--save",
                             "--save-interval",
                             "--keep",
                             "--resume",
                             "--tag",
                             "--resume-if-present",
                             "--max-time",
                             "--set"})
      if (app_.count(flag) > 0)
        throw UsageError(std::string(flag) + " makes no sense with --bisect, which compares the steps of two plans");
  }

  /// What --tune would not do.
  void checkTune() {
    arguments_.command = Arguments::Command::Tune;
    for (const CLI::Option *option : app_.get_options())
      if (option->count() > 0 && option->get_name() != "PLAN" && option->get_name() != "--tune")
        throw UsageError(option->get_name() + " makes no sense with --tune, which takes a plan and trains nothing");
  }

  void checkTogether() {
    runtime::TrainingOptions &training = arguments_.training;
    if (!arguments_.bisect.empty())
      checkBisect();
    else if (training.planPath.empty())
      throw UsageError("no plan was given: ds-run PLAN.dsplan --data DATA ...");
    if (tunes_)
      checkTune();
    if (app_.count("-n") > 0)
      training.ranks = ranks_;
    training.onNonFinite = onNonFinite_ == "skip"       ? runtime::OnNonFinite::Skip
                           : onNonFinite_ == "continue" ? runtime::OnNonFinite::Continue
                                                        : runtime::OnNonFinite::Stop;
    training.collectiveTimeout = std::chrono::milliseconds(int64_t(collectiveTimeout_ * 1000));
    if (app_.count("--steps") > 0)
      training.steps = steps_;
    if (training.evaluationInterval > 0 && training.evaluationData.empty())
      throw UsageError("--eval-interval needs --eval-data");
    if (training.evaluateOnly && (!training.exportPath.empty() || app_.count("--steps") > 0))
      throw UsageError("--eval does not train, so --steps and --export make no sense with it");
    checkCheckpoints();
    checkArrivingData();
    if (arguments_.quiet && arguments_.verbose)
      throw UsageError("--quiet and --verbose exclude each other");
  }

  /// --data -, whose samples come once, in an order that nobody knows before.
  void checkArrivingData() const {
    const std::vector<std::string> &data = arguments_.training.data;
    if (std::ranges::find(data, "-") == data.end())
      return;
    if (data.size() > 1)
      throw UsageError("--data - reads names of files from stdin, so no other file can stand beside it");
    for (const char *flag : {"--shuffle", "--eval", "--bisect"})
      if (app_.count(flag) > 0)
        throw UsageError(std::string(flag) + " needs all samples from the start, so --data - makes no sense with it");
  }

  void checkCheckpoints() {
    runtime::TrainingOptions &training = arguments_.training;
    if (training.resumeIfPresent && training.resume.empty())
      training.resume = training.saving.folder;
    if (training.resume.empty() && (training.resumeIfPresent || !training.resumeTag.empty()))
      throw UsageError("--tag and --resume-if-present need --resume DIR");
    if (training.saving.folder.empty() && (training.saving.interval > 0 || training.saving.keep > 0))
      throw UsageError("--save-interval and --keep need --save DIR");
    if (!training.resume.empty() && !training.resumeIfPresent && !training.weights.empty())
      throw UsageError("--resume has the weights, so --weights makes no sense with it; --resume-if-present takes them "
                       "for a first run");
    if (training.evaluateOnly && !training.saving.folder.empty())
      throw UsageError("--eval does not train, so --save makes no sense with it");
    if (app_.count("--max-time") > 0)
      training.maxTime = std::chrono::duration<double>(maxTime_);
  }

  CLI::App app_;
  Arguments arguments_;
  uint64_t ranks_ = 0, steps_ = 0;
  double collectiveTimeout_ = 600; // s
  double maxTime_ = 0;             // s
  std::string onNonFinite_ = "stop";
  bool tunes_ = false;
};

} // namespace

Arguments parseArguments(int argc, char **argv) { return Parser().parse(argc, argv); }

} // namespace ds::run
