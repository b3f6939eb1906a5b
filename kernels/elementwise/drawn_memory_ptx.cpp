// kernels/elementwise/drawn_memory_ptx.cpp: what an emulated kernel reads and writes.
#include "kernels/elementwise/drawn_memory_ptx.h"

#include "core/Error.h"
#include "kernels/Numbers.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace ds::kernels {

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

float floatOf(DType type, uint32_t bits) {
  if (type == DType::Bool)
    return float(bits);
  if (!isNarrowFloat(type))
    return std::bit_cast<float>(bits);
  return withNarrowFloat(type, [&](auto half) {
    half.bits = uint16_t(bits);
    return float(half);
  });
}

namespace {

/// An element of an operand as its bytes, a bool or a float.
uint32_t drawn(DType type, size_t operand, int64_t element, uint64_t seed) {
  const uint64_t draw = mixed(mixed(seed + operand + 1) ^ uint64_t(element));
  if (type == DType::Bool)
    return draw & 1;
  const auto kind = uint32_t(draw % 64);
  float value = std::ldexp(float(int64_t(draw >> 32) - (int64_t(1) << 31)), -29); // [-4, 4)
  if (kind < 4)
    value = kind < 2 ? 0.0f : -0.0f;
  else if (kind >= 60)
    value *= 20; // where exp and its like reach their limits
  else if (kind < 8)
    value = kind == 4 ? INFINITY : kind == 5 ? -INFINITY : kind == 6 ? NAN : value * 1e38f;
  if (!isNarrowFloat(type))
    return std::bit_cast<uint32_t>(value);
  return withNarrowFloat(type, [&](auto zero) { return uint32_t(decltype(zero)(value).bits); });
}

} // namespace

DrawnMemory::DrawnMemory(const Invocation &call, size_t inputs, std::span<const uint64_t> alignments, uint64_t seed)
    : call_(call), inputs_(inputs), seed_(seed), written_(call.operands.size() - inputs) {
  for (size_t i = 0; i < alignments.size(); ++i) // no more than the alignment that the plan gives
    addresses_.push_back((uint64_t(i + 1) << 48) + (alignments[i] == 16 ? 0 : alignments[i]));
}

uint32_t DrawnMemory::input(size_t operand, int64_t element) const {
  return drawn(call_.operands[operand].dtype, operand, element, seed_);
}

void DrawnMemory::load(uint64_t address, std::span<std::byte> to) {
  const auto [operand, element, bytes] = placeOf(address, to.size());
  if (operand >= inputs_)
    throw Error("reads its own result");
  if (hasWritten_)
    throw Error("reads after its thread has written, and a result may be the memory of an input");
  for (size_t at = 0; at < to.size(); at += bytes) {
    const uint32_t value = input(operand, element + int64_t(at / bytes));
    std::memcpy(to.data() + at, &value, bytes);
  }
}

void DrawnMemory::store(uint64_t address, std::span<const std::byte> from) {
  const auto [operand, element, bytes] = placeOf(address, from.size());
  if (operand < inputs_)
    throw Error("writes input " + std::to_string(operand));
  hasWritten_ = true;
  for (size_t at = 0; at < from.size(); at += bytes) {
    uint32_t value = 0;
    std::memcpy(&value, from.data() + at, bytes);
    const int64_t place = element + int64_t(at / bytes);
    if (!written_[operand - inputs_].emplace(place, value).second)
      throw Error("writes element " + std::to_string(place) + " a second time");
  }
}

DrawnMemory::Place DrawnMemory::placeOf(uint64_t address, size_t bytes) const {
  const uint64_t operand = (address >> 48) - 1;
  if (operand >= addresses_.size())
    throw Error("leaves its operands");
  const auto &[dtype, shape] = call_.operands[operand];
  const uint64_t offset = address - addresses_[operand];
  const auto size = uint64_t(byteSize(dtype));
  if (address < addresses_[operand] || offset % size != 0 || bytes % size != 0 ||
      offset + bytes > uint64_t(elementCount(shape)) * size)
    throw Error("leaves operand " + std::to_string(operand));
  return {size_t(operand), int64_t(offset / size), size_t(size)};
}

} // namespace ds::kernels
