//===- main.cpp - ds-run --------------------------------------------------===//
#include "core/Crc32c.h"
#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "kernels/cpu/Isa.h"
#include "runtime/certificate/Certificate.h"
#include "runtime/data/FileDigest.h"
#include "runtime/data/ReadOnlyFile.h"
#include "runtime/device/cpu/GuardPageReport.h"
#include "runtime/flight/FlightRecorder.h"
#include "runtime/monitor/Monitor.h"
#include "runtime/monitor/Profiler.h"
#include "runtime/session/NonFinite.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"
#include "tools/ds-run/Arguments.h"
#include "tools/ds-run/Bisect.h"
#include "tools/ds-run/Checkpoint.h"
#include "tools/ds-run/Ending.h"
#include "tools/ds-run/Info.h"
#include "tools/ds-run/Launcher.h"
#include "tools/ds-run/OutOfMemory.h"
#include "tools/ds-run/Postmortem.h"
#include "tools/ds-run/Progress.h"
#include "tools/ds-run/SideChannels.h"
#include "tools/ds-run/Tune.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace ds::run {
namespace {

/// One line whatever the text holds: names come from files. Of a long one the middle is left out, not the reason.
std::string oneLine(std::string text) {
  for (char &byte : text)
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F)
      byte = '?';
  constexpr size_t most = 10000; // two paths
  return text.size() > most ? text.substr(0, most / 2) + " ... " + text.substr(text.size() - most / 2) : text;
}

void printError(const std::string &text) { std::fprintf(stderr, "error: %s\n", oneLine(text).c_str()); }

void printNote(const std::string &text) { std::fprintf(stderr, "note: %s\n", oneLine(text).c_str()); }

/// How long a run may take to end once it is over. A trace is written after a failure, too, and may be long.
std::chrono::seconds timeToEnd(const Arguments &arguments) {
  return arguments.training.trace.empty() ? std::chrono::seconds(20) : std::chrono::minutes(5);
}

Progress::Detail detailOf(const Arguments &arguments) {
  if (arguments.quiet)
    return Progress::Detail::None;
  return arguments.verbose ? Progress::Detail::EveryStep : Progress::Detail::Tenths;
}

void printLoaded(const runtime::Training &training) {
  const runtime::SummaryReport summary = training.summary();
  std::fprintf(
      stderr,
      "plan of %s for %u %s of %d %s, on a machine of %u processors: %s steps of %llu samples, %.1f MiB on the device "
      "of each, %.1f on the host\n",
      training.plan().model().c_str(), training.ranks(), training.ranks() == 1 ? "rank" : "ranks", training.threads(),
      training.threads() == 1 ? "thread" : "threads", std::thread::hardware_concurrency(),
      training.steps() ? std::to_string(*training.steps()).c_str() : "as many as --data - has",
      static_cast<unsigned long long>(training.samplesPerStep()), double(summary.deviceBytes) / 1048576.0,
      double(summary.hostBytes) / 1048576.0);
}

void printUnusedWeights(const runtime::Training &training) {
  const std::vector<std::string> &names = training.unusedWeights();
  if (!names.empty())
    std::fprintf(stderr, "note: the plan has no use for %zu of the names in --weights, the first is %s\n", names.size(),
                 names[0].c_str());
}

/// What computes: two builds, or two instruction sets, may round differently, and then replicas drift apart.
std::vector<std::pair<std::string, uint64_t>> softwareDigests() {
  const std::string isa = kernels::nameOf(kernels::isa());
  return {{"the program ds-run, its version or build,", runtime::fileDigest(runtime::ReadOnlyFile("/proc/self/exe"))},
          {"the instruction set that kernels use (ds-run info tells; DS_CPU_ISA caps it)",
           crc32c(std::as_bytes(std::span(isa)))}};
}

/// What a run trained ends with it.
bool keepsNothing(const runtime::TrainingOptions &options) {
  return options.saving.folder.empty() && options.exportPath.empty() && !options.evaluateOnly &&
         options.device != "null" && options.steps != 0;
}

