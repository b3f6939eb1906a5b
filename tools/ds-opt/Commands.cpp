//===- Commands.cpp - the commands of ds-opt: arguments and printing ----------===//
#include "tools/ds-opt/Commands.h"

#include "compiler/certify/Explain.h"
#include "compiler/certify/Refusal.h"
#include "compiler/certify/Verdict.h"
#include "compiler/config/KeyRules.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Fault.h"
#include "compiler/driver/Runnable.h"
#include "compiler/driver/TryRanks.h"
#include "compiler/report/Compare.h"
#include "compiler/report/Fit.h"
#include "compiler/report/Report.h"
#include "compiler/report/Zoo.h"
#include "compiler/sources/Sources.h"
#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/Overwriting.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "tools/ds-opt/Arguments.h"
#include "tools/ds-opt/ProvenCompile.h"
#include "tools/usage/Usage.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string_view>
#include <thread>
#include <unistd.h>

using namespace ds;
using namespace ds::tool;

namespace {

constexpr std::string_view commands[] = {"import", "compile", "verify", "explain", "check", "report", "diff", "zoo"};
/// What stands before a command, or alone; every other flag is mlir-opt's.
constexpr std::string_view flags[] = {"-h", "--help", "--version", "--commands", "--quiet", "--verbose"};

bool isOneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// Shows on a terminal what is going on once that takes over two seconds; elsewhere a line for each twenty seconds that
/// a phase lasts, so that nobody takes it for a hang. With --verbose, every phase and its time.
class Progress {
public:
  explicit Progress(const bool &quiet, const bool &verbose) : quiet_(quiet), verbose_(verbose) {}
  ~Progress() { finish(); }

  void operator()(const char *phase) {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
    phaseBegin_ = std::chrono::steady_clock::now();
    if (verbose_)
      std::fprintf(stderr, "[%6.2f s] %s\n", secondsSince(begin_), phase);
    else
      show();
    if (!quiet_ && !watch_.joinable())
      watch_ = std::jthread([this](const std::stop_token &stop) { watch(stop); });
  }

  void finish() {
    if (watch_.joinable()) {
      watch_.request_stop();
      watch_.join();
    }
    if (shown_)
      std::fprintf(stderr, "\r\033[K");
    shown_ = false;
  }

private:
  using Time = std::chrono::steady_clock::time_point;
  static double secondsSince(Time time) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
  }

  void show() {
    if (quiet_ || !onTerminal_ || secondsSince(begin_) <= 2)
      return;
    std::fprintf(stderr, "\r\033[K%s, %.0f s ...", phase_, secondsSince(begin_));
    shown_ = true;
  }

  void watch(const std::stop_token &stop) {
    std::unique_lock lock(mutex_);
    const std::chrono::seconds pause(onTerminal_ && !verbose_ ? 1 : 20);
    while (!stop.stop_requested()) {
      const Time begin = phaseBegin_;
      wake_.wait_until(lock, stop, (onTerminal_ ? std::chrono::steady_clock::now() : std::max(begin, last_)) + pause,
                       [] { return false; });
      if (stop.stop_requested() || begin != phaseBegin_)
        continue;
      last_ = std::chrono::steady_clock::now();
      if (onTerminal_ && !verbose_)
        show();
      else
        std::fprintf(stderr, "%s: %.0f s so far\n", phase_, secondsSince(phaseBegin_));
    }
  }

  const bool &quiet_, &verbose_;
  const bool onTerminal_ = isatty(STDERR_FILENO) != 0;
  const Time begin_ = std::chrono::steady_clock::now();
  bool shown_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  const char *phase_ = "";
  Time phaseBegin_ = begin_, last_ = begin_;
  std::jthread watch_;
};

/// To stdout, all of it: half a result with code 0 would be taken for the whole.
void print(const std::string &text) {
  if (!writeAll(STDOUT_FILENO, std::as_bytes(std::span(text))))
    throw Error(std::string("cannot write to stdout: ") + std::strerror(errno));
}

