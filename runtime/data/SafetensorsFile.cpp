//===- SafetensorsFile.cpp - reads safetensors files ----------------------===//
#include "runtime/data/SafetensorsFile.h"

#include "core/Error.h"
#include "core/Scripts.h"
#include "runtime/data/ReadOnlyFile.h"
#include "runtime/data/SafetensorsHeader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr uint64_t maxHeaderBytes = 100'000'000;

std::string readHeader(const ReadOnlyFile &file) {
  if (file.bytes() < 8)
    throw Error("it has " + std::to_string(file.bytes()) + " bytes, too few for a safetensors file");
  std::array<std::byte, 8> lengthBytes;
  file.read(0, lengthBytes);
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;)
    length = length << 8 | uint64_t(lengthBytes[i]);
  const bool isText = std::ranges::all_of(lengthBytes, [](std::byte one) {
    const auto letter = std::to_integer<unsigned char>(one);
    return letter == '\n' || letter == '\r' || letter == '\t' || (letter >= ' ' && letter < 127);
  });
  if (length > maxHeaderBytes && isText)
    throw Error("it is text and no safetensors file; `" + scriptCommand("prepare_data") + "` makes data of text");
  if (length > maxHeaderBytes || length > file.bytes() - 8)
    throw Error("its header claims " + std::to_string(length) + " bytes, more than the 100 MB allowed or the " +
                std::to_string(file.bytes() - 8) + " there are: truncated, or no safetensors file");
  std::string json(length, '\0');
  file.read(8, std::as_writable_bytes(std::span(json)));
  return json;
}

/// The tensors, in the order of their data, follow each other from the first byte to the last.
void checkCover(const SafetensorsHeader &header, uint64_t dataBytes) {
  std::vector<std::pair<const std::string, SafetensorsFile::Tensor> const *> order;
  order.reserve(header.tensors.size());
  for (const auto &entry : header.tensors)
    order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    return std::pair(a->second.offset, a->second.bytes) < std::pair(b->second.offset, b->second.bytes);
  });
  uint64_t next = 0;
  for (const auto *entry : order) {
    if (entry->second.offset != next)
      throw Error(entry->first + ": its data begins at " + std::to_string(entry->second.offset) + ", " +
                  (entry->second.offset < next ? "within the tensor before it" : "after a hole") + " that ends at " +
                  std::to_string(next));
    next += entry->second.bytes;
  }
  if (next != dataBytes)
    throw Error("its tensors need " + std::to_string(next) + " bytes of data, but it has " + std::to_string(dataBytes) +
                (next > dataBytes ? ": truncated" : ""));
}

} // namespace

uint64_t safetensorsElementBytes(const std::string &dtype) {
  static const std::map<std::string, uint64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2},
      {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4},     {"U64", 8},     {"I64", 8}, {"F64", 8}};
  const auto it = sizes.find(dtype);
  return it == sizes.end() ? 0 : it->second;
}

SafetensorsFile::SafetensorsFile(const std::string &path) : file_(path) {
  try {
    const std::string json = readHeader(file_);
    SafetensorsHeader header = parseSafetensorsHeader(json);
    checkCover(header, file_.bytes() - 8 - json.size());
    for (auto &[name, tensor] : header.tensors)
      tensor.offset += 8 + json.size();
    tensors_ = std::move(header.tensors);
    metadata_ = std::move(header.metadata);
  } catch (const Error &error) {
    throw Error(path + ": " + error.what());
  }
}

const SafetensorsFile::Tensor *SafetensorsFile::find(const std::string &name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

} // namespace ds::runtime
