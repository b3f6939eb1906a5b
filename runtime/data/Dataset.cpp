//===- Dataset.cpp - the samples of a run ---------------------------------===//
#include "runtime/data/Dataset.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/data/Column.h"
#include "runtime/data/FileDigest.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/Shuffle.h"
#include "runtime/data/TokenStream.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

/// One integer of any integer dtype. Unsigned 32-bit values fit; there are no unsigned 64-bit ones.
int64_t integerAt(const std::byte *values, DType dtype, uint64_t index) noexcept {
  const auto load = [&]<typename T>(T value) {
    std::memcpy(&value, values + index * sizeof(T), sizeof(T));
    return int64_t(value);
  };
  switch (dtype) {
  case DType::Bool:
  case DType::U8:
    return load(uint8_t());
  case DType::U16:
    return load(uint16_t());
  case DType::U32:
    return load(uint32_t());
  case DType::I32:
    return load(int32_t());
  default:
    return load(int64_t());
  }
}

/// Tensors of different inputs must tell of the same samples.
uint64_t commonSamples(const std::vector<InputSpec> &inputs, const std::vector<std::unique_ptr<Column>> &columns,
                       bool tokens, size_t count) {
  uint64_t samples = columns.empty() ? 0 : columns[0]->samples();
  for (size_t i = 1; i < count; ++i) {
    const bool differ = tokens ? inputs[i].sampleShape != inputs[0].sampleShape : columns[i]->samples() != samples;
    if (differ)
      throw Error("the data has " + std::to_string(samples) + " samples of input " + inputs[0].name + " and " +
                  std::to_string(columns[i]->samples()) + " of " + inputs[i].name + ", but a sample needs one of each");
    samples = std::min(samples, columns[i]->samples());
  }
  return samples;
}

} // namespace

Dataset::Dataset(std::vector<InputSpec> inputs, const std::vector<std::string> &paths, Order order, Sizes sizes)
    : inputs_(std::move(inputs)), order_(order), sizes_(std::move(sizes)) {
  if (inputs_.empty())
    return; // the plan computes from its variables alone
  if (paths.empty())
    throw Error("no data file was given; give one with --data");
  const bool tokens = isTokenFile(paths[0]);
  for (const std::string &path : paths)
    if (isTokenFile(path) != tokens)
      throw Error(paths[0] + " and " + path + " cannot form one stream: one holds tokens, the other tensors");
  if (tokens)
    stream_.emplace(paths);
  else
    for (const std::string &path : paths)
      files_.emplace_back(path);
  for (const InputSpec &input : inputs_)
    columns_.push_back(tokens ? makeTokenColumn(input, *stream_) : makeTensorColumn(input, files_));
  samples_ = commonSamples(inputs_, columns_, tokens, inputsOfSize());
  if (!tokens && !sizes_.each.empty())
    lengths_ = sampleLengths(files_, inputs_, sizes_);
  if (samples_ == 0)
    throw Error(paths[0] + (paths.size() > 1 ? " and the rest hold" : " holds") + " not a single sample" +
                (tokens ? " of " + std::to_string(inputs_[0].sampleElements()) + " tokens" : ""));
}

uint64_t Dataset::sampleAt(uint64_t position) const noexcept {
  const uint64_t epoch = position / samples_, within = position % samples_;
  return order_.shuffle ? shuffled(within, samples_, order_.seed, epoch) : within;
}

uint64_t Dataset::sizeFor(uint64_t position, uint64_t count) const noexcept {
  if (sizes_.each.empty() || lengths_.empty()) // a stream is cut into samples of the largest
    return sizes_.each.empty() ? 0 : sizes_.each.back();
  uint64_t longest = 0;
  for (uint64_t i = 0; i < count; ++i)
    longest = std::max<uint64_t>(longest, lengths_[sampleAt(position + i)]);
  return *std::ranges::lower_bound(sizes_.each, longest); // sampleLengths refuses longer ones
}

std::set<std::string> Dataset::unread() const {
  std::set<std::string> names;
  for (const SafetensorsFile &file : files_)
    for (const auto &[name, tensor] : file.tensors())
      names.insert(name);
  for (const InputSpec &input : inputs_)
    names.erase(input.name);
  return names;
}

uint64_t Dataset::digest() const {
  uint64_t digest = stream_ ? stream_->digest() : 0;
  for (const SafetensorsFile &file : files_)
    digest = fileDigest(file.file(), digest);
  return digest;
}

Status Dataset::read(uint32_t input, uint64_t position, uint64_t count, std::byte *target) const noexcept {
  const InputSpec &spec = inputs_[input];
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t sample = sampleAt(position + i);
    std::byte *place = target + i * spec.sampleBytes();
    if (Status status = columns_[input]->read(sample, place); !status.ok())
      return status;
    if (Status status = checkValues(spec, sample, place); !status.ok())
      return status;
  }
  return Status::success();
}

void Dataset::check(uint64_t position, uint64_t count, uint64_t mostBytes) const {
  uint64_t sampleBytes = 0, largest = 0;
  const size_t inputs = inputsOfSize(); // of the largest size, which has what the others have
  for (size_t i = 0; i < inputs; ++i) {
    sampleBytes += inputs_[i].sampleBytes();
    largest = std::max(largest, inputs_[i].sampleBytes());
  }
  if (sampleBytes == 0)
    return;
  std::vector<std::byte> sample(largest);
  const uint64_t looked = std::min({count, samples_, mostBytes / sampleBytes});
  for (uint64_t i = 0; i < looked; ++i)
    for (uint32_t input = 0; input < inputs; ++input)
      if (const Status status = read(input, position + i, 1, sample.data()); !status.ok())
        throw Error(status.message());
}

Status Dataset::checkValues(const InputSpec &input, uint64_t sample, const std::byte *values) const noexcept {
  if (input.limit == 0)
    return Status::success();
  for (uint64_t i = 0; i < input.sampleElements(); ++i) {
    const int64_t value = integerAt(values, input.dtype, i);
    if (value >= 0 && uint64_t(value) < input.limit)
      continue;
    if (input.ignored && value == *input.ignored)
      continue;
    std::array<char, 48> ignored{};
    if (input.ignored)
      std::snprintf(ignored.data(), ignored.size(), ", or %lld, which is ignored",
                    static_cast<long long>(*input.ignored));
    return Status::failure(
        "the data's sample %llu has value %lld at element %llu of input %s, but values there must be "
        "from 0 to %llu%s; prepare the data with the model's own tokenizer",
        static_cast<unsigned long long>(sample), static_cast<long long>(value), static_cast<unsigned long long>(i),
        input.name.c_str(), static_cast<unsigned long long>(input.limit - 1), ignored.data());
  }
  return Status::success();
}

} // namespace ds::runtime