/// A plan and the files of the weights that it begins with.
std::vector<NamedPath> filesOfPlan(const plan::proto::Plan &plan, const std::string &path, const std::string &what) {
  std::vector<NamedPath> files = {{what, path}};
  for (const plan::proto::WeightFile &file : plan.weight_files())
    files.push_back({"the plan's weight file", std::filesystem::path(path).parent_path() / file.path()});
  return files;
}

/// Where a command's result goes: a file, or stdout.
void deliver(const std::string &text, const std::string &path) {
  if (path.empty() || path == "-")
    print(text);
  else
    writeFileAtomically(path, text);
}

std::string readableBytes(uint64_t bytes) {
  char text[64];
  if (bytes < uint64_t(1) << 20)
    std::snprintf(text, sizeof text, "%.1f KiB", double(bytes) / 1024);
  else if (bytes < uint64_t(1) << 30)
    std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / (1 << 20));
  else
    std::snprintf(text, sizeof text, "%.2f GiB", double(bytes) / (1 << 30));
  return text;
}

struct CompileArguments {
  PlanningArguments planning;
  std::string emit, output;
  int64_t ranks = 1;

  void add(CLI::App &app) {
    planning.add(app);
    app.add_option("--ranks", ranks, "processes or GPUs to compile for");
    app.add_option("--emit", emit, "stop at train|grad|dist|schedule|plan|plan-text and print it");
    app.add_option("-o,--output", output, "the plan file (default: the model's name with .dsplan)");
  }

  driver::CompileRequest request() const {
    driver::CompileRequest result = planning.request();
    result.overrides.ranks = ranks;
    result.output = output;
    if (!emit.empty())
      result.emit = driver::emitFromName(emit);
    return result;
  }
};

/// "gpt2" for gpt2/, gpt2.onnx and path/to/gpt2.
std::string modelName(const std::string &path) {
  std::filesystem::path model(path);
  if (model.filename().empty())
    model = model.parent_path();
  return model.stem().string();
}

void printSummary(const plan::proto::Plan &plan, const std::string &path) {
  size_t commands = 0, parameters = 0;
  uint64_t elements = 0;
  for (const auto &routine : plan.roles(0).routines())
    commands += routine.commands_size();
  for (const auto &variable : plan.variables())
    if (variable.kind() == plan::proto::Variable::PARAMETER) {
      uint64_t count = 1;
      for (int64_t dim : variable.shape())
        count *= dim;
      elements += count;
      ++parameters;
    }
  const auto &arena = plan.roles(0).arenas(0);
  char millions[32];
  std::snprintf(millions, sizeof millions, "%.1f", double(elements) / 1e6);
  print("wrote " + path + ": " + std::to_string(parameters) + " parameters with " + millions + " M elements, " +
        std::to_string(commands) + " commands, arena " + readableBytes(arena.bytes()) + " (" +
        readableBytes(arena.peak_live_bytes()) + " live at the peak)\n");
}

struct VerifyArguments {
  sources::Places places;
  std::string certificate, format = "text";

  void add(CLI::App &app) {
    app.add_option("PLAN", places.plan, "a .dsplan file")->required();
    app.add_option("--model", places.model, "MODEL.onnx or its folder: derive names, ties, inputs, first values again");
    app.add_option("--config", places.config, "ds_config.json: derive batch, optimizer, scales, learning rates again");
    app.add_option(
        "--weights", places.weights,
        "a safetensors file or its folder: first values are to come from there, also where the model has some");
    app.add_option("--certificate", certificate, "FILE: a certificate of what is proven, for ds-run --certify");
    app.add_option("--format", format, "text|json")->check(CLI::IsMember({"text", "json"}));
  }
};

