//===- Judge.h - what becomes of a broken plan -----------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::mutation {

/// Who noticed.
enum class Outcome {
  Reader,  ///< plan::validatePlan, which every tool calls when it reads a plan
  Checker, ///< certify::refusalOf
  Load,    ///< ds-run before the first step: a kernel that does not take these operands
  Equal,   ///< nobody, and rightly: every run ends with the bits of the plan that was not broken
  Missed   ///< nobody, and a run failed, hung or ended with other bits
};

struct Judgement {
  Outcome outcome;
  std::string sentence; ///< the refusal, or what went wrong
};

/// Trains a plan and its broken copies, each in a process of its own.
class Judge {
public:
  struct Options {
    std::string folder, data; ///< where copies of the plan find its weights; what it trains on
    int runs = 5;             ///< of an accepted plan, each with other delays
    int steps = 3;
  };

  /// Throws ds::Error if the checker refuses the plan as it is.
  Judge(const plan::proto::Plan &plan, Options options);
  /// Throws ds::Error if the plan that nobody broke does not train.
  Judgement judge(const plan::proto::Plan &broken);

private:
  struct Trial {
    char kind; ///< 'D' a digest, 'L' refused at load, 'F' failed
    std::string text;
  };
  Trial train(const plan::proto::Plan &plan, bool disturbed) const;

  plan::proto::Plan plan_;
  Options options_;
  std::string digest_; ///< of a run of the plan as it is; empty until somebody asks
};

} // namespace ds::mutation
