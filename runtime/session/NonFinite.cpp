//===- NonFinite.cpp - --on-nonfinite -------------------------------------===//
#include "runtime/session/NonFinite.h"

#include "runtime/comm/Transport.h"
#include "runtime/executor/Scalar.h"
#include "runtime/session/StepReport.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ds::runtime {
namespace {

bool isBad(const std::optional<Scalar> &value) { return value && !value->isFinite(); }

} // namespace

NonFinite NonFinite::of(const StepReport &report) noexcept {
  if (report.skipped) // by the plan
    return report.scaleIsLeast ? NonFinite{Metric::LossScale, *report.lossScale} : NonFinite{};
  if (isBad(report.loss))
    return {Metric::Loss, *report.loss};
  if (isBad(report.gradientNorm))
    return {Metric::GradientNorm, *report.gradientNorm};
  return {};
}

NonFinite NonFinite::of(const EvaluationReport &report) noexcept {
  return isBad(report.loss) ? NonFinite{Metric::EvaluationLoss, *report.loss} : NonFinite{};
}

void NonFinite::shareFromRankZero(Transport &transport) {
  for (uint32_t rank = 1; rank < transport.ranks(); ++rank)
    transport.copy(0, rank, std::as_writable_bytes(std::span(this, 1)));
}

std::string NonFinite::what() const {
  const char *name = metric == Metric::GradientNorm ? "gradient norm"
                     : metric == Metric::LossScale  ? "loss scale"
                                                    : "loss";
  std::array<char, 32> text;
  return name + (" is " + std::string(text.data(), value.format(text))) + " on rank 0";
}

NonFiniteError NonFinite::error(uint64_t step) const {
  const std::string ends = ", so the run ends and exports nothing; ";
  if (metric == Metric::EvaluationLoss)
    return NonFiniteError("after step " + std::to_string(step) + " the evaluation's " + what() + ends +
                          "--on-nonfinite continue goes on");
  if (metric == Metric::LossScale)
    return NonFiniteError("in step " + std::to_string(step) + " a gradient is not finite, and the " + what() +
                          ", which fp16.min_loss_scale lets get no smaller" + ends +
                          "--check-numerics names the first command that made such a value, --on-nonfinite continue "
                          "leaves such steps out and goes on");
  return NonFiniteError("in step " + std::to_string(step) + " the " + what() + ends +
                        "--check-numerics names the first command that made such a value, --on-nonfinite skip undoes "
                        "such steps, --on-nonfinite continue goes on");
}

} // namespace ds::runtime
