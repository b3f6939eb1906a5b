//===- SafetensorsWriter.cpp - writes safetensors files -------------------===//
#include "runtime/data/SafetensorsWriter.h"

#include "core/AtomicFile.h"
#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "core/WeightNames.h"
#include "runtime/data/SafetensorsFile.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

const char *safetensorsName(DType dtype) {
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
  case DType::F16:
    return "F16";
  }
  return "?";
}

namespace {

uint64_t tensorBytes(const TensorToWrite &tensor) {
  return uint64_t(elementCount(tensor.shape)) * safetensorsElementBytes(tensor.dtype.name);
}

std::string headerOf(const std::vector<TensorToWrite> &tensors, const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header[safetensorsNotes] = metadata;
  uint64_t offset = 0;
  for (const TensorToWrite &tensor : tensors) {
    const uint64_t end = offset + tensorBytes(tensor);
    header[tensor.name] = {{"dtype", tensor.dtype.name}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

} // namespace

StoredDType::StoredDType(DType dtype) : name(safetensorsName(dtype)) {}

void writeSafetensors(const std::string &path, const std::vector<TensorToWrite> &tensors,
                      const std::map<std::string, std::string> &metadata,
                      const std::function<void(std::span<const std::byte>)> &written, AtomicFile::Cache cache) {
  const std::string header = headerOf(tensors, metadata);
  AtomicFile file(path, cache);
  const auto write = [&](std::span<const std::byte> bytes) {
    file.write(bytes);
    if (written)
      written(bytes);
  };
  std::string begin;
  for (int i = 0; i < 8; ++i)
    begin.push_back(char(header.size() >> 8 * i & 0xFF));
  begin += header;
  write(std::as_bytes(std::span(begin)));
  for (const TensorToWrite &tensor : tensors) {
    uint64_t given = 0;
    tensor.produce([&](std::span<const std::byte> bytes) {
      write(bytes);
      given += bytes.size();
    });
    if (given != tensorBytes(tensor))
      throw Error("cannot write " + path + ": " + tensor.name + " gave " + std::to_string(given) + " of " +
                  std::to_string(tensorBytes(tensor)) + " bytes");
  }
  file.commit();
}

} // namespace ds::runtime
