//===- Safetensors.cpp - weights from a safetensors file ----------------------===//
//
// u64 header length, a header in JSON {name: {dtype, shape, data_offsets [begin, end)}}, then the tensors without
// holes.
//===----------------------------------------------------------------------===//
#include "compiler/import/Weights.h"
#include "compiler/import/files/Failure.h"
#include "compiler/import/files/Json.h"
#include "core/Files.h"
#include "core/WeightNames.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace ds::import {

static std::string spelling(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return "F32";
  case DType::F64:
    return "F64";
  case DType::I32:
    return "I32";
  case DType::I64:
    return "I64";
  default:
    return "BOOL";
  }
}

void WeightFiles::openSafetensors(const std::string &path) {
  namespace fs = std::filesystem;
  if (!isFolder(path))
    return path.ends_with(".json") ? openSafetensorsIndex(path) : openSafetensorsFile(path);
  const fs::path whole = fs::path(path) / "model.safetensors", index = fs::path(path) / "model.safetensors.index.json";
  if (isThere(index))
    return openSafetensorsIndex(index.string());
  if (!isThere(whole))
    throw Failure("--weights '" + path + "' is a folder without model.safetensors or model.safetensors.index.json");
  openSafetensorsFile(whole.string());
}

/// {"weight_map": {tensor: file beside the index}}
void WeightFiles::openSafetensorsIndex(const std::string &path) {
  const std::shared_ptr<InputFile> file = InputFile::open(path);
  constexpr uint64_t maxIndex = 100'000'000;
  if (file->size() > maxIndex)
    throw Failure("'" + path + "' is no index of safetensors files: it has " + std::to_string(file->size()) + " bytes");
  std::string text(file->size(), '\0');
  file->read(0, text);
  const llvm::json::Value value = parseJson(text, "'" + path + "'");
  const llvm::json::Object *object = value.getAsObject();
  const llvm::json::Object *tensors = object ? object->getObject("weight_map") : nullptr;
  if (!tensors)
    throw Failure("'" + path + "' is no index of safetensors files: it has no \"weight_map\"");
  std::map<std::string, std::string> fileOf;
  std::set<std::string> names;
  for (const auto &[tensor, shard] : *tensors) {
    const std::string name = shard.getAsString().value_or("").str();
    if (name.empty() || std::filesystem::path(name).filename() != name)
      throw Failure("'" + path + "': tensor '" + tensor.str() + "' is in '" + name + "', which is no file's name");
    fileOf.emplace(tensor.str(), name);
    names.insert(name);
  }
  for (const std::string &name : names) {
    const std::filesystem::path shard = std::filesystem::path(path).parent_path() / name;
    if (!isThere(shard))
      throw Failure("'" + path + "' names '" + name + "', which is not beside it; a sharded model needs all of its " +
                    std::to_string(names.size()) + " files");
    openSafetensorsFile(shard.string());
  }
  for (const auto &[tensor, name] : fileOf)
    if (!entries_.count(tensor))
      throw Failure("'" + path + "' says that '" + name + "' holds tensor '" + tensor + "', which it does not");
}

void WeightFiles::openSafetensorsFile(const std::string &path) {
  const std::shared_ptr<InputFile> file = InputFile::open(path);
  constexpr uint64_t maxHeader = 100'000'000;
  uint64_t headerBytes = 0;
  if (file->size() < sizeof headerBytes)
    throw Failure("'" + path + "' is no safetensors file: it has only " + std::to_string(file->size()) + " bytes");
  file->read(0, {reinterpret_cast<char *>(&headerBytes), sizeof headerBytes});
  if (headerBytes > maxHeader || headerBytes > file->size() - sizeof headerBytes)
    throw Failure("'" + path + "' is no safetensors file: its header would have " + std::to_string(headerBytes) +
                  " bytes");
  std::string header(headerBytes, '\0');
  file->read(sizeof headerBytes, header);
  const uint64_t dataBegin = sizeof headerBytes + headerBytes;
  // The user names this file, so it need not lie beside the model.
  const std::string stored = std::filesystem::proximate(path, folder_.empty() ? "." : folder_).string();
  files_[stored] = file;
  readSafetensorsHeader(header, dataBegin, file->size() - dataBegin, path, stored);
}