/// The exit code: 0 only for a plan that is proven.
int runVerify(const VerifyArguments &arguments, const bool &quiet) {
  const std::string &path = arguments.places.plan;
  const plan::proto::Plan plan = plan::readPlan(path);
  std::vector<NamedPath> inputs = filesOfPlan(plan, path, "the plan");
  if (!arguments.places.model.empty())
    std::ranges::copy(filesOfModel(arguments.places.model), std::back_inserter(inputs));
  inputs.push_back({"the configuration", arguments.places.config});
  refuseOverwriting({"--certificate", arguments.certificate}, inputs);
  const certify::Verdict verdict = certify::judge(plan, arguments.places, [&](const plan::proto::Plan &one) {
    return driver::programOf(requestOf(one, arguments.places), one.machine().device());
  });
  if (arguments.format == "json")
    print(certify::jsonOf(verdict));
  else if (!verdict.proven)
    throw Error(certify::textOf(verdict, plan, path));
  else if (!quiet)
    print(certify::textOf(verdict, plan, path));
  if (verdict.proven && !arguments.certificate.empty())
    writeFileAtomically(arguments.certificate, certify::certificateOf(verdict, plan, path));
  return verdict.proven ? 0 : 1;
}

void runCompile(const CompileArguments &arguments, const std::string &commandLine, const bool &quiet,
                const bool &verbose) {
  Progress progress(quiet, verbose);
  driver::CompileRequest request = arguments.request();
  request.progress = [&](const char *phase) { progress(phase); };
  if (request.output.empty() && request.emit == driver::Emit::PlanFile)
    request.output = modelName(arguments.planning.model.path) + ".dsplan";
  refuseOverwriting({"-o", request.output}, arguments.planning.inputs());
  if (request.emit != driver::Emit::PlanFile) {
    driver::CompileResult result = driver::compile(request);
    progress.finish();
    return deliver(result.text, arguments.output);
  }
  const driver::CompileResult result = driver::compileProven(request, commandLine, compileAndCheck);
  std::vector<NamedPath> weights = filesOfPlan(result.plan, request.output, "");
  weights.erase(weights.begin());
  refuseOverwriting({"-o", request.output}, weights);
  plan::writePlanFile(request.output, result.plan);
  progress.finish();
  if (quiet)
    return;
  for (const config::AutoValue &value : result.autos)
    print("auto: " + value.path + " is " + value.valueJson + " (" + value.why + ")\n");
  if (result.plan.stale())
    print("note: updates are stale: each is of the gradient of the step before (deepstatic.delayed_update), so losses "
          "and "
          "weights are other ones than without\n");
  printSummary(result.plan, request.output);
}

std::string joined(int argc, char **argv) {
  std::string text;
  for (int i = 0; i < argc; ++i)
    text += (i == 0 ? "" : " ") + std::string(argv[i]);
  return text;
}

void runReport(const std::string &path, const std::string &format, bool allRanks, const std::string &output) {
  report::Options options;
  options.format = report::formatFromName(format);
  options.allRanks = allRanks;
  const plan::proto::Plan plan = plan::readPlan(path);
  refuseOverwriting({"the report", output}, filesOfPlan(plan, path, "the plan"));
  if (options.format == report::Format::Html)
    if (std::optional<check::Finding> finding = certify::refusalOf(plan))
      options.refused = {.rule = finding->rule, .sentence = finding->sentence, .places = std::move(finding->places)};
  deliver(report::report(plan, options), output);
}

struct CheckArguments {
  PlanningArguments planning;
  std::vector<int64_t> ranks = {1};
  std::string format = "text", output;

  void add(CLI::App &app) {
    planning.add(app);
    app.add_option("--ranks", ranks, "N, or several: 8,64,512")->delimiter(',')->check(positive());
    app.add_option("--format", format, "text|json");
    app.add_option("-o,--output", output, "file; default: stdout");
  }
};

