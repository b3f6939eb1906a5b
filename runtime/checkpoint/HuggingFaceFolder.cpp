//===- HuggingFaceFolder.cpp - a folder that transformers loads -----------===//
#include "runtime/checkpoint/HuggingFaceFolder.h"

#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/Shape.h"
#include "core/WeightNames.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/FusedExperts.h"
#include "runtime/checkpoint/SavedWeights.h"
#include "runtime/data/Rounding.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/SafetensorsWriter.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

namespace fs = std::filesystem;
using Tensor = SavedWeights::Tensor;

/// Removed unless it becomes the folder that was asked for.
class FolderInTheMaking {
public:
  explicit FolderInTheMaking(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
    if (isThere(path_) && (!isFolder(path_) || !listFolder(path_).empty()))
      throw Error("--hf " + path_ + " is there already; give a folder that is not, or that is empty");
    discardFolder(part_); // of a call that was killed
    makeFolder(part_);
  }
  ~FolderInTheMaking() { discardFolder(part_); }
  FolderInTheMaking(const FolderInTheMaking &) = delete;
  FolderInTheMaking &operator=(const FolderInTheMaking &) = delete;

  std::string fileFor(const fs::path &name) const { return fs::path(part_) / name.filename(); }
  void finish() const {
    if (std::rename(part_.c_str(), path_.c_str()) != 0)
      throw Error("--hf " + path_ + ": cannot rename " + part_ + " to it: " + std::strerror(errno));
  }

private:
  const std::string path_, part_;
};

/// Configuration, tokenizer, chat template and code that stand beside weights, and the index of these.
bool isCopied(const fs::path &path, bool isSharded) {
  static const std::set<std::string> endings = {".json", ".txt", ".model", ".jinja", ".tiktoken", ".py"};
  const std::string name = path.filename();
  const bool isIndex = name.ends_with(".index.json"), isOurs = isSharded && name == "model.safetensors.index.json";
  return endings.contains(path.extension()) && (!isIndex || isOurs);
}

/// What a tensor of `like` becomes: elements of one that was trained, from `first` on.
struct Value {
  const Tensor *tensor;
  uint64_t first;
  bool isPart; ///< of an expert, in another shape
};

class Writer {
public:
  Writer(const SavedWeights &weights, const std::string &like) : weights_(weights), like_(like) {
    openLike();
    match();
  }

  std::vector<std::string> write(const std::string &out) {
    const FolderInTheMaking folder(out);
    for (const fs::path &path : files_)
      if (isCopied(path, shards_.size() > 1))
        copy(path, folder.fileFor(path));
    for (const SafetensorsFile &file : shards_)
      writeShard(file, folder.fileFor(file.path()));
    folder.finish();
    return notes();
  }

private:
  void openLike();
  void match();
  void requirePlaced(const std::map<const Tensor *, uint64_t> &placed) const;
  void requireShape(const std::string &name, const Shape &wanted) const;
  void writeShard(const SafetensorsFile &file, const std::string &path) const;
  void produce(const std::string &name, const SafetensorsFile::Tensor &wanted, const SavedWeights::Sink &sink) const;
  std::vector<std::string> notes() const;

  static void copy(const fs::path &from, const std::string &to) {
    const std::optional<std::string> text = readWhole(from);
    if (!text)
      throw Error(from.string() + " cannot be read: " + std::strerror(errno));
    writeFileAtomically(to, *text);
  }

  const SavedWeights &weights_;
  const std::string like_;
  std::vector<fs::path> files_;          // of the folder `like`
  std::vector<SafetensorsFile> shards_;  // of these, those with weights
  std::map<std::string, Value> valueOf_; // by the name in `like`
  PrefixRule rule_;
  std::vector<std::string> kept_; // names in `like` that the run did not know
};

void Writer::openLike() {
  if (!isFolder(like_))
    throw Error("--like " + like_ + " is no folder; give the folder of the model that was trained");
  files_ = listFolder(like_);
  if (!isThere(fs::path(like_) / "config.json"))
    throw Error("--like " + like_ + " has no config.json; give a folder written by save_pretrained");
  // A folder may have its weights whole and in shards; transformers takes the whole.
  const bool isWhole = isThere(fs::path(like_) / "model.safetensors");
  for (const fs::path &path : files_)
    if (path.extension() == ".safetensors" &&
        (isWhole ? path.filename() == "model.safetensors" : path.filename().string().starts_with("model-")))
      shards_.emplace_back(path.string());
  if (shards_.empty())
    throw Error("--like " + like_ + " has neither model.safetensors nor model-00001-of-N.safetensors" +
                "; save it once more with save_pretrained(..., safe_serialization=True)");
}

