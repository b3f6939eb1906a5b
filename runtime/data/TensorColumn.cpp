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
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

class TensorColumn final : public Column {
public:
  explicit TensorColumn(const InputSpec &input) : input_(input) {}

  void append(const SafetensorsFile &file, const SafetensorsFile::Tensor &tensor) {
    const uint64_t elementBytes = safetensorsElementBytes(tensor.dtype);
    parts_.push_back({&file.file(), tensor.offset, elementBytes, widening(tensor.dtype, input_.dtype), samples_,
                      uint64_t(tensor.shape[0])});
    samples_ += uint64_t(tensor.shape[0]);
  }

  uint64_t samples() const override { return samples_; }

  Status read(uint64_t sample, std::byte *target) const noexcept override {
    const auto after = std::upper_bound(parts_.begin(), parts_.end(), sample,
                                        [](uint64_t number, const Part &part) { return number < part.first; });
    const Part &part = *(after - 1);
    const uint64_t elements = input_.sampleElements();
    uint64_t offset = part.offset + (sample - part.first) * elements * part.elementBytes;
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

private:
  struct Part {
    const ReadOnlyFile *file;
    uint64_t offset;       // of the tensor's data in the file
    uint64_t elementBytes; // in the file
    WidenFunction widen;
    uint64_t first; // sample that it begins with
    uint64_t samples;
  };
  const InputSpec &input_;
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

void checkTensor(const InputSpec &input, const SafetensorsFile &file, const SafetensorsFile::Tensor &tensor) {
  const Shape rest(tensor.shape.begin() + (tensor.shape.empty() ? 0 : 1), tensor.shape.end());
  if (tensor.shape.empty() || rest != input.sampleShape)
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
