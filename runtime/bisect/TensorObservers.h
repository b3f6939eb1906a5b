//===- TensorObservers.h - shows what commands write, by tensor -----------===//
#pragma once

#include "runtime/bisect/Correspondence.h"
#include "runtime/bisect/Tensor.h"
#include "runtime/executor/WriteObserver.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/LocalRanks.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace ds::runtime {

/// Is told of each piece of a tensor, without its digest; called by many threads. Tensors have plan A's numbers.
using PieceSink = std::function<void(const TensorKey &, const Piece &, const std::byte *bytes)>;

class TensorObservers final : public WriteObservers {
public:
  /// `names`: of plan B, whose numbers it translates; nullptr: the plan is A. All outlive it.
  TensorObservers(const PieceSink &sink, const Correspondence *names) : sink_(sink), names_(names) {}

  std::unique_ptr<WriteObserver> observerOf(const ObservedCommand &command) override;

  /// What ranks hold of variables when so many steps are done and no queue has anything to do.
  void showVariables(const plan::proto::Plan &plan, const LocalRanks &ranks, uint64_t stepsDone) const;

private:
  class Observer;

  TensorKey translated(TensorKey key) const;

  const PieceSink &sink_;
  const Correspondence *const names_;
};

} // namespace ds::runtime