void WeightFiles::readSafetensorsHeader(const std::string &header, uint64_t dataBegin, uint64_t dataBytes,
                                        const std::string &path, const std::string &stored) {
  const llvm::json::Value value = parseJson(header, "the header of '" + path + "'");
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    throw Failure("the header of '" + path + "' is not a JSON object");
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto &[key, description] : *object) {
    const std::string name = key.str();
    if (name == safetensorsNotes)
      continue;
    const llvm::json::Object *fields = description.getAsObject();
    const auto dtype = fields ? fields->getString("dtype") : std::nullopt;
    const auto *shape = fields ? fields->getArray("shape") : nullptr;
    const auto *offsets = fields ? fields->getArray("data_offsets") : nullptr;
    if (!dtype || !shape || !offsets || offsets->size() != 2)
      throw Failure("'" + path + "': tensor '" + name + "' lacks a dtype, a shape or data_offsets");
    Entry entry{stored, dtype->str(), {}, 0, 0};
    for (const llvm::json::Value &dim : *shape)
      entry.shape.push_back(dim.getAsInteger().value_or(-1));
    const int64_t begin = (*offsets)[0].getAsInteger().value_or(-1), end = (*offsets)[1].getAsInteger().value_or(-1);
    if (begin < 0 || end < begin || uint64_t(end) > dataBytes)
      throw Failure("'" + path + "': the data_offsets of tensor '" + name + "' lie outside the file's " +
                    std::to_string(dataBytes) + " bytes of data");
    entry.offset = dataBegin + uint64_t(begin);
    entry.length = uint64_t(end - begin);
    ranges.emplace_back(begin, end);
    entries_.emplace(name, std::move(entry));
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const auto &[begin, end] : ranges) {
    if (begin != at)
      throw Failure("'" + path + "': tensors overlap or leave a hole at byte " + std::to_string(at) + " of the data");
    at = end;
  }
  if (at != dataBytes)
    throw Failure("'" + path + "': the tensors end at byte " + std::to_string(at) + " of " + std::to_string(dataBytes) +
                  " bytes of data");
}

std::map<std::string, std::pair<int, Shape>> WeightFiles::safetensors() const {
  // Half floats become variables of float32.
  static const std::map<std::string, int> numbers = {{"F32", 1},  {"F64", 11}, {"I32", 6}, {"I64", 7},
                                                     {"BOOL", 9}, {"F16", 1},  {"BF16", 1}};
  std::map<std::string, std::pair<int, Shape>> result;
  for (const auto &[name, entry] : entries_)
    if (auto number = numbers.find(entry.dtype); number != numbers.end())
      result[name] = {number->second, entry.shape};
  return result;
}

/// Bytes of an element that is stored as `stored`, the variable's own type or a float of fewer bits; 0: of any other.
static uint64_t bytesOfStored(const std::string &stored, DType dtype) {
  if (stored == spelling(dtype))
    return uint64_t(byteSize(dtype));
  if (dtype == DType::F64 && stored == "F32")
    return 4;
  return ds::isFloat(dtype) && (stored == "BF16" || stored == "F16") ? 2 : 0;
}

TensorData WeightFiles::locateInSafetensors(const std::string &name, const std::string &parameter, DType dtype,
                                            const Shape &shape) const {
  const Entry &entry = entries_.at(name);
  const uint64_t bytes = bytesOfStored(entry.dtype, dtype);
  if (bytes == 0 || entry.shape != shape)
    throw Failure(
        "parameter '" + parameter + "' is " + spelling(dtype) + " " + toString(shape) + " in the model, but " +
        entry.dtype + " " + toString(entry.shape) + " in '" + entry.path + "'" +
        (bytes == 0 && entry.dtype == "F64" ? "; weights of float64 are not rounded: save them as float32" : ""));
  if (entry.length != uint64_t(elementCount(shape)) * bytes)
    throw Failure("'" + entry.path + "': tensor '" + name + "' has " + std::to_string(entry.length) + " bytes, which " +
                  entry.dtype + " " + toString(entry.shape) + " does not need");
  return TensorData{entry.path, entry.offset, entry.length, {}, entry.dtype == spelling(dtype) ? "" : entry.dtype};
}

} // namespace ds::import
