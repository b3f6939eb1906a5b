//===- Widening.cpp - elements of files as elements of inputs -------------===//
#include "runtime/data/Widening.h"
#include "core/DType.h"
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "runtime/data/SafetensorsFile.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace ds::runtime {
namespace {

// Element types of files that C++ 20 has no names for.
struct Boolean {
  uint8_t byte;
};

template <typename Source, typename Target> constexpr bool isLossless() {
  if constexpr (std::is_same_v<Source, Target>)
    return true;
  else if constexpr (std::is_same_v<Source, Boolean> || std::is_same_v<Target, Boolean>)
    return false;
  else if constexpr (std::is_same_v<Source, Float16> || std::is_same_v<Source, BFloat16>)
    return std::is_floating_point_v<Target>;
  else if constexpr (std::is_same_v<Target, BFloat16> || std::is_same_v<Target, Float16>)
    return false;
  else // digits: value bits of an integer, mantissa bits of a float
    return std::numeric_limits<Target>::digits >= std::numeric_limits<Source>::digits &&
           (std::is_signed_v<Target> || !std::is_signed_v<Source>) &&
           (!std::is_floating_point_v<Source> || std::is_floating_point_v<Target>);
}

template <typename Source, typename Target>
void convert(const std::byte *source, std::byte *target, size_t count) noexcept {
  if constexpr (std::is_same_v<Source, Target>) {
    std::memcpy(target, source, count * sizeof(Source));
  } else {
    for (size_t i = 0; i < count; ++i) {
      Source element;
      std::memcpy(&element, source + i * sizeof(Source), sizeof(Source));
      Target wide;
      if constexpr (std::is_class_v<Source>)
        wide = Target(float(element));
      else
        wide = static_cast<Target>(element); // NOLINT(bugprone-signed-char-misuse): int8 is a number here
      std::memcpy(target + i * sizeof(Target), &wide, sizeof(Target));
    }
  }
}

template <typename Source, typename Target> WidenFunction functionFor() {
  if constexpr (isLossless<Source, Target>())
    return convert<Source, Target>;
  else
    return nullptr;
}

template <typename Source> WidenFunction functionTo(DType target) {
  switch (target) {
  case DType::Bool:
    return functionFor<Source, Boolean>();
  case DType::U8:
    return functionFor<Source, uint8_t>();
  case DType::U16:
    return functionFor<Source, uint16_t>();
  case DType::U32:
    return functionFor<Source, uint32_t>();
  case DType::I32:
    return functionFor<Source, int32_t>();
  case DType::I64:
    return functionFor<Source, int64_t>();
  case DType::F32:
    return functionFor<Source, float>();
  case DType::F64:
    return functionFor<Source, double>();
  case DType::BF16:
    return functionFor<Source, BFloat16>();
  case DType::F16:
    return functionFor<Source, Float16>();
  }
  return nullptr;
}

struct NamedSource {
  const char *name;
  WidenFunction (*functionTo)(DType);
};
constexpr NamedSource sources[] = {
    {"BOOL", functionTo<Boolean>}, {"U8", functionTo<uint8_t>},    {"I8", functionTo<int8_t>},
    {"U16", functionTo<uint16_t>}, {"I16", functionTo<int16_t>},   {"U32", functionTo<uint32_t>},
    {"I32", functionTo<int32_t>},  {"U64", functionTo<uint64_t>},  {"I64", functionTo<int64_t>},
    {"F16", functionTo<Float16>},  {"BF16", functionTo<BFloat16>}, {"F32", functionTo<float>},
    {"F64", functionTo<double>}};

} // namespace

WidenFunction widening(const std::string &safetensorsDType, DType target) {
  for (const NamedSource &source : sources)
    if (safetensorsDType == source.name)
      return source.functionTo(target);
  return nullptr;
}

/// Floats of at most 32 bits, rounded to nearest even.
template <typename Target> static WidenFunction roundingTo(const std::string &safetensorsDType) {
  return safetensorsDType == "F32"    ? convert<float, Target>
         : safetensorsDType == "BF16" ? convert<BFloat16, Target>
         : safetensorsDType == "F16"  ? convert<Float16, Target>
                                      : nullptr;
}

WidenFunction weightWidening(const std::string &safetensorsDType, DType target) {
  if (isNarrowFloat(target))
    return target == DType::BF16 ? roundingTo<BFloat16>(safetensorsDType) : roundingTo<Float16>(safetensorsDType);
  const bool isFloatInFile = safetensorsDType.starts_with('F') || safetensorsDType == "BF16";
  const bool isSameSize = int64_t(safetensorsElementBytes(safetensorsDType)) == byteSize(target);
  return isFloatInFile == isFloat(target) && (isFloatInFile || isSameSize) ? widening(safetensorsDType, target)
                                                                           : nullptr;
}

std::string exportedType(const std::string &safetensorsDType) {
  return safetensorsDType == "BF16" || safetensorsDType == "F16" ? "F32" : safetensorsDType;
}

std::span<const std::byte> asExported(const std::string &safetensorsDType, std::span<const std::byte> bytes,
                                      std::vector<std::byte> &wide) {
  if (exportedType(safetensorsDType) == safetensorsDType)
    return bytes;
  const uint64_t count = bytes.size() / safetensorsElementBytes(safetensorsDType);
  wide.resize(count * sizeof(float));
  widening(safetensorsDType, DType::F32)(bytes.data(), wide.data(), count);
  return wide;
}

} // namespace ds::runtime
