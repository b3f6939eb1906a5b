//===- PtxFuzzer.cpp - any text as PTX, and what is read is run ------------===//
#include "core/Error.h"
#include "kernels/ptx/Buffers.h"
#include "kernels/ptx/Ptx.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace {

/// Two blocks of a few threads, with a parameter in turn the address of a buffer and a small number.
void run(const ds::ptx::Module &module, const ds::ptx::Entry &entry) {
  std::array<std::byte, 256> bytes;
  for (size_t place = 0; place < bytes.size(); ++place)
    bytes[place] = std::byte(place + 1);
  ds::ptx::Buffers memory;
  memory.add(0x1000, bytes);
  std::vector<uint64_t> parameters;
  for (size_t place = 0; place < entry.parameterBytes.size(); ++place)
    parameters.push_back(place % 2 == 0 ? 0x1000 : place);
  const uint32_t threads = entry.exactThreads != 0 ? entry.exactThreads : std::min<uint32_t>(3, entry.mostThreads);
  try {
    (void)ds::ptx::run(module, entry.name, {2, threads}, parameters, memory,
                       {.instructionsOfThread = 500, .instructions = 5000});
  } catch (const ds::Error &) {
  }
}

} // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  try {
    const ds::ptx::Module module = ds::ptx::parse({reinterpret_cast<const char *>(data), size});
    for (const ds::ptx::Entry &entry : module.entries)
      run(module, entry);
  } catch (const ds::Error &) {
  }
  return 0;
}