void Writer::match() {
  std::map<std::string, uint64_t> elements; // by name in `like`
  for (const SafetensorsFile &file : shards_)
    for (const auto &[name, tensor] : file.tensors())
      elements[name] = uint64_t(elementCount(tensor.shape));
  const auto has = [&](const std::string &name) { return elements.contains(name); };
  std::vector<std::vector<std::string>> known;
  for (const Tensor &tensor : weights_.tensors()) {
    known.push_back({tensor.name});
    known.back().insert(known.back().end(), tensor.aliases.begin(), tensor.aliases.end());
  }
  rule_ = findPrefixRule(known, has);
  std::map<std::string, const Tensor *> byName; // by every name under which `like` may have it
  for (size_t i = 0; i < known.size(); ++i)
    for (const std::string &name : known[i])
      for (const std::string &place : {name, rule_.fileName(name)})
        byName.emplace(place, &weights_.tensors()[i]);
  std::map<const Tensor *, uint64_t> placed; // elements
  for (const auto &[name, count] : elements) {
    const std::optional<ExpertPart> part = expertPart(name);
    auto found = byName.find(name);
    if (found == byName.end())
      found = byName.find(part ? part->tensor : moduleName(name));
    if (found == byName.end()) {
      kept_.push_back(name);
      continue;
    }
    const bool isPart = part && found->first == part->tensor;
    valueOf_[name] = {found->second, isPart ? part->part * count : 0, isPart};
    placed[found->second] += count;
  }
  requirePlaced(placed);
}

/// Nothing that was trained may be left out.
void Writer::requirePlaced(const std::map<const Tensor *, uint64_t> &placed) const {
  std::vector<std::string> homeless;
  for (const Tensor &tensor : weights_.tensors())
    if (const auto found = placed.find(&tensor);
        found == placed.end() || found->second < uint64_t(elementCount(tensor.shape)))
      homeless.push_back(tensor.name);
  if (!homeless.empty())
    throw Error("--like " + like_ + " has no place for " + std::to_string(homeless.size()) + " of the " +
                std::to_string(weights_.tensors().size()) + " tensors of " + weights_.path() + ": " +
                firstNames(homeless) + "; give the folder of the model that was trained, whose names are the same " +
                "but for a prefix such as model. or module.");
}

void Writer::requireShape(const std::string &name, const Shape &wanted) const {
  const auto found = valueOf_.find(name);
  if (found == valueOf_.end())
    return;
  const auto &[tensor, first, isPart] = found->second;
  const bool fits = isPart ? first + uint64_t(elementCount(wanted)) <= uint64_t(elementCount(tensor->shape))
                           : tensor->shape == wanted;
  if (!fits)
    throw Error(tensor->name + " has shape " + toString(tensor->shape) + " in " + weights_.path() + ", but " + name +
                " has " + toString(wanted) + " in " + like_);
}

void Writer::writeShard(const SafetensorsFile &file, const std::string &path) const {
  std::vector<TensorToWrite> tensors;
  for (const auto &entry : file.tensors()) {
    const std::string &name = entry.first;
    const SafetensorsFile::Tensor &wanted = entry.second;
    requireShape(name, wanted.shape);
    tensors.push_back({.name = name,
                       .dtype = wanted.dtype,
                       .shape = wanted.shape,
                       .produce = [this, &file, &name, &wanted](const SavedWeights::Sink &sink) {
                         if (valueOf_.contains(name))
                           return produce(name, wanted, sink);
                         std::vector<std::byte> bytes(wanted.bytes);
                         file.file().read(wanted.offset, bytes);
                         sink(bytes);
                       }});
  }
  std::map<std::string, std::string> metadata = file.metadata();
  metadata.emplace("format", "pt"); // transformers refuses files without
  writeSafetensors(path, tensors, metadata);
}

void Writer::produce(const std::string &name, const SafetensorsFile::Tensor &wanted,
                     const SavedWeights::Sink &sink) const {
  const Value &value = valueOf_.at(name);
  const Tensor &tensor = *value.tensor;
  const auto count = uint64_t(elementCount(wanted.shape));
  if (tensor.dtype == wanted.dtype)
    return weights_.read(tensor, value.first, count, sink);
  const RoundFunction round = rounding(tensor.dtype, wanted.dtype);
  if (round == nullptr)
    throw Error(name + " is " + tensor.dtype + " in " + weights_.path() + " and cannot become the " + wanted.dtype +
                " that it is in " + like_);
  const uint64_t from = safetensorsElementBytes(tensor.dtype), to = safetensorsElementBytes(wanted.dtype);
  std::vector<std::byte> rounded;
  weights_.read(tensor, value.first, count, [&](std::span<const std::byte> bytes) {
    rounded.resize(bytes.size() / from * to);
    if (!round(bytes, rounded))
      throw Error(name + " has a value in " + weights_.path() + " that is too large for " + wanted.dtype +
                  ", its type in " + like_ + "; give a --like folder in float32 or bfloat16");
    sink(rounded);
  });
}

std::vector<std::string> Writer::notes() const {
  std::vector<std::string> notes;
  if (!rule_.prefix.empty())
    notes.push_back(rule_.sentence(like_));
  if (!kept_.empty())
    notes.push_back("tensors that are no part of the run are as they were in " + like_ + ": " + firstNames(kept_));
  return notes;
}

} // namespace

std::vector<std::string> writeHuggingFaceFolder(const SavedWeights &weights, const std::string &like,
                                                const std::string &out) {
  // "out/" is the folder out.
  fs::path folder = fs::path(out).lexically_normal();
  return Writer(weights, like).write(folder.has_filename() ? folder : folder.parent_path());
}

} // namespace ds::runtime
