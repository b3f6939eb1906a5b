//===- Delays.h - gradients that the next step's updates read -------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <optional>

namespace ds::check {

namespace proto = plan::proto;

/// Pending variables of the reference program: optimizer state of a parameter into which @update stores its gradient,
/// behind an update that reads what the step before has stored there.
class Delays {
public:
  /// Throws Mismatch where such an update stands behind the store, for then it is of this step's gradient.
  explicit Delays(const proto::Plan &plan);

  /// The gradient that a variable takes for the next step; nothing where it takes none.
  std::optional<uint32_t> gradientIn(uint32_t variable) const {
    const auto found = gradients_.find(variable);
    return found == gradients_.end() ? std::nullopt : std::optional(found->second);
  }
  /// Whether a buffer is the place of such variables.
  bool lieIn(const proto::Plan &plan, const proto::Buffer &buffer) const;
  bool empty() const { return gradients_.empty(); }

private:
  std::map<uint32_t, uint32_t> gradients_; ///< by variable
};

} // namespace ds::check
