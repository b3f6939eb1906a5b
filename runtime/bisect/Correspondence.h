//===- Correspondence.h - which ops of two plans are the same -------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::runtime {

/// Ops of two reference programs pair up by function, kind and name, those that share all three in their order. A pass
/// that runs before the reference program is recorded may add ops and take others away: these have no counterpart, and
/// neither have those of which one program has more.
class Correspondence {
public:
  /// Throws ds::Error, one sentence, for plans that need not agree: of another model, batch or configuration.
  Correspondence(const plan::proto::Plan &a, const plan::proto::Plan &b);

  /// By op or variable of plan B: that of A, or a number beyond A's.
  const std::vector<int64_t> &ops() const { return ops_; }
  const std::vector<uint32_t> &variables() const { return variables_; }
  /// Ops of a step without a counterpart, in a sentence; empty: there are none.
  const std::string &note() const { return note_; }

private:
  void pairOps();
  void pairVariables();

  const plan::proto::Plan &a_, &b_;
  std::vector<int64_t> ops_;
  std::vector<uint32_t> variables_;
  std::string note_;
};

} // namespace ds::runtime
