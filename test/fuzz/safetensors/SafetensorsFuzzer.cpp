//===- SafetensorsFuzzer.cpp - any bytes as a safetensors header ----------===//
#include "core/Error.h"
#include "runtime/data/SafetensorsHeader.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    const auto header = ds::runtime::parseSafetensorsHeader({reinterpret_cast<const char *>(data), size});
    for (const auto &[name, tensor] : header.tensors)
      if (uint64_t(ds::elementCount(tensor.shape)) * ds::runtime::safetensorsElementBytes(tensor.dtype) != tensor.bytes)
        std::abort();
  } catch (const ds::Error &) {
  }
  return 0;
}
