//===- FrameFuzzer.cpp - any bytes as what a connection brings -------------===//
//
// The first byte says in pieces of how many bytes the rest comes. However it is cut, the same frames come out, and each
// is told again by its own encoding.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/tcp/Frame.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

using namespace ds::runtime;

namespace {

struct Heard {
  std::vector<std::vector<std::byte>> frames; // encoded
  bool garbage;
  bool operator==(const Heard &) const = default;
};

Heard hear(std::span<const std::byte> bytes, size_t piece, size_t maxValue) {
  Heard heard{};
  FrameReader reader(maxValue);
  while (!bytes.empty()) {
    reader.add(bytes.first(std::min(piece, bytes.size())));
    bytes = bytes.subspan(std::min(piece, bytes.size()));
    while (const std::optional<Frame> frame = reader.next()) {
      if (frame->value.size() > maxValue || frame->key.size() > maxKeyBytes)
        std::abort();
      heard.frames.push_back(encode(*frame));
    }
  }
  heard.garbage = reader.garbage();
  return heard;
}

} // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  for (const size_t maxValue : {maxStrangerBytes, maxValueBytes}) {
    const Heard whole = hear(bytes, size, maxValue);
    if (whole != hear(bytes, size_t(data[0]) + 1, maxValue))
      std::abort();
    for (const std::vector<std::byte> &frame : whole.frames)
      if (hear(frame, 7, maxValue).frames != std::vector<std::vector<std::byte>>{frame})
        std::abort();
  }
  return 0;
}
