//===- Weights.cpp - where the elements of initializers lie -------------------===//
#include "compiler/import/Weights.h"

#include "compiler/import/NarrowFloat.h"
#include "compiler/import/Types.h"
#include "compiler/import/files/Failure.h"

#include <charconv>
#include <cstring>

namespace ds::import {
namespace {

Shape shapeOf(const onnx::TensorProto &tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

template <typename To, typename From>
std::vector<char> convertElements(const google::protobuf::RepeatedField<From> &from) {
  std::vector<char> bytes(size_t(from.size()) * sizeof(To));
  for (int i = 0; i < from.size(); ++i) {
    const To value = To(from.Get(i));
    std::memcpy(bytes.data() + size_t(i) * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

int filledFields(const onnx::TensorProto &tensor) {
  return (tensor.float_data_size() > 0) + (tensor.int32_data_size() > 0) + (tensor.string_data_size() > 0) +
         (tensor.int64_data_size() > 0) + tensor.has_raw_data() + (tensor.double_data_size() > 0) +
         (tensor.uint64_data_size() > 0);
}

std::vector<char> typedElements(const onnx::TensorProto &tensor, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return convertElements<float>(tensor.float_data());
  case DType::F64:
    return convertElements<double>(tensor.double_data());
  case DType::I64:
    return convertElements<int64_t>(tensor.int64_data());
  case DType::I32:
    return convertElements<int32_t>(tensor.int32_data());
  case DType::U32:
    return convertElements<uint32_t>(tensor.uint64_data());
  case DType::U16:
  case DType::F16:
  case DType::BF16:
    return convertElements<uint16_t>(tensor.int32_data()); // of floats their bits
  default:
    return convertElements<uint8_t>(tensor.int32_data());
  }
}

[[noreturn]] void wrongSize(const std::string &what, uint64_t has, uint64_t needs, const Shape &shape, DType dtype) {
  throw Failure(what + " has " + std::to_string(has) + " bytes of data, but " + std::string(name(dtype)) + " " +
                toString(shape) + " needs " + std::to_string(needs));
}

uint64_t decimal(const std::string &text, const std::string &what) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw Failure(what + " is '" + text + "', not a decimal number of bytes");
  return value;
}

} // namespace

std::vector<char> literalElements(const onnx::TensorProto &tensor, DType dtype, const std::string &what) {
  const Shape shape = shapeOf(tensor);
  const auto needs = uint64_t(checkedElements(shape, dtype, what) * byteSize(dtype));
  if (filledFields(tensor) > 1)
    throw Failure(what + " has its data in more than one field");
  std::vector<char> bytes = tensor.has_raw_data()
                                ? std::vector<char>(tensor.raw_data().begin(), tensor.raw_data().end())
                                : typedElements(tensor, dtype);
  if (bytes.size() != needs)
    wrongSize(what, bytes.size(), needs, shape, dtype);
  if (dtype == DType::Bool)
    for (char &byte : bytes)
      byte = byte != 0;
  return bytes;
}

Constant literalConstant(const onnx::TensorProto &tensor, const std::string &what, FoldBudget &budget) {
  const std::optional<DType> dtype = knownTypeFromOnnx(tensor.data_type());
  if (!dtype)
    throw Failure(what + " is " + onnxTypeName(tensor.data_type()) +
                  "; float32, float64, float16, bfloat16, int32, int64, uint8, uint16, uint32 and bool are supported");
  if (tensor.data_location() == 1)
    throw Failure(what + " has external data; only initializers of the model may");
  const Shape shape = shapeOf(tensor);
  budget.charge(checkedElements(shape, *dtype, what));
  return Constant::dense(*dtype, shape, literalElements(tensor, *dtype, what));
}

WeightFiles::WeightFiles(std::filesystem::path modelPath, std::span<const char> modelBytes)
    : modelPath_(std::move(modelPath)), folder_(modelPath_.parent_path()), modelBytes_(modelBytes) {}

std::shared_ptr<InputFile> WeightFiles::external(const std::string &location) {
  std::shared_ptr<InputFile> &file = files_[location];
  if (!file)
    file = InputFile::openBeneath(folder_, location);
  return file;
}

TensorData WeightFiles::externalData(const onnx::TensorProto &tensor, uint64_t bytes, const std::string &what) {
  TensorData data;
  data.length = bytes;
  const std::string *location = nullptr;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = &entry.value();
    else if (entry.key() == "offset")
      data.offset = decimal(entry.value(), what + ": the offset of its external data");
    else if (entry.key() == "length")
      data.length = decimal(entry.value(), what + ": the length of its external data");
  }
  if (!location)
    throw Failure(what + " has external data without a location");
  data.path = *location;
  const uint64_t size = external(*location)->size();
  if (data.length > size || data.offset > size - data.length)
    throw Failure(what + " lies at bytes " + std::to_string(data.offset) + " to " + std::to_string(data.offset) +
                  " + " + std::to_string(data.length) + " of '" + *location + "', which has only " +
                  std::to_string(size));
  return data;
}

TensorData WeightFiles::locate(const onnx::TensorProto &tensor, const std::optional<InlineData> &inlined, DType dtype,
                               const std::string &what) {
  const Shape shape = shapeOf(tensor);
  const auto needs = uint64_t(checkedElements(shape, dtype, what) * byteSize(dtype));
  TensorData data;
  if (tensor.data_location() == 1) {
    if (filledFields(tensor) > 0 || inlined)
      throw Failure(what + " has its data both inside the model and outside");
    data = externalData(tensor, needs, what);
  } else if (inlined) {
    if (filledFields(tensor) > 0)
      throw Failure(what + " has its data in more than one field");
    if ((inlined->field == 4 && dtype != DType::F32) || (inlined->field == 10 && dtype != DType::F64))
      throw Failure(what + " has its data in a field of another type than " + std::string(name(dtype)));
    data = {modelPath_.filename().string(), inlined->offset, inlined->length, {}};
  } else {
    data.literal = literalElements(tensor, dtype, what);
    data.length = needs;
  }
  if (data.length != needs)
    wrongSize(what, data.length, needs, shape, dtype);
  return data;
}

/// Elements stored as floats of fewer bits.
static std::vector<char> widened(const std::vector<char> &stored, const std::string &from, DType to) {
  const DType narrow = from == "BF16" ? DType::BF16 : from == "F16" ? DType::F16 : DType::F32;
  const auto narrowBytes = size_t(byteSize(narrow)), wideBytes = size_t(byteSize(to));
  std::vector<char> wide(stored.size() / narrowBytes * wideBytes);
  for (size_t i = 0; i * narrowBytes < stored.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &stored[i * narrowBytes], narrowBytes);
    bits = convertBits(bits, narrow, to);
    std::memcpy(&wide[i * wideBytes], &bits, wideBytes);
  }
  return wide;
}

std::vector<char> WeightFiles::read(const TensorData &data, DType dtype) {
  if (data.path.empty())
    return data.literal;
  std::vector<char> bytes(data.length);
  if (data.path == modelPath_.filename().string() && !files_.count(data.path)) {
    const std::span<const char> range = modelBytes_.subspan(data.offset, data.length);
    std::copy(range.begin(), range.end(), bytes.begin());
  } else {
    files_.at(data.path)->read(data.offset, bytes);
  }
  return data.dtype.empty() ? bytes : widened(bytes, data.dtype, dtype);
}

} // namespace ds::import