/// The exit code: 0 only where everything fits.
int runCheck(const CheckArguments &arguments, const bool &quiet, const bool &verbose) {
  const report::Format format = report::formatFromName(arguments.format);
  Progress progress(quiet, verbose);
  driver::CompileRequest request = arguments.planning.request();
  request.progress = [&](const char *phase) { progress(phase); };
  refuseOverwriting({"-o", arguments.output}, arguments.planning.inputs());
  const std::vector<report::FitCase> cases = driver::tryRanks(request, arguments.ranks);
  const std::vector<report::Trial> trials = driver::tryFurther(request, cases);
  progress.finish();
  deliver(report::fitReport(modelName(arguments.planning.model.path), cases, trials, format), arguments.output);
  const auto planned = std::ranges::find_if(cases, [](const report::FitCase &one) { return one.plan.has_value(); });
  if (const std::string why = planned == cases.end() ? "" : driver::whyNoKernels(*planned->plan); !why.empty())
    std::fprintf(stderr, "note: ds-opt compile refuses what this answers for: %s\n", why.c_str());
  return report::verdictOf(cases) == report::Verdict::Fits ? 0 : 1;
}

void runDiff(const std::string &a, const std::string &b, const std::string &format, const std::string &output) {
  const report::Format wanted = report::formatFromName(format);
  const plan::proto::Plan one = plan::readPlan(a), other = plan::readPlan(b);
  refuseOverwriting({"-o", output}, filesOfPlan(one, a, "the plan"));
  refuseOverwriting({"-o", output}, filesOfPlan(other, b, "the plan"));
  deliver(report::diffReport(one, a, other, b, wanted), output);
}

/// Says why a command failed; its exit code. Called where an exception is being handled.
int explainFailure(CLI::App &app, const char *command) {
  int code = 1;
  try {
    throw;
  } catch (const CLI::Success &success) { // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "error: %s; see ds-opt %s --help\n", usageSentence(app, error).c_str(), command);
    return 2;
  } catch (const config::ConfigError &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    for (const std::string &detail : error.details)
      std::fprintf(stderr, "  also: %s\n", detail.c_str());
    if (!error.tryLine.empty())
      std::fprintf(stderr, "try: %s\n", error.tryLine.c_str());
  } catch (const Error &error) {
    code = dynamic_cast<const driver::CompilerFault *>(&error) ? 4 : 1;
    std::fprintf(stderr, "error: %s\n", error.what());
    if (!error.tryLine.empty())
      std::fprintf(stderr, "try: %s\n", error.tryLine.c_str());
  } catch (const std::exception &error) { // of the file system's library, which names path and reason
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  return code;
}

} // namespace

bool ds::tool::isCommand(int argc, char **argv) {
  if (argc < 2)
    return isatty(STDIN_FILENO) != 0; // mlir-opt would wait for a module to be typed
  const std::string_view first = argv[1];
  std::error_code unknown;
  return isOneOf(first, commands) || isOneOf(first, flags) ||
         (!first.starts_with('-') && first.find_first_of("./") == std::string_view::npos &&
          !std::filesystem::exists(first, unknown));
}

