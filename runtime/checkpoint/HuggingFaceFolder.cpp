//===- HuggingFaceFolder.cpp - a folder that transformers loads -----------===//
#include "runtime/checkpoint/HuggingFaceFolder.h"

#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/Shape.h"
#include "core/WeightNames.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/FusedExperts.h"
#include "runtime/checkpoint/LowRankAdapters.h"
#include "runtime/checkpoint/SavedWeights.h"
#include "runtime/data/Rounding.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/SafetensorsWriter.h"

#include <nlohmann/json.hpp>

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
    adapters_ = findAdapters(weights_, modelType_);
    for (const auto &[layer, adapter] : adapters_)
      adapterOf_[adapter.weight] = &adapter;
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
    std::vector<std::string> said = notes();
    if (!adapters_.empty())
      said.push_back("the adapters of " + std::to_string(adapters_.size()) +
                     " layers were merged into their weights; " +
                     "with --adapter they are written alone, as peft loads them");
    return said;
  }

  std::vector<std::string> writeAdapters(const std::string &out);

private:
  void openLike();
  void readConfig();
  void requireOnlyAdapters();
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
  std::vector<fs::path> files_;                    // of the folder `like`
  std::vector<SafetensorsFile> shards_;            // of these, those with weights
  std::string modelType_, architecture_;           // as config.json says
  std::map<std::string, LowRankAdapter> adapters_; // by layer
  std::map<const Tensor *, const LowRankAdapter *> adapterOf_;
  std::map<std::string, Value> valueOf_; // by the name in `like`
  PrefixRule rule_;
  bool isApart_ = false;          // adapters are not merged
  std::vector<std::string> kept_; // names in `like` that the run did not know
};

