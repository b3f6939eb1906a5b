//===- Buffers.cpp - device memory as a list of buffers --------------------===//
#include "kernels/ptx/Buffers.h"

#include "core/Error.h"
#include "kernels/ptx/Sentence.h"

#include <cstring>

namespace ds::ptx {

void Buffers::add(uint64_t address, std::span<std::byte> bytes, bool writable) {
  if (address + bytes.size() < address)
    throw Error(sentence("a buffer of {} bytes at {} ends behind the last address", bytes.size(), Address{address}));
  for (const Buffer &other : buffers_)
    if (address < other.address + other.bytes.size() && other.address < address + bytes.size())
      throw Error(sentence("buffers at {} and {} overlap", Address{other.address}, Address{address}));
  buffers_.push_back({address, bytes, writable});
}

const Buffers::Buffer *Buffers::at(uint64_t address, size_t count) {
  if (last_ < buffers_.size() && buffers_[last_].holds(address, count))
    return &buffers_[last_];
  for (last_ = 0; last_ < buffers_.size(); ++last_)
    if (buffers_[last_].holds(address, count))
      return &buffers_[last_];
  return nullptr;
}

void Buffers::load(uint64_t address, std::span<std::byte> to) {
  const Buffer *buffer = at(address, to.size());
  if (buffer == nullptr)
    throw Error(sentence("reads {} bytes at {}, which lie outside of every buffer", to.size(), Address{address}));
  std::memcpy(to.data(), buffer->bytes.data() + (address - buffer->address), to.size());
}

void Buffers::store(uint64_t address, std::span<const std::byte> from) {
  const Buffer *buffer = at(address, from.size());
  if (buffer == nullptr)
    throw Error(sentence("writes {} bytes at {}, which lie outside of every buffer", from.size(), Address{address}));
  if (!buffer->writable)
    throw Error(sentence("writes {} bytes at {}, in a buffer that it may only read", from.size(), Address{address}));
  std::memcpy(buffer->bytes.data() + (address - buffer->address), from.data(), from.size());
}

} // namespace ds::ptx
