//===- Progress.cpp - what a user sees while training ---------------------===//
#include "tools/ds-run/Progress.h"
#include "runtime/executor/Scalar.h"
#include "runtime/session/StepReport.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ds::run {
namespace {

using Clock = std::chrono::steady_clock;

/// "2.3104", or "-" where the plan does not compute it.
std::array<char, 32> shortText(const std::optional<runtime::Scalar> &value) {
  std::array<char, 32> text{'-'};
  if (value && std::isnan(value->asDouble()))
    return {'n', 'a', 'n'}; // whose sign says nothing
  if (value)
    std::snprintf(text.data(), text.size(), "%.5g", value->asDouble());
  return text;
}

using Line = std::array<char, 200>;

/// "384 tokens/s", or "12 samples/s" where nothing is a token.
std::array<char, 40> speedOf(const runtime::StepReport &report) {
  std::array<char, 40> text{};
  const bool tokens = report.tokensPerSecond > 0;
  const double speed = tokens ? report.tokensPerSecond : report.samplesPerSecond;
  std::snprintf(text.data(), text.size(), speed < 1000 ? "%.4g %s/s" : "%.0f %s/s", speed,
                tokens ? "tokens" : "samples");
  return text;
}

/// "0:12 left"
std::array<char, 48> timeLeft(double seconds) {
  const auto left = static_cast<unsigned long long>(seconds);
  std::array<char, 48> text{};
  if (left < 3600)
    std::snprintf(text.data(), text.size(), "%llu:%02llu left", left / 60, left % 60);
  else
    std::snprintf(text.data(), text.size(), "%llu:%02llu:%02llu left", left / 3600, left / 60 % 60, left % 60);
  return text;
}

/// "3/9  0:12 left  loss 2.31  384 tokens/s": what a narrow terminal cuts off is wanted least.
Line describe(const runtime::StepReport &report, uint64_t steps, double secondsLeft) {
  Line line{};
  std::snprintf(line.data(), line.size(), "%llu/%llu  %s  loss %s  %s", static_cast<unsigned long long>(report.step),
                static_cast<unsigned long long>(steps), timeLeft(secondsLeft).data(), shortText(report.loss).data(),
                speedOf(report).data());
  return line;
}

/// Of the terminal, which may change while a run goes on.
size_t columns() {
  struct winsize size = {};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : 80;
}

} // namespace

Progress::Progress(std::optional<uint64_t> steps, Detail detail)
    : steps_(steps.value_or(0)), detail_(steps || detail == Detail::None ? detail : Detail::EveryStep),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::stepDone(const runtime::StepReport &report) noexcept {
  ++done_;
  if (detail_ == Detail::None)
    return;
  if (terminal_ && detail_ == Detail::Tenths)
    return drawBar(report);
  const bool tenth = detail_ == Detail::Tenths && report.step * 10 / steps_ > (report.step - 1) * 10 / steps_;
  if (!tenth && detail_ != Detail::EveryStep)
    return;
  std::array<char, 24> of{};
  std::array<char, 56> left{};
  if (steps_ > 0) {
    std::snprintf(of.data(), of.size(), "/%llu", static_cast<unsigned long long>(steps_));
    std::snprintf(left.data(), left.size(), "  %s", timeLeft(secondsLeft(report)).data());
  }
  std::fprintf(stderr, "step %llu%s  loss %s  lr %s  %s%s\n", static_cast<unsigned long long>(report.step), of.data(),
               shortText(report.loss).data(), shortText(report.learningRate).data(), speedOf(report).data(),
               left.data());
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

void Progress::shown(const char *table) noexcept {
  finish();
  std::fputs(table, stderr);
}

/// If the steps to come take as long as those of this run so far.
double Progress::secondsLeft(const runtime::StepReport &report) const noexcept {
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  return steps_ > report.step ? seconds / double(done_) * double(steps_ - report.step) : 0;
}

void Progress::drawBar(const runtime::StepReport &report) noexcept {
  const auto now = Clock::now();
  if (report.step < steps_ && now - drawn_ < std::chrono::milliseconds(100))
    return;
  drawn_ = now;
  const Line text = describe(report, steps_, secondsLeft(report));
  const size_t room = columns() - 1, used = std::strlen(text.data()); // a full line would wrap
  constexpr size_t longest = 24, shortest = 4;
  std::array<char, longest + 1> bar{};
  const size_t length = std::min(longest, room > used + 3 ? room - used - 3 : 0);
  std::memset(bar.data(), '.', length);
  std::memset(bar.data(), '#', size_t(report.step * length / steps_));
  if (length >= shortest)
    std::fprintf(stderr, "\r\x1b[K[%s] %s", bar.data(), text.data());
  else
    std::fprintf(stderr, "\r\x1b[K%.*s", int(room), text.data());
  std::fflush(stderr);
  barStands_ = true;
}

void Progress::finish() noexcept {
  if (barStands_)
    std::fputc('\n', stderr);
  barStands_ = false;
}

} // namespace ds::run
