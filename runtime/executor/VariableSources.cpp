//===- VariableSources.cpp - where first values come from -----------------===//
#include "runtime/executor/VariableSources.h"

#include "runtime/core/DType.h"
#include "runtime/core/Error.h"
#include "runtime/core/Shape.h"
#include "runtime/data/ReadOnlyFile.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/Widening.h"
#include "runtime/executor/RandomValues.h"
#include "runtime/plan/Crc32c.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr uint64_t pieceBytes = uint64_t(1) << 20;

Shape shapeOf(const plan::proto::Variable &variable) { return {variable.shape().begin(), variable.shape().end()}; }

/// Writes `value` as every element of `target`.
void fillElements(double value, DType dtype, std::span<std::byte> target) {
  const auto fill = [&]<typename T>(T element) {
    for (size_t at = 0; at + sizeof(T) <= target.size(); at += sizeof(T))
      std::memcpy(&target[at], &element, sizeof(T));
  };
  switch (dtype) {
  case DType::Bool:
  case DType::U8:
    return fill(uint8_t(value));
  case DType::U16:
    return fill(uint16_t(value));
  case DType::U32:
    return fill(uint32_t(value));
  case DType::I32:
    return fill(int32_t(value));
  case DType::I64:
    return fill(int64_t(value));
  case DType::F32:
    return fill(float(value));
  case DType::F64:
    return fill(value);
  }
}

/// Whether the format's dtype is the plan's, not only convertible to it.
bool sameDType(const std::string &formatName, DType dtype) {
  return int64_t(safetensorsElementBytes(formatName)) == byteSize(dtype) && widening(formatName, dtype) != nullptr;
}

} // namespace

uint32_t fileCrc32c(const ReadOnlyFile &file) {
  std::vector<std::byte> piece(std::min(pieceBytes, file.bytes()));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < file.bytes(); at += piece.size()) {
    const auto part = std::span(piece).first(std::min<uint64_t>(piece.size(), file.bytes() - at));
    file.read(at, part);
    crc = plan::crc32c(part, crc);
  }
  return crc;
}

VariableSources::VariableSources(const plan::proto::Plan &plan, const Options &options)
    : plan_(plan), options_(options) {
  openWeights();
  for (int i = 0; i < plan.variables_size(); ++i)
    matchWeights(uint32_t(i));
  std::set<std::string> known;
  for (const plan::proto::Variable &variable : plan.variables()) {
    known.insert(variable.name());
    known.insert(variable.aliases().begin(), variable.aliases().end());
  }
  for (const SafetensorsFile &file : weights_)
    for (const auto &[name, tensor] : file.tensors())
      if (!known.contains(name))
        unusedNames_.push_back(name);
  refuseMissing();
  openPlanFiles();
}

void VariableSources::openWeights() {
  namespace fs = std::filesystem;
  if (options_.weightsPath.empty())
    return;
  if (!fs::is_directory(options_.weightsPath)) {
    weights_.emplace_back(options_.weightsPath);
    return;
  }
  std::vector<std::string> paths;
  for (const auto &entry : fs::directory_iterator(options_.weightsPath))
    if (entry.path().extension() == ".safetensors")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  if (paths.empty())
    throw Error("--weights " + options_.weightsPath + " is a folder without safetensors files");
  for (const std::string &path : paths)
    weights_.emplace_back(path);
}

void VariableSources::matchWeights(uint32_t index) {
  const plan::proto::Variable &variable = plan_.variables(int(index));
  std::vector<std::string> names = {variable.name()};
  names.insert(names.end(), variable.aliases().begin(), variable.aliases().end());
  for (const SafetensorsFile &file : weights_)
    for (const std::string &name : names) {
      const SafetensorsFile::Tensor *tensor = file.find(name);
      if (tensor == nullptr || parts_.contains(index))
        continue;
      const DType dtype = DType(variable.dtype());
      if (!sameDType(tensor->dtype, dtype) || tensor->shape != shapeOf(variable))
        throw Error(file.path() + ": " + name + " is " + tensor->dtype + " " + toString(tensor->shape) +
                    ", but the plan wants " + std::string(ds::name(dtype)) + " " + toString(shapeOf(variable)));
      parts_.emplace(index, FilePart{&file.file(), tensor->offset});
    }
}

