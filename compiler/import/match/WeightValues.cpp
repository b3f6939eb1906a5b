//===- WeightValues.cpp - values of initializers beside those of weights ------===//
#include "compiler/import/match/WeightValues.h"

#include "compiler/import/Roles.h"

#include "compiler/import/Types.h"
#include "core/Crc32c.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace ds::import {

WeightValues::WeightValues(const ScannedModel &model, WeightFiles &files)
    : model_(model), files_(files), tensors_(files.safetensors()) {
  const auto &initializers = model.proto.graph().initializer();
  for (int i = 0; i < initializers.size(); ++i)
    initializers_[initializers[i].name()] = i;
}

const onnx::TensorProto &WeightValues::protoOf(const std::string &initializer) const {
  return model_.proto.graph().initializer(initializers_.at(initializer));
}

bool WeightValues::isFloat(const std::string &initializer) const {
  if (!initializers_.count(initializer))
    return false;
  const std::optional<DType> dtype = dtypeFromOnnx(protoOf(initializer).data_type());
  return dtype && ds::isFloat(*dtype);
}

Shape WeightValues::shapeOf(const std::string &initializer) const {
  const onnx::TensorProto &tensor = protoOf(initializer);
  return {tensor.dims().begin(), tensor.dims().end()};
}

void WeightValues::addName(const std::string &name, const std::string &tensor) {
  files_.addName(name, tensor);
  tensors_[name] = tensors_.at(tensor);
}

std::optional<DType> WeightValues::typeOf(const std::string &tensor) const {
  const auto found = tensors_.find(tensor);
  return found == tensors_.end() ? std::nullopt : dtypeFromOnnx(found->second.first);
}

const Elements &WeightValues::read(const std::string &initializer) {
  if (held_ == initializer)
    return elements_;
  const int index = initializers_.at(initializer);
  const onnx::TensorProto &tensor = protoOf(initializer);
  elements_ = {}; // before the next is there
  elements_.dtype = *dtypeFromOnnx(tensor.data_type());
  elements_.shape = shapeOf(initializer);
  elements_.bytes = files_.read(
      files_.locate(tensor, model_.data[size_t(index)], elements_.dtype, "initializer '" + initializer + "'"),
      elements_.dtype);
  held_ = initializer;
  return elements_;
}

Elements WeightValues::readTensor(const std::string &tensor) {
  const DType dtype = *typeOf(tensor);
  const Shape &shape = tensors_.at(tensor).second;
  return {dtype, shape, files_.read(files_.locateInSafetensors(tensor, tensor, dtype, shape), dtype)};
}

/// The second adds up a hash of each element (the finalizer of MurmurHash3), so that it does not depend on their order.
WeightValues::Sums WeightValues::sumsOf(const Elements &elements) {
  Sums sums{.inOrder = crc32c(std::as_bytes(std::span(elements.bytes)))};
  const size_t width = size_t(byteSize(elements.dtype));
  for (size_t at = 0; at + width <= elements.bytes.size(); at += width) {
    uint64_t bits = 0;
    std::memcpy(&bits, &elements.bytes[at], width);
    bits = (bits ^ (bits >> 33)) * 0xff51afd7ed558ccdULL;
    bits = (bits ^ (bits >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    sums.anyOrder += bits ^ (bits >> 33);
  }
  return sums;
}

const WeightValues::Sums &WeightValues::sumsOfInitializer(const std::string &initializer) {
  const auto [sums, isNew] = sums_.try_emplace(initializer);
  if (isNew)
    sums->second = sumsOf(read(initializer));
  return sums->second;
}

const WeightValues::Sums &WeightValues::sumsOfTensor(const std::string &tensor) {
  const auto [sums, isNew] = tensorSums_.try_emplace(tensor);
  if (isNew)
    sums->second = sumsOf(readTensor(tensor));
  return sums->second;
}

std::optional<Match> WeightValues::match(const std::string &initializer, const std::string &tensor, bool moved) {
  const std::optional<DType> dtype = typeOf(tensor);
  if (!dtype || dtype != dtypeFromOnnx(protoOf(initializer).data_type()))
    return std::nullopt;
  const Shape shape = shapeOf(initializer), &other = tensors_.at(tensor).second;
  bool mayMatch = !moved && mayBeComputed(shape, other);
  if (!mayMatch && elementCount(shape) == elementCount(other)) {
    const Sums &ours = sumsOfInitializer(initializer), &theirs = sumsOfTensor(tensor);
    mayMatch = ours.inOrder == theirs.inOrder || (mayBeTransposed(shape, other) && ours.anyOrder == theirs.anyOrder);
  }
  std::optional<Match> match = mayMatch ? compare(read(initializer), readTensor(tensor), tensor) : std::nullopt;
  if (match && moved && (match->form == Form::PlusOne || match->form == Form::Rows))
    return std::nullopt;
  return match;
}

bool WeightValues::areEqual(const std::string &a, const std::string &b) {
  if (!typeOf(a) || tensors_.at(a) != tensors_.at(b) || sumsOfTensor(a).inOrder != sumsOfTensor(b).inOrder)
    return false;
  return readTensor(a).bytes == readTensor(b).bytes;
}

bool WeightValues::isZeros(const std::string &tensor) {
  return std::ranges::all_of(readTensor(tensor).bytes, [](char byte) { return byte == 0; });
}

bool WeightValues::isSines(const std::string &tensor) {
  const Elements elements = readTensor(tensor);
  std::vector<float> values(elements.dtype == DType::F32 ? elements.bytes.size() / sizeof(float) : 0);
  if (!values.empty())
    std::memcpy(values.data(), elements.bytes.data(), values.size() * sizeof(float));
  return isTableOfSines(elements.shape, values);
}

} // namespace ds::import
