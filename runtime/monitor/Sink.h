//===- Sink.h - where a run's numbers go ----------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/executor/Scalar.h"

#include <cstdint>
#include <string>

namespace ds::runtime {

class Sink {
public:
  virtual ~Sink() = default;
  /// `tag`: a path such as "Train/Samples/lr"; `samples`: used in training so far.
  virtual Status write(const char *tag, uint64_t samples, const Scalar &value) noexcept = 0;
  /// For a note to the user.
  virtual std::string place() const = 0;
};

} // namespace ds::runtime
