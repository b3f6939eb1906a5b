//===- TensorColumn.cpp - samples that are rows of a tensor ---------------===//
#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "core/Status.h"
#include "runtime/data/Column.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/Widening.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

class TensorColumn final : public Column {
public:
  explicit TensorColumn(const InputSpec &input) : input_(input), lastThatVaries_(lastThatVaries(input)) {}

  void append(const SafetensorsFile &file, const SafetensorsFile::Tensor &tensor) {
    const uint64_t elementBytes = safetensorsElementBytes(tensor.dtype);
    parts_.push_back({&file.file(), tensor.offset, elementBytes, widening(tensor.dtype, input_.dtype), samples_,
                      uint64_t(tensor.shape[0]), Shape(tensor.shape.begin() + 1, tensor.shape.end())});
    samples_ += uint64_t(tensor.shape[0]);
  }

  uint64_t samples() const override { return samples_; }

  Status read(uint64_t sample, std::byte *target) const noexcept override {
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), sample,
                                        [](uint64_t number, const Part &part) { return number < part.first; });
    const Part &part = *(after - 1);
    const uint64_t offset =
        part.offset + (sample - part.first) * uint64_t(elementCount(part.sampleShape)) * part.elementBytes;
    return readDimension(part, 0, offset, target);
  }

private:
  struct Part {
    const ReadOnlyFile *file;
    uint64_t offset;       // of the tensor's data in the file
    uint64_t elementBytes; // in the file
    WidenFunction widen;
    uint64_t first; // sample that it begins with
    uint64_t samples;
    Shape sampleShape; // in the file
  };

  /// Of a sample, all from dimension `d` on at one index of those before it: from `offset` of the file.
  Status readDimension(const Part &part, size_t d, uint64_t offset, std::byte *target) const noexcept {
    const uint64_t fileStride = elementsFrom(part.sampleShape, d + 1), stride = elementsFrom(input_.sampleShape, d + 1);
    if (d >= lastThatVaries_) {
      const uint64_t wanted = elementsFrom(input_.sampleShape, d);
      const uint64_t there = std::min(wanted, elementsFrom(part.sampleShape, d));
      if (Status status = readElements(part, there, offset, target); !status.ok())
        return status;
      pad(target + there * elementBytes(), wanted - there);
      return Status::success();
    }
    for (int64_t i = 0; i < input_.sampleShape[d]; ++i, target += stride * elementBytes())
      if (i >= part.sampleShape[d])
        pad(target, stride);
      else if (Status status =
                   readDimension(part, d + 1, offset + uint64_t(i) * fileStride * part.elementBytes, target);
               !status.ok())
        return status;
    return Status::success();
  }

  static uint64_t elementsFrom(const Shape &shape, size_t d) noexcept {
    uint64_t elements = 1;
    for (; d < shape.size(); ++d)
      elements *= uint64_t(shape[d]);
    return elements;
  }

  uint64_t elementBytes() const noexcept { return uint64_t(byteSize(input_.dtype)); }

  /// Only integers have a value that is ignored, and are of little-endian bytes that continue its sign.
  void pad(std::byte *target, uint64_t elements) const noexcept {
    const int64_t value = input_.ignored.value_or(0);
    for (uint64_t i = 0; i < elements; ++i)
      std::memcpy(target + i * elementBytes(), &value, elementBytes());
  }

  Status readElements(const Part &part, uint64_t elements, uint64_t offset, std::byte *target) const noexcept {
    std::array<std::byte, 16384> buffer;
    const uint64_t most = buffer.size() / part.elementBytes;
    for (uint64_t done = 0; done < elements; done += most) {
      const uint64_t count = std::min(most, elements - done), bytes = count * part.elementBytes;
      if (Status status = part.file->tryRead(offset, std::span(buffer).first(bytes)); !status.ok())
        return status;
      part.widen(buffer.data(), target + done * uint64_t(byteSize(input_.dtype)), count);
      offset += bytes;
    }
    return Status::success();
  }

  static size_t lastThatVaries(const InputSpec &input) {
    size_t last = 0;
    for (size_t d = 0; d < input.varies.size(); ++d)
      last = input.varies[d] ? d : last;
    return last;
  }

  const InputSpec &input_;
  const size_t lastThatVaries_;
  std::vector<Part> parts_;
  uint64_t samples_ = 0;
};

std::string namesIn(const SafetensorsFile &file) {
  std::string names;
  int count = 0;
  for (const auto &[name, tensor] : file.tensors()) {
    if (++count > 5)
      return names + ", ...";
    names += (count > 1 ? ", " : "") + name;
  }
  return names.empty() ? "nothing" : names;
}

/// Whether the shape of a sample in a file is the input's, where that does not vary.
bool fits(const InputSpec &input, const Shape &shape) {
  bool fits = shape.size() == input.sampleShape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d)
    fits = shape[d] == input.sampleShape[d] || (d < input.varies.size() && input.varies[d]);
  return fits;
}

void checkTensor(const InputSpec &input, const SafetensorsFile &file, const SafetensorsFile::Tensor &tensor) {
  const Shape rest(tensor.shape.begin() + (tensor.shape.empty() ? 0 : 1), tensor.shape.end());
  if (tensor.shape.empty() || !fits(input, rest))
    throw Error(file.path() + ": tensor " + input.name + " has shape " + toString(tensor.shape) +
                ", but the plan wants [samples" + (input.sampleShape.empty() ? "" : ", ") +
                toString(input.sampleShape).substr(1) + "; prepare the data for this plan");
  if (widening(tensor.dtype, input.dtype) == nullptr)
    throw Error(file.path() + ": tensor " + input.name + " is " + tensor.dtype + ", which does not convert to " +
                std::string(name(input.dtype)) + " without loss; write it as " + std::string(name(input.dtype)));
}

} // namespace

std::unique_ptr<Column> makeTensorColumn(const InputSpec &input, const std::vector<SafetensorsFile> &files) {
  auto column = std::make_unique<TensorColumn>(input);
  for (const SafetensorsFile &file : files) {
    const SafetensorsFile::Tensor *tensor = file.find(input.name);
    if (tensor == nullptr)
      throw Error(file.path() + " has no tensor " + input.name + ", which the plan reads; it has " + namesIn(file));
    checkTensor(input, file, *tensor);
    column->append(file, *tensor);
  }
  return column;
}

} // namespace ds::runtime
