//===- Progress.cpp - what a user sees while training ---------------------===//
#include "tools/ds-run/Progress.h"
#include "runtime/executor/Scalar.h"
#include "runtime/session/StepReport.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <unistd.h>

namespace ds::run {
namespace {

using Clock = std::chrono::steady_clock;

/// "2.3104", or "-" where the plan does not compute it.
std::array<char, 32> shortText(const std::optional<runtime::Scalar> &value) {
  std::array<char, 32> text{'-'};
  if (value)
    std::snprintf(text.data(), text.size(), "%.5g", value->asDouble());
  return text;
}

} // namespace

Progress::Progress(uint64_t steps, Detail detail)
    : steps_(steps), detail_(detail), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::stepDone(const runtime::StepReport &report) noexcept {
  if (detail_ == Detail::None)
    return;
  if (terminal_ && detail_ == Detail::Tenths)
    return drawBar(report);
  const bool tenth = report.step * 10 / steps_ > (report.step - 1) * 10 / steps_;
  if (tenth || detail_ == Detail::EveryStep)
    std::fprintf(stderr, "step %llu/%llu  loss %s  lr %s  %.4g samples/s\n",
                 static_cast<unsigned long long>(report.step), static_cast<unsigned long long>(steps_),
                 shortText(report.loss).data(), shortText(report.learningRate).data(), report.samplesPerSecond);
}

void Progress::evaluated(const runtime::EvaluationReport &report) noexcept {
  finish();
  if (detail_ != Detail::None)
    std::fprintf(stderr, "after step %llu  evaluation loss %s\n", static_cast<unsigned long long>(report.step),
                 shortText(report.loss).data());
}

void Progress::noted(const char *sentence) noexcept {
  finish();
  std::fprintf(stderr, "note: %s\n", sentence);
}

void Progress::drawBar(const runtime::StepReport &report) noexcept {
  const auto now = Clock::now();
  if (report.step < steps_ && now - drawn_ < std::chrono::milliseconds(100))
    return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const auto left = static_cast<unsigned long long>(seconds / double(report.step) * double(steps_ - report.step));
  std::array<char, 25> bar{};
  std::memset(bar.data(), '.', bar.size() - 1);
  std::memset(bar.data(), '#', size_t(report.step * (bar.size() - 1) / steps_));
  std::fprintf(stderr, "\r\x1b[K[%s] %llu/%llu  loss %s  %.4g samples/s  %llu:%02llu left", bar.data(),
               static_cast<unsigned long long>(report.step), static_cast<unsigned long long>(steps_),
               shortText(report.loss).data(), report.samplesPerSecond, left / 60, left % 60);
  std::fflush(stderr);
  barStands_ = true;
}

void Progress::finish() noexcept {
  if (barStands_)
    std::fputc('\n', stderr);
  barStands_ = false;
}

} // namespace ds::run
