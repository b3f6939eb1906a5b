//===- Verdict.h - what is known of a plan before it runs -----------------===//
#pragma once

#include "compiler/check/Check.h"
#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ds::certify {

/// What the checker says of a plan, and what its sources say.
struct Verdict {
  bool proven = false;
  // Of a refused plan: the rule that it breaks, where, and how.
  std::string rule, place, sentence;
  // Of a proven one. `trusted` is what nothing here compares, `unknown` what is written and not followed.
  std::vector<sources::Claim> claims, trusted;
  check::Unknown unknown;
};

/// Makes names of variables and the reference program of a plan for one size from its sources again.
using Derive = std::function<plan::proto::Plan(const plan::proto::Plan &plan)>;

/// Judges a plan that plan::validatePlan accepts. `derive` is called where `places` has model and configuration. A plan
/// that does not follow from its sources throws ds::Error, as they may be the wrong ones.
Verdict judge(const plan::proto::Plan &plan, const sources::Places &places, const Derive &derive);

/// For people. `name`: of the plan's file.
std::string textOf(const Verdict &verdict, const plan::proto::Plan &plan, const std::string &name);

/// {"verdict": "proven" | "refused", "claims": [...], ...}, as docs/certificate.md says.
std::string jsonOf(const Verdict &verdict);

/// The certificate of a proven plan: the verdict, and which file it is of (docs/certificate.md).
std::string certificateOf(const Verdict &verdict, const plan::proto::Plan &plan, const std::string &path);

} // namespace ds::certify