void Writer::openLike() {
  if (!isFolder(like_))
    throw Error("--like " + like_ + " is no folder; give the folder of the model that was trained");
  files_ = listFolder(like_);
  if (!isThere(fs::path(like_) / "config.json"))
    throw Error("--like " + like_ + " has no config.json; give a folder written by save_pretrained");
  readConfig();
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

/// What it says of the model's layers, where it says something.
void Writer::readConfig() {
  const auto config = nlohmann::json::parse(readWhole(fs::path(like_) / "config.json").value_or(""), nullptr, false);
  if (!config.is_object())
    return;
  if (const auto type = config.find("model_type"); type != config.end() && type->is_string())
    modelType_ = *type;
  if (const auto classes = config.find("architectures");
      classes != config.end() && classes->is_array() && !classes->empty() && classes->front().is_string())
    architecture_ = classes->front();
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

/// Nothing that was trained may be left out. Adapters go where their weights do.
void Writer::requirePlaced(const std::map<const Tensor *, uint64_t> &placed) const {
  std::set<const Tensor *> merged;
  for (const auto &[layer, adapter] : adapters_)
    merged.insert({adapter.down, adapter.up});
  std::vector<std::string> homeless;
  for (const Tensor &tensor : weights_.tensors())
    if (const auto found = placed.find(&tensor);
        !merged.contains(&tensor) && (found == placed.end() || found->second < uint64_t(elementCount(tensor.shape))))
      homeless.push_back(tensor.name);
  const bool isPeft =
      std::ranges::any_of(homeless, [](const std::string &name) { return name.find(".lora_A.") != std::string::npos; });
  if (!homeless.empty())
    throw Error("--like " + like_ + " has no place for " + std::to_string(homeless.size()) + " of the " +
                std::to_string(weights_.tensors().size()) + " tensors of " + weights_.path() + ": " +
                firstNames(homeless) + "; " +
                (isPeft
                     ? "adapters under peft's own names go back by peft: with -o FILE, load_state_dict of its tensors "
                       "into the module that was trained (strict=False), and its save_pretrained"
                     : "give the folder of the model that was trained, whose names are the same but for a prefix "
                       "such as model. or module."));
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
  std::optional<AdapterSum> adapter;
  if (const auto found = adapterOf_.find(&tensor); found != adapterOf_.end() && !isApart_)
    adapter.emplace(weights_, *found->second);
  std::vector<std::byte> merged;
  const auto read = [&](const SavedWeights::Sink &take) {
    weights_.read(tensor, value.first, count, [&](std::span<const std::byte> bytes) {
      if (!adapter)
        return take(bytes);
      merged.assign(bytes.begin(), bytes.end());
      adapter->add(merged);
      take(merged);
    });
  };
  if (tensor.dtype == wanted.dtype)
    return read(sink);
  const RoundFunction round = rounding(tensor.dtype, wanted.dtype);
  if (round == nullptr)
    throw Error(name + " is " + tensor.dtype + " in " + weights_.path() + " and cannot become the " + wanted.dtype +
                " that it is in " + like_);
  const uint64_t from = safetensorsElementBytes(tensor.dtype), to = safetensorsElementBytes(wanted.dtype);
  std::vector<std::byte> rounded;
  read([&](std::span<const std::byte> bytes) {
    rounded.resize(bytes.size() / from * to);
    if (!round(bytes, rounded))
      throw Error(name + " has a value in " + weights_.path() + " that is too large for " + wanted.dtype +
                  ", its type in " + like_ + "; give a --like folder in float32 or bfloat16");
    sink(rounded);
  });
}

std::vector<std::string> Writer::writeAdapters(const std::string &out) {
  isApart_ = true;
  if (adapters_.empty())
    throw Error("--adapter: " + weights_.path() + " has no low-rank adapters (LAYER.lora_A and LAYER.lora_B, as " +
                "models/export.py --lora names them); leave out --adapter");
  requireOnlyAdapters();
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string &name, const Tensor &tensor) {
    tensors.push_back({.name = "base_model.model." + name + ".weight",
                       .dtype = tensor.dtype,
                       .shape = tensor.shape,
                       .produce = [this, &tensor](const SavedWeights::Sink &sink) {
                         weights_.read(tensor, 0, uint64_t(elementCount(tensor.shape)), sink);
                       }});
  };
  for (const auto &[layer, adapter] : adapters_) {
    add(layer + ".lora_A", *adapter.down);
    add(layer + ".lora_B", *adapter.up);
  }
  const FolderInTheMaking folder(out);
  writeSafetensors(folder.fileFor("adapter_model.safetensors"), tensors, {{"format", "pt"}});
  writeFileAtomically(folder.fileFor("adapter_config.json"), adapterConfig(adapters_, like_, architecture_));
  folder.finish();
  return {"the adapters of " + std::to_string(adapters_.size()) + " layers stand alone, for peft beside " + like_ +
          "; without --adapter they are merged into its weights"};
}

/// All else is as it was, and of one kind: peft has one rank and one way to lie for a whole folder.
void Writer::requireOnlyAdapters() {
  const LowRankAdapter &first = adapters_.begin()->second;
  for (const auto &[layer, adapter] : adapters_)
    if (adapter.rank() != first.rank() || adapter.isTransposed != first.isTransposed)
      throw Error("--adapter: the adapters of " + adapters_.begin()->first + " and " + layer +
                  " differ in rank or in how their weights lie, which one folder of peft cannot hold; leave out " +
                  "--adapter, which merges them");
  for (const SafetensorsFile &file : shards_)
    for (const auto &[name, wanted] : file.tensors()) {
      if (!valueOf_.contains(name))
        continue;
      requireShape(name, wanted.shape);
      std::vector<std::byte> before(wanted.bytes);
      file.file().read(wanted.offset, before);
      size_t at = 0;
      bool isSame = true;
      produce(name, wanted, [&](std::span<const std::byte> bytes) {
        isSame = isSame && std::equal(bytes.begin(), bytes.end(), before.begin() + std::ptrdiff_t(at));
        at += bytes.size();
      });
      if (!isSame)
        throw Error("--adapter: " + name + " is not what it is in " + like_ +
                    ", and an adapter folder has no place for " +
                    "it; leave out --adapter, or give by --like the folder that was trained");
    }
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

/// "out/" is the folder out.
static fs::path withoutSlash(const std::string &out) {
  const fs::path folder = fs::path(out).lexically_normal();
  return folder.has_filename() ? folder : folder.parent_path();
}

std::vector<std::string> writeHuggingFaceFolder(const SavedWeights &weights, const std::string &like,
                                                const std::string &out) {
  return Writer(weights, like).write(withoutSlash(out));
}

std::vector<std::string> writeAdapterFolder(const SavedWeights &weights, const std::string &like,
                                            const std::string &out) {
  return Writer(weights, like).writeAdapters(withoutSlash(out));
}

} // namespace ds::runtime
