//===- SafetensorsWriter.cpp - writes safetensors files -------------------===//
#include "runtime/data/SafetensorsWriter.h"

#include "core/AtomicFile.h"
#include "core/DType.h"
#include "core/Error.h"
#include "core/Json.h"
#include "core/Shape.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

const char *formatName(DType dtype) {
  switch (dtype) {
  case DType::Bool:
    return "BOOL";
  case DType::U8:
    return "U8";
  case DType::U16:
    return "U16";
  case DType::U32:
    return "U32";
  case DType::I32:
    return "I32";
  case DType::I64:
    return "I64";
  case DType::F32:
    return "F32";
  case DType::F64:
    return "F64";
  case DType::BF16:
    return "BF16";
  }
  return "?";
}

uint64_t tensorBytes(const TensorToWrite &tensor) {
  return uint64_t(elementCount(tensor.shape)) * uint64_t(byteSize(tensor.dtype));
}

std::string headerOf(const std::vector<TensorToWrite> &tensors, const std::map<std::string, std::string> &metadata) {
  Json header = Json::object();
  for (const auto &[key, value] : metadata)
    header["__metadata__"][key] = value;
  uint64_t offset = 0;
  for (const TensorToWrite &tensor : tensors) {
    const uint64_t end = offset + tensorBytes(tensor);
    header[tensor.name] = {
        {"dtype", formatName(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

} // namespace

void writeSafetensors(const std::string &path, std::vector<TensorToWrite> tensors,
                      const std::map<std::string, std::string> &metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
  const std::string header = headerOf(tensors, metadata);
  AtomicFile file(path);
  std::string length;
  for (int i = 0; i < 8; ++i)
    length.push_back(char(header.size() >> 8 * i & 0xFF));
  file.write(length);
  file.write(header);
  for (const TensorToWrite &tensor : tensors) {
    uint64_t written = 0;
    tensor.produce([&](std::span<const std::byte> bytes) {
      file.write(bytes);
      written += bytes.size();
    });
    if (written != tensorBytes(tensor))
      throw Error("cannot write " + path + ": " + tensor.name + " gave " + std::to_string(written) + " of " +
                  std::to_string(tensorBytes(tensor)) + " bytes");
  }
  file.commit();
}

} // namespace ds::runtime
