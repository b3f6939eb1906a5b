//===- ArrivingData.h - samples that come while a run goes on -------------===//
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/SampleLengths.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

/// --data -: each line of a descriptor names a file of samples for one step or several, which are taken once, in order.
/// So a program that makes samples may run beside the training, and its files may go when their steps are done.
class ArrivingData {
public:
  /// `lines` stays open for as long as this lives.
  ArrivingData(std::vector<InputSpec> inputs, uint64_t samplesPerStep, int lines, Sizes sizes = {})
      : inputs_(std::move(inputs)), sizes_(std::move(sizes)), samplesPerStep_(samplesPerStep), lines_(lines) {}

  struct Samples {
    const Dataset *data;
    uint64_t first;
  };
  /// Those of the next step; valid until the next call. Waits for a line; nothing at the end of the lines, and as soon
  /// as `ended` says so. Throws ds::Error for a file that does not fit the inputs or holds no whole number of steps.
  std::optional<Samples> next(const std::function<bool()> &ended);

private:
  std::optional<std::string> nextLine(const std::function<bool()> &ended);

  const std::vector<InputSpec> inputs_;
  const Sizes sizes_;
  const uint64_t samplesPerStep_;
  const int lines_;
  std::string text_; // read, and not a whole line yet
  std::unique_ptr<Dataset> data_;
  uint64_t taken_ = 0; // of its samples
};

} // namespace ds::runtime
