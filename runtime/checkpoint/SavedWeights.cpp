//===- SavedWeights.cpp - the weights that a run has left -----------------===//
#include "runtime/checkpoint/SavedWeights.h"

#include "core/Error.h"
#include "core/Files.h"
#include "core/Shape.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/FileDamage.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StoredRuns.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/data/Widening.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr uint64_t pieceBytes = uint64_t(1) << 20; // a multiple of every element's size

} // namespace

SavedWeights::SavedWeights(const std::string &path) : path_(path) {
  if (!isFolder(path)) {
    openFile();
    return;
  }
  const std::optional<std::string> checkpoint = findCheckpoint(path, "");
  if (!checkpoint)
    throw Error(path + " holds no checkpoint, which is a folder with a manifest.json");
  path_ = *checkpoint;
  openCheckpoint();
}

const SafetensorsFile &SavedWeights::open(const std::string &path) {
  const auto found = files_.find(path);
  return found != files_.end() ? found->second : files_.emplace(path, SafetensorsFile(path)).first->second;
}

void SavedWeights::openFile() {
  const SafetensorsFile &file = open(path_);
  for (const auto &[name, tensor] : file.tensors()) {
    tensors_.push_back({name, {}, exportedType(tensor.dtype), tensor.shape});
    pieces_[name] = {{&file, tensor.offset, uint64_t(elementCount(tensor.shape)), tensor.dtype}};
  }
  for (const auto &[alias, name] : file.metadata()) // of --export: the other names of tied weights
    for (Tensor &tensor : tensors_)
      if (tensor.name == name)
        tensor.aliases.push_back(alias);
}

void SavedWeights::openCheckpoint() {
  const Manifest manifest = readManifest((std::filesystem::path(path_) / "manifest.json").string());
  for (const Manifest::File &file : manifest.files)
    if (const std::optional<std::string> found = damage(path_, file))
      throw Error(*found + "; name another checkpoint");
  for (const Manifest::Variable &variable : manifest.variables)
    if (variable.kind == Manifest::Kind::Parameter || (variable.kind == Manifest::Kind::Buffer && variable.persistent))
      add(manifest, variable);
}

void SavedWeights::add(const Manifest &manifest, const Manifest::Variable &variable) {
  const uint64_t elementBytes = safetensorsElementBytes(variable.dtype);
  std::vector<Piece> &pieces = pieces_[variable.name];
  for (const StoredRun &run : storedRuns(manifest, variable, 0)) {
    const Manifest::Piece &piece = *run.piece;
    const SafetensorsFile &file = open((std::filesystem::path(path_) / piece.file).string());
    const SafetensorsFile::Tensor *tensor = file.find(piece.tensor);
    const uint64_t bytes = (piece.end - piece.begin) * elementBytes;
    if (tensor == nullptr || tensor->dtype != variable.dtype || tensor->bytes != bytes)
      throw Error(file.path() + " does not hold " + piece.tensor + " as " + variable.dtype + " of " +
                  std::to_string(bytes) +
                  " bytes, as its manifest says; ds-run checkpoint verify tells what is damaged");
    pieces.push_back({&file, tensor->offset + run.first * elementBytes, run.end - run.begin, variable.dtype});
  }
  tensors_.push_back({variable.name, variable.aliases, exportedType(variable.dtype), variable.shape});
}

void SavedWeights::read(const Tensor &tensor, uint64_t first, uint64_t count, const Sink &sink) const {
  const uint64_t most = pieceBytes / safetensorsElementBytes(tensor.dtype);
  uint64_t at = first, left = count; // `at`: from the piece's beginning
  std::vector<std::byte> stored, wide;
  for (const Piece &piece : pieces_.at(tensor.name)) {
    const uint64_t storedBytes = safetensorsElementBytes(piece.dtype);
    for (uint64_t next = 0; left > 0 && at < piece.elements; at += next, left -= next) {
      next = std::min({most, left, piece.elements - at});
      stored.resize(next * storedBytes);
      piece.file->file().read(piece.offset + at * storedBytes, stored);
      sink(asExported(piece.dtype, stored, wide));
    }
    at -= std::min(at, piece.elements);
  }
}

static void writeTensors(const SavedWeights &weights, const std::vector<SavedWeights::Tensor> &chosen,
                         const std::string &path) {
  std::vector<TensorToWrite> tensors;
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  for (const SavedWeights::Tensor &tensor : chosen) {
    tensors.push_back({.name = tensor.name,
                       .dtype = tensor.dtype,
                       .shape = tensor.shape,
                       .produce = [&](const SavedWeights::Sink &sink) {
                         weights.read(tensor, 0, uint64_t(elementCount(tensor.shape)), sink);
                       }});
    for (const std::string &alias : tensor.aliases)
      metadata[alias] = tensor.name;
  }
  std::ranges::sort(tensors, {}, &TensorToWrite::name); // as --export, so that files of equal weights are equal
  writeSafetensors(path, tensors, metadata);
}

void exportSafetensors(const SavedWeights &weights, const std::string &path) {
  writeTensors(weights, weights.tensors(), path);
}

void exportAdapters(const SavedWeights &weights, const std::string &path) {
  std::vector<SavedWeights::Tensor> adapters;
  for (const SavedWeights::Tensor &tensor : weights.tensors())
    if (tensor.name.ends_with(".lora_A") || tensor.name.ends_with(".lora_B"))
      adapters.push_back(tensor);
  if (adapters.empty())
    throw Error("--adapter: " + weights.path() + " has no low-rank adapters (WEIGHT.lora_A and WEIGHT.lora_B, as " +
                "ds-opt compile --lora names them); leave out --adapter");
  writeTensors(weights, adapters, path);
}

} // namespace ds::runtime