void VariableSources::refuseMissing() const {
  std::string names;
  int count = 0;
  for (int i = 0; i < plan_.variables_size(); ++i) {
    if (plan_.variables(i).source().from_case() != plan::proto::Source::kMissing || parts_.contains(uint32_t(i)))
      continue;
    if (++count <= 3)
      names += (count > 1 ? ", " : "") + plan_.variables(i).name();
  }
  if (count == 0)
    return;
  throw Error("the plan has no values for " + names + (count > 3 ? " and " + std::to_string(count - 3) + " more" : "") +
                  (weights_.empty() ? "" : ", nor does " + options_.weightsPath) +
                  "; give a safetensors file that holds them with --weights",
              weights_.empty() ? "ds-run ... --weights model.safetensors" : "");
}

void VariableSources::openPlanFiles() {
  for (int i = 0; i < plan_.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan_.variables(i);
    if (variable.source().from_case() != plan::proto::Source::kRange || parts_.contains(uint32_t(i)))
      continue;
    const uint32_t index = variable.source().range().file();
    if (!planFiles_.contains(index)) {
      const plan::proto::WeightFile &expected = plan_.weight_files(int(index));
      ReadOnlyFile file(std::filesystem::path(options_.planFolder) / expected.path());
      if (file.bytes() != expected.size())
        throw Error("weight file " + file.path() + " has " + std::to_string(file.bytes()) +
                    " bytes, but the plan was compiled from one of " + std::to_string(expected.size()) +
                    "; compile the plan again or give --weights");
      if (fileCrc32c(file) != expected.crc32c())
        throw Error("weight file " + file.path() +
                    " has another CRC-32C than when the plan was compiled; compile the "
                    "plan again or give --weights");
      planFiles_.emplace(index, std::move(file));
    }
    parts_.emplace(uint32_t(i), FilePart{&planFiles_.at(index), variable.source().range().offset()});
  }
}

void VariableSources::generate(const plan::proto::Variable &variable, uint32_t index, uint64_t first,
                               std::span<std::byte> target) const {
  const DType dtype = DType(variable.dtype());
  const auto elementBytes = uint64_t(byteSize(dtype));
  const plan::proto::Source &source = variable.source();
  if (source.has_literal()) {
    std::memcpy(target.data(), source.literal().data() + first * elementBytes, target.size());
  } else if (source.has_random()) {
    const RandomValues random{source.random().distribution() == "normal", source.random().mean(),
                              source.random().deviation(), options_.seed, index};
    random.write(dtype, first, target.size() / elementBytes, target.data());
  } else {
    fillElements(source.fill(), dtype, target);
  }
}

void VariableSources::read(uint32_t index, uint64_t first, uint64_t count,
                           const std::function<void(std::span<const std::byte>)> &sink) const {
  const plan::proto::Variable &variable = plan_.variables(int(index));
  const auto elementBytes = uint64_t(byteSize(DType(variable.dtype())));
  std::vector<std::byte> piece(std::min(pieceBytes, count * elementBytes));
  const auto part = parts_.find(index);
  for (uint64_t done = 0; done < count;) {
    const uint64_t elements = std::min(pieceBytes / elementBytes, count - done);
    const auto bytes = std::span(piece).first(elements * elementBytes);
    if (part != parts_.end())
      part->second.file->read(part->second.offset + (first + done) * elementBytes, bytes);
    else
      generate(variable, index, first + done, bytes);
    sink(bytes);
    done += elements;
  }
}

} // namespace ds::runtime