void train(Arguments &arguments, const std::string &commandLine, runtime::FlightRecorder &flight) {
  outliveSideChannels();
  if (!arguments.training.ranks) // -n wins over a launcher
    arguments.training.launch = detectLauncher(commandLine);
  else if (const uint64_t processes = processesStarted(); processes > 1 && !arguments.quiet)
    std::fprintf(
        stderr,
        "note: a launcher started %llu processes, and -n %llu makes each of them a whole run; leave -n out for "
        "one run of all\n",
        static_cast<unsigned long long>(processes), static_cast<unsigned long long>(*arguments.training.ranks));
  if (arguments.training.checkMemory)
    runtime::reportGuardPageHits();
  arguments.training.software = softwareDigests();
  arguments.training.onFailure = [limit = timeToEnd(arguments)](const std::string &text) {
    endWithin(limit, oneLine(text));
  };
  arguments.training.flight = &flight;
  recordOnSignal(flight);
  endOnSignals();
  std::optional<runtime::Certificate> certificate;
  if (!arguments.certificate.empty())
    certificate.emplace(arguments.certificate, arguments.training.planPath);
  runtime::Profiler profiler;
  arguments.training.profile = [&](const auto &plan) { return profiler.profileOf(plan); };
  runtime::Training training(arguments.training, kernels::cpuKernels());
  if (certificate)
    certificate->requireSettings(training);
  const std::atomic<bool> &stop = askToEndOnSignals();
  if (arguments.verbose && training.hasRankZero())
    printLoaded(training);
  if (training.hasRankZero())
    printUnusedWeights(training);
  Progress progress(training.steps(), detailOf(arguments));
  if (certificate && training.hasRankZero())
    progress.noted(("certificate " + certificate->hash() + " of plan " + certificate->planHash()).c_str());
  if (training.hasRankZero())
    for (const std::string &note : training.notes())
      progress.noted(note.c_str());
  if (const std::string epochs = training.epochs(); !epochs.empty() && training.hasRankZero() && !arguments.quiet)
    progress.noted(epochs.c_str());
  if (keepsNothing(arguments.training) && progress.isOnTerminal() && training.hasRankZero() && !arguments.quiet)
    progress.noted("without --save FOLDER and --export FILE the trained weights end with the run");
  std::optional<runtime::Monitor> monitor;
  if (training.hasRankZero())
    monitor.emplace(training.plan(), progress);
  profiler.passTo(monitor ? static_cast<runtime::TrainingObserver &>(*monitor) : progress);
  runtime::MeasuredRun measured(profiler);
  try {
    training.run(measured, stop);
  } catch (...) {
    profiler.finish();
    progress.finish();
    throw;
  }
  profiler.finish();
  progress.finish();
  if (certificate && training.hasRankZero())
    certificate->append(measured, training, arguments.training);
  endWithin(timeToEnd(arguments), "the run is over, and all is well but for its end");
}

/// Does what the arguments say; returns the exit code. `flight`: where a run's recorder is kept, which may have
/// something to say about a failure.
int carryOut(int argc, char **argv, std::unique_ptr<runtime::FlightRecorder> &flight) {
  try {
    Arguments arguments = parseArguments(argc, argv);
    switch (arguments.command) {
    case Arguments::Command::Help:
      std::fputs(arguments.text.c_str(), stdout);
      break;
    case Arguments::Command::Info:
      printInfo();
      break;
    case Arguments::Command::Bisect:
      return bisect(arguments);
    case Arguments::Command::Tune:
      tune(arguments.training.planPath);
      break;
    case Arguments::Command::Postmortem:
      postmortem(arguments.postmortem);
      break;
    case Arguments::Command::Checkpoint:
      return checkpoint(arguments.checkpoint);
    case Arguments::Command::Export:
      return exportWeights(arguments.exporting);
    case Arguments::Command::Train:
      flight = std::make_unique<runtime::FlightRecorder>(printNote);
      train(arguments,
            std::accumulate(argv + 1, argv + argc, std::string(),
                            [](const std::string &line, const char *word) { return line + " " + word; }),
            *flight);
      break;
    }
    return 0;
  } catch (const UsageError &error) {
    printError(error.what());
    return 2;
  } catch (const runtime::NonFiniteError &error) {
    printError(error.what());
    return 3;
  } catch (const runtime::StoppedAndSaved &stopped) {
    printNote(stopped.what());
    return 75;
  } catch (const Error &error) {
    printError(error.what());
    if (!error.tryLine.empty())
      std::fprintf(stderr, "try: %s\n", error.tryLine.c_str());
  } catch (const std::bad_alloc &) {
    sayOutOfMemory();
  } catch (const std::system_error &error) {
    printError(error.code() == std::errc::resource_unavailable_try_again
                   ? "no further thread can be started: a limit on threads or memory is reached (ulimit -u, ulimit -v, "
                     "or a container's); raise it, or give fewer --threads"
                   : error.what());
  } catch (const std::exception &error) {
    printError(error.what());
  }
  return 1;
}

/// Every thread has a stack of this size, and what is too small ends without a word.
bool hasStack() {
  constexpr rlim_t least = 256 << 10;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least)
    return true;
  std::fprintf(stderr, "error: the limit of a stack is %llu KiB (ulimit -s), and ds-run needs %llu\n",
               static_cast<unsigned long long>(limit.rlim_cur >> 10), static_cast<unsigned long long>(least >> 10));
  return false;
}

int run(int argc, char **argv) {
  if (!hasStack())
    return 1;
  endWhenOutOfMemory();
  std::unique_ptr<runtime::FlightRecorder> flight;
  const int code = carryOut(argc, argv, flight);
  if (flight != nullptr)
    if (const std::string note = flight->finish(); !note.empty())
      printNote(note);
  return code;
}

} // namespace
} // namespace ds::run

int main(int argc, char **argv) { return ds::run::run(argc, argv); }
