//===- EqualProcesses.cpp - all processes of a run do the same ------------===//
#include "runtime/session/EqualProcesses.h"

#include "core/Crc32c.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/TrainingOptions.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

static std::string joined(const std::vector<std::string> &texts) {
  std::string all;
  for (const std::string &text : texts)
    all += text + " ";
  return all;
}

void requireEqualEverywhere(Transport &transport, const plan::proto::Plan &plan, const TrainingOptions &options) {
  if (transport.localRanks().size() == transport.ranks())
    return;
  const auto digest = [](const std::string &text) { return uint64_t(crc32c(std::as_bytes(std::span(text)))); };
  for (const auto &[what, softwareDigest] : options.software)
    transport.requireEqual(what, softwareDigest);
  transport.requireEqual("the plan file", digest(plan::framePlan(plan)));
  transport.requireEqual(
      "the flags --steps, --seed, --shuffle, --eval, --eval-interval, --export, --trace, --on-nonfinite, "
      "--replica-digest-interval, --save, --save-interval, --resume or --set",
      digest(std::to_string(options.steps.value_or(UINT64_MAX)) + " " + std::to_string(options.seed.value_or(0)) + " " +
             std::to_string(options.seed.has_value()) + " " + std::to_string(options.saving.folder.empty()) + " " +
             std::to_string(options.saving.interval) + " " + joined(options.set) + " " +
             std::to_string(options.resume.empty()) + " " + std::to_string(options.shuffle) + " " +
             std::to_string(options.evaluateOnly) + " " + std::to_string(options.evaluationInterval) + " " +
             std::to_string(options.evaluationData.size()) + " " + std::to_string(options.exportPath.empty()) + " " +
             std::to_string(options.trace.empty()) + " " + std::to_string(int(options.onNonFinite)) + " " +
             std::to_string(replicaDigestInterval(plan, options))));
}

uint64_t replicaDigestInterval(const plan::proto::Plan &plan, const TrainingOptions &options) {
  return options.replicaDigestInterval.value_or(plan.machine().device() == "cuda" ? 1000 : 100);
}

} // namespace ds::runtime
