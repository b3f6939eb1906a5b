//===- Dataset.h - the samples of a run -----------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/data/Column.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/SampleLengths.h"
#include "runtime/data/TokenStream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ds::runtime {

/// All files of one --data, as an endless stream of samples: position p is in epoch floor(p / samples), and is sample
/// p mod samples, or the one that the epoch's permutation puts there.
class Dataset {
public:
  struct Order {
    bool shuffle = false;
    uint64_t seed = 0;
  };

  /// Opens and checks the files: all safetensors (one tensor per input), or all token files. Throws ds::Error.
  /// `sizes`: `inputs` are those of the largest size, and then those of each of the others, ascending.
  Dataset(std::vector<InputSpec> inputs, const std::vector<std::string> &paths, Order order, Sizes sizes = {});
  Dataset(const Dataset &) = delete;
  Dataset &operator=(const Dataset &) = delete;

  /// In one epoch.
  uint64_t samples() const { return samples_; }
  /// Of the files, in their order; cf. fileDigest.
  uint64_t digest() const;
  /// Names of tensors in the files that no input is.
  std::set<std::string> unread() const;

  /// Writes `count` samples of an input, from a position of the stream on, one after another. Refuses values that the
  /// input does not allow, naming the sample. Allocates nothing; may be called from several threads.
  Status read(uint32_t input, uint64_t position, uint64_t count, std::byte *target) const noexcept;

  /// The smallest size that holds `count` samples from a position of the stream on; 0: samples have one shape.
  uint64_t sizeFor(uint64_t position, uint64_t count) const noexcept;

  /// Reads the samples that a run of `count` samples from `position` on will read, each once, all inputs of a sample
  /// together, until `mostBytes` were looked at; 0: nothing is. Throws ds::Error for the first that read refuses.
  void check(uint64_t position, uint64_t count, uint64_t mostBytes) const;

private:
  size_t inputsOfSize() const noexcept { return inputs_.size() / std::max<size_t>(sizes_.each.size(), 1); }
  uint64_t sampleAt(uint64_t position) const noexcept;
  Status checkValues(const InputSpec &input, uint64_t sample, const std::byte *values) const noexcept;

  const std::vector<InputSpec> inputs_;
  std::vector<SafetensorsFile> files_;
  std::optional<TokenStream> stream_;
  std::vector<std::unique_ptr<Column>> columns_; // one an input
  std::vector<uint32_t> lengths_;                // one a sample, where there are sizes and no stream
  uint64_t samples_ = 0;
  Order order_;
  const Sizes sizes_;
};

} // namespace ds::runtime
