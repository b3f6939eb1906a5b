//===- Frame.cpp - what ranks and the store say to each other -------------===//
#include "runtime/comm/tcp/Frame.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

struct Header {
  uint32_t magic = 0x33545344; // "DST3"
  uint8_t kind = 0, unused = 0;
  uint16_t keyBytes = 0;
  uint64_t valueBytes = 0;
  uint64_t timeout = 0; // ms
};
static_assert(sizeof(Header) == 24);

bool sound(const Header &header, size_t maxValue) noexcept {
  return header.magic == Header{}.magic && header.kind >= uint8_t(FrameKind::Hello) &&
         header.kind <= uint8_t(FrameKind::Fail) && header.keyBytes <= maxKeyBytes && header.valueBytes <= maxValue &&
         header.timeout <= uint64_t(1) << 40;
}

} // namespace

std::vector<std::byte> encode(const Frame &frame) {
  const Header header{.kind = uint8_t(frame.kind),
                      .keyBytes = uint16_t(frame.key.size()),
                      .valueBytes = frame.value.size(),
                      .timeout = uint64_t(frame.timeout.count())};
  std::vector<std::byte> bytes(sizeof header + frame.key.size() + frame.value.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(frame.value.begin(), frame.value.end(),
            std::transform(frame.key.begin(), frame.key.end(), bytes.begin() + sizeof header,
                           [](char letter) { return std::byte(letter); }));
  return bytes;
}

void FrameReader::add(std::span<const std::byte> bytes) {
  received_.erase(received_.begin(), received_.begin() + ptrdiff_t(read_));
  read_ = 0;
  received_.insert(received_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameReader::next() {
  const auto left = std::span(received_).subspan(read_);
  if (left.empty())
    return std::nullopt;
  // Garbage is known by its first bytes, which may be fewer than a header's.
  const Header expected{};
  if (std::memcmp(left.data(), &expected.magic, std::min(left.size(), sizeof expected.magic)) != 0)
    garbage_ = true;
  if (garbage_ || left.size() < sizeof(Header))
    return std::nullopt;
  Header header;
  std::memcpy(&header, left.data(), sizeof header);
  if (!sound(header, maxValue_)) {
    garbage_ = true;
    return std::nullopt;
  }
  if (left.size() < sizeof header + header.keyBytes + header.valueBytes)
    return std::nullopt;
  const auto key = left.begin() + sizeof header, value = key + header.keyBytes;
  Frame frame{FrameKind(header.kind), {}, {}, std::chrono::milliseconds(header.timeout)};
  std::transform(key, value, std::back_inserter(frame.key), [](std::byte byte) { return char(byte); });
  const auto end = value + ptrdiff_t(header.valueBytes);
  frame.value.assign(value, end);
  read_ += size_t(end - left.begin());
  return frame;
}

} // namespace ds::runtime
