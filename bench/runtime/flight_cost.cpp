//===- flight_cost.cpp - what the flight recorder costs -------------------===//
//
// flight-cost PLAN DATA [STEPS [ROUNDS]]: trains with and without it in turns, all ranks of the plan in this process,
// and prints the processor's seconds of both. The order within a round changes, so that a machine that slows down
// favours neither. ds-run has no switch for it; TrainingOptions has.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "runtime/flight/FlightRecorder.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace ds;

class Silent final : public runtime::TrainingObserver {
public:
  void stepDone(const runtime::StepReport &) noexcept override {}
  void evaluated(const runtime::EvaluationReport &) noexcept override {}
};

double processorSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

/// Of all threads, for the steps alone.
double secondsOf(runtime::TrainingOptions options, bool recorded) {
  runtime::FlightRecorder recorder([](const std::string &) {});
  options.flight = recorded ? &recorder : nullptr;
  runtime::Training training(options, kernels::cpuKernels());
  Silent silent;
  const std::atomic<bool> stop = false;
  const double begin = processorSeconds();
  training.run(silent, stop);
  return processorSeconds() - begin;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(const runtime::TrainingOptions &options, size_t rounds) {
  const double steps = double(*options.steps);
  std::vector<double> with, without, ratios;
  for (size_t round = 0; round < rounds; ++round) {
    const bool recordedFirst = round % 2 == 0;
    for (const bool recorded : {recordedFirst, !recordedFirst})
      (recorded ? with : without).push_back(secondsOf(options, recorded) / steps);
    ratios.push_back(with.back() / without.back());
  }
  std::printf("processor us a step, best (median) of %zu rounds of %.0f steps: with the recorder %.1f (%.1f), without "
              "%.1f (%.1f); ratio of the bests %.4f, median of the rounds' ratios %.4f\n",
              rounds, steps, 1e6 * *std::ranges::min_element(with), 1e6 * median(with),
              1e6 * *std::ranges::min_element(without), 1e6 * median(without),
              *std::ranges::min_element(with) / *std::ranges::min_element(without), median(ratios));
}

} // namespace

int main(int count, char **words) {
  if (count < 3) {
    std::fputs("usage: flight-cost PLAN DATA [STEPS [ROUNDS]]\n", stderr);
    return 2;
  }
  try {
    runtime::TrainingOptions options;
    options.planPath = words[1];
    options.data = {words[2]};
    options.threads = 1;
    options.steps = count > 3 ? std::stoull(words[3]) : 200;
    measure(options, count > 4 ? std::stoull(words[4]) : 21);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
