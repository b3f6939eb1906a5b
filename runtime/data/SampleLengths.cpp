//===- SampleLengths.cpp - how long each sample is -------------------------===//
#include "runtime/data/SampleLengths.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "core/Status.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/Widening.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

/// Rows of a tensor of integers or bools, as int64.
class IntegerRows {
public:
  IntegerRows(const SafetensorsFile &file, const std::string &name, const SafetensorsFile::Tensor &tensor)
      : file_(file), tensor_(tensor), isBool_(tensor.dtype == "BOOL"),
        widen_(widening(tensor.dtype, isBool_ ? DType::Bool : DType::I64)),
        width_(uint64_t(elementCount(Shape(tensor.shape.begin() + 1, tensor.shape.end())))), row_(width_) {
    if (widen_ == nullptr)
      throw Error(file.path() + ": tensor " + name + " is " + tensor.dtype +
                  ", but says how long samples are; write it as int64");
    bytes_.resize(width_ * safetensorsElementBytes(tensor.dtype));
    wide_.resize(width_ * sizeof(int64_t));
  }

  std::span<const int64_t> read(uint64_t sample) {
    if (const Status status = file_.file().tryRead(tensor_.offset + sample * bytes_.size(), bytes_); !status.ok())
      throw Error(status.message());
    widen_(bytes_.data(), wide_.data(), width_);
    for (uint64_t i = 0; i < width_; ++i)
      if (isBool_)
        row_[i] = int64_t(wide_[i]);
      else
        std::memcpy(&row_[i], wide_.data() + i * sizeof(int64_t), sizeof(int64_t));
    return row_;
  }

private:
  const SafetensorsFile &file_;
  const SafetensorsFile::Tensor &tensor_;
  const bool isBool_;
  const WidenFunction widen_;
  const uint64_t width_; // elements of a row
  std::vector<std::byte> bytes_, wide_;
  std::vector<int64_t> row_;
};

/// Of a file's tensors, along the dimension that has sizes.
uint64_t widthOf(const SafetensorsFile &file, const std::vector<InputSpec> &inputs, const Sizes &sizes) {
  for (const InputSpec &input : inputs) {
    const SafetensorsFile::Tensor *tensor = file.find(input.name);
    for (size_t d = 0; tensor != nullptr && d < input.varies.size(); ++d)
      if (input.varies[d] && uint64_t(input.sampleShape[d]) == sizes.each.back())
        return uint64_t(tensor->shape[d + 1]);
  }
  return sizes.each.back(); // no input has it as it is
}

void requireShape(const SafetensorsFile &file, const std::string &name, const SafetensorsFile::Tensor &tensor,
                  size_t rank, uint64_t samples) {
  if (tensor.shape.size() != rank || uint64_t(tensor.shape[0]) != samples)
    throw Error(file.path() + ": tensor " + name + " has shape " + toString(tensor.shape) +
                ", but says how long samples are, so it must be [" + std::to_string(samples) +
                (rank > 1 ? ", tokens]" : "]"));
}

uint64_t behindLast(std::span<const int64_t> mask) {
  uint64_t length = mask.size();
  while (length > 0 && mask[length - 1] == 0)
    --length;
  return length;
}

} // namespace

std::vector<uint32_t> sampleLengths(const std::vector<SafetensorsFile> &files, const std::vector<InputSpec> &inputs,
                                    const Sizes &sizes) {
  std::vector<uint32_t> all;
  for (const SafetensorsFile &file : files) {
    const auto samples = uint64_t(file.find(inputs[0].name)->shape[0]);
    const uint64_t width = widthOf(file, inputs, sizes), first = all.size();
    const auto add = [&](uint64_t length) {
      const std::string sample = file.path() + ": sample " + std::to_string(all.size() - first) + " has " +
                                 sizes.dimension + " " + std::to_string(length) + ", but ";
      if (length > width)
        throw Error(sample + "its tensors have " + std::to_string(width));
      if (length > sizes.each.back())
        throw Error(sample + "the largest of the plan is " + std::to_string(sizes.each.back()) +
                    "; cut it, leave it out, or compile with that size, too");
      all.push_back(uint32_t(length));
    };
    if (const SafetensorsFile::Tensor *lengths = file.find("lengths")) {
      requireShape(file, "lengths", *lengths, 1, samples);
      IntegerRows rows(file, "lengths", *lengths);
      for (uint64_t sample = 0; sample < samples; ++sample)
        add(uint64_t(std::max<int64_t>(rows.read(sample)[0], 0)));
    } else if (const SafetensorsFile::Tensor *mask = file.find("attention_mask")) {
      requireShape(file, "attention_mask", *mask, 2, samples);
      IntegerRows rows(file, "attention_mask", *mask);
      for (uint64_t sample = 0; sample < samples; ++sample)
        add(behindLast(rows.read(sample)));
    } else {
      for (uint64_t sample = 0; sample < samples; ++sample)
        add(width);
    }
  }
  return all;
}

} // namespace ds::runtime
