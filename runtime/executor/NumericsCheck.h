//===- NumericsCheck.h - --check-numerics ---------------------------------===//
#pragma once

#include "runtime/executor/WriteObserver.h"

#include <memory>

namespace ds::runtime {

/// Fails the run when a kernel has written a float element that is NaN, or infinite and no mask's, naming op, value and
/// index. Cf. torch.autograd.set_detect_anomaly. A mask's is what comes of a constant, an input or a variable that is
/// infinite or the least number of its type, so a kernel that reads one, or has one among its attributes, may write
/// infinities.
class NumericsCheck final : public WriteObservers {
public:
  std::unique_ptr<WriteObserver> observerOf(const ObservedCommand &command) override;
};

} // namespace ds::runtime