int ds::tool::runCommand(int argc, char **argv) {
  if (argc > 1 && argv[1][0] != '-' && !isOneOf(argv[1], commands)) {
    std::fprintf(stderr, "error: '%s' is neither a command of ds-opt nor a file; the commands are", argv[1]);
    for (const std::string_view command : commands)
      std::fprintf(stderr, "%s %s", command == commands[0] ? "" : ",", command.data());
    std::fprintf(stderr, "\n");
    return 2;
  }
  CLI::App app("ds-opt: inspects and compiles ONNX training graphs");
  app.footer("Exit codes: 0 done, 1 refused, 2 wrong usage, 4 a fault of the compiler itself.\n"
             "Passes by hand, with all flags of mlir-opt: ds-opt FILE.mlir --ds-...; ds-opt --help-list lists them.");
  app.set_version_flag("--version", "ds-opt " DS_VERSION);
  bool quiet = false, verbose = false;
  app.add_flag("--quiet", quiet, "print nothing but results");
  app.add_flag("--verbose", verbose, "print every phase and its time");
  bool listCommands = false;
  app.add_flag("--commands", listCommands, "the same as --help");
  app.fallthrough();

  ModelArguments importArguments;
  std::string importOutput;
  bool listParameters = false;
  CLI::App *importCommand = app.add_subcommand("import", "print a model in the train dialect");
  importArguments.add(*importCommand);
  importCommand->add_flag("--parameters", listParameters, "print what each weight is for, and whether it is trained");
  importCommand->add_option("-o,--output", importOutput, "file; default: stdout");
  importCommand->callback([&] {
    if (const driver::Lengths lengths = importArguments.lengths(); !lengths.sizes.empty())
      throw Error("--dim " + lengths.dimension + " has several sizes, which only a plan can have; give one");
    refuseOverwriting({"-o", importOutput}, filesOfModel(importArguments.path));
    refuseOverwriting({"-o", importOutput}, std::vector<NamedPath>{{"the weights", importArguments.weights}});
    const import::ImportOptions options = importArguments.options();
    deliver(listParameters ? driver::parametersOf(options) : driver::importToText(options), importOutput);
  });

  CompileArguments compileArguments;
  CLI::App *compileCommand = app.add_subcommand("compile", "turn a model and a configuration into a plan");
  compileArguments.add(*compileCommand);
  compileCommand->callback([&] { runCompile(compileArguments, joined(argc, argv), quiet, verbose); });

  std::string reportPath, reportFormat = "text", reportOutput, reportPage;
  bool allRanks = false;
  CLI::App *reportCommand = app.add_subcommand("report", "what a plan decides: who owns what, bytes, configuration");
  reportCommand->add_option("PLAN", reportPath, "a .dsplan file")->required();
  CLI::Option *format = reportCommand->add_option("--format", reportFormat, "text|json|html|perfetto");
  reportCommand->add_flag("--all-ranks", allRanks,
                          "json: every rank instead of one of each class; html: a picture of every role");
  reportCommand->add_option("--html", reportPage, "FILE: the same as --format html -o FILE")->excludes(format);
  reportCommand->add_option("-o,--output", reportOutput, "file; default: stdout");
  reportCommand->callback([&] {
    if (reportPage.empty())
      runReport(reportPath, reportFormat, allRanks, reportOutput);
    else
      runReport(reportPath, "html", allRanks, reportPage);
  });

  VerifyArguments verifyArguments;
  int code = 0;
  CLI::App *verifyCommand =
      app.add_subcommand("verify", "prove that a plan ends, has no race, and does what it should");
  verifyArguments.add(*verifyCommand);
  verifyCommand->callback([&] { code = runVerify(verifyArguments, quiet); });

  std::string explained;
  CLI::App *explainCommand = app.add_subcommand("explain", "what a rule or a key means, and what to do");
  explainCommand
      ->add_option("ID", explained,
                   "a rule or a claim, as verify names it: race, learning_rate; a key of ds_config.json; or what an "
                   "error names: "
                   "optimized-export")
      ->required();
  explainCommand->callback([&] {
    const std::string key = config::explainKey(explained);
    print(key.empty() ? certify::explain(explained) : key);
  });

  CheckArguments checkArguments;
  CLI::App *checkCommand = app.add_subcommand("check", "does it fit, what becomes of every key; writes no plan");
  checkArguments.add(*checkCommand);
  checkCommand->callback([&] { code = runCheck(checkArguments, quiet, verbose); });

  std::string planA, planB, diffFormat = "text", diffOutput;
  CLI::App *diffCommand = app.add_subcommand("diff", "what two plans of a model decide otherwise");
  diffCommand->add_option("A", planA, "a .dsplan file")->required();
  diffCommand->add_option("B", planB, "another")->required();
  diffCommand->add_option("--format", diffFormat, "text|json");
  diffCommand->add_option("-o,--output", diffOutput, "file; default: stdout");
  diffCommand->callback([&] { runDiff(planA, planB, diffFormat, diffOutput); });

  std::string zooFormat = "text";
  CLI::App *zooCommand = app.add_subcommand("zoo", "architectures of transformers that are known to train");
  zooCommand->add_option("--format", zooFormat, "text|json");
  zooCommand->callback([&] { print(report::zooReport(report::formatFromName(zooFormat))); });

  refuseOddValues(app);
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      print(app.help());
    return code;
  } catch (...) {
    return explainFailure(app, argc > 1 ? argv[1] : "");
  }
}
