//===- NumericsCheck.h - --check-numerics ---------------------------------===//
#pragma once

#include "runtime/executor/WriteObserver.h"

#include <memory>

namespace ds::runtime {

/// Fails the run when a kernel has written a float element that is NaN or infinite, naming op, value and index. Cf.
/// torch.autograd.set_detect_anomaly.
class NumericsCheck final : public WriteObservers {
public:
  std::unique_ptr<WriteObserver> observerOf(const ObservedCommand &command) override;
};

} // namespace ds::runtime
